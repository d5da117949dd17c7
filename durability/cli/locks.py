"""One audit at a time on a folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from durability.errors import Refused
from durability.runtime.locks import try_lock


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[None]:
    """Hold every folder's lock meanwhile; its file is among temporary files, since a lake's folder takes nothing foreign.

    Raises Refused, naming the folder and the process, when another audit has one.
    """
    files = Path(tempfile.gettempdir()) / f"durability-locks-{os.getuid()}"
    files.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as locks:
        for folder in sorted({f.resolve() for f in folders}):
            path = files / hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
            file = try_lock(path)
            if file is None:
                raise Refused(
                    f"another audit (process {path.read_text().strip() or 'unknown'}) is using {folder}; wait for it, or give "
                    "this one its own --out and --lake (OUT= and LAKE=)"
                )
            locks.enter_context(file)
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield
