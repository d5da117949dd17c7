"""One audit at a time on a folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from durability.errors import Refused


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[None]:
    """Hold every folder's lock meanwhile.

    The lock is the kernel's, so it ends with this process, however that ends; its file lies among temporary files, for
    a lake's folder takes nothing foreign. Refused, naming the folder and the
    holder's process id, when another audit has one.
    """
    descriptors: list[int] = []
    try:
        for folder in sorted({f.resolve() for f in folders}):
            descriptors.append(_take(folder))
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _take(folder: Path) -> int:
    files = Path(tempfile.gettempdir()) / f"durability-locks-{os.getuid()}"
    files.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
    descriptor = os.open(files / name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise Refused(
            f"another audit (process {holder}) is using {folder}; wait for it, or give this one its own --out and --lake"
            " (OUT= and LAKE=)"
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
