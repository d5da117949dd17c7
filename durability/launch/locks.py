"""One audit at a time on a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from durability.errors import Refused

NAME = ".audit.lock"


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[tuple[int, ...]]:
    """Hold every folder's lock; yields the descriptors, for children that must keep them while they live.

    The lock is the kernel's, so it ends with the processes that hold it, however they end. Refused, naming the folder
    and the holder's process id, when another audit has one.
    """
    descriptors: list[int] = []
    try:
        for folder in sorted({f.resolve() for f in folders}):
            descriptors.append(_take(folder))
        yield tuple(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _take(folder: Path) -> int:
    path = folder / NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise Refused(
            f"another audit (process {holder}) is using {folder}; wait for it, or give this one its own OUT= and LAKE="
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
