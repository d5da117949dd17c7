"""One audit at a time on a folder of reports."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from durability.errors import Unreachable
from durability.runtime import locks, private


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[None]:
    """Hold every folder's lock meanwhile. The lock is on the folder itself, so it excludes every user of this host; on a
    network file system without locks of folders, only this user.

    Raises Unreachable, naming the folder and the process, when another audit has one: trying again later helps.
    """
    with ExitStack() as stack:
        for folder in sorted({f.resolve() for f in folders}):
            try:
                lock = locks.try_folder_lock(folder)
            except OSError:  # a network file system that locks no folders
                name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
                lock = locks.try_lock(private.folder("locks") / name)
            if lock is None:
                raise Unreachable(
                    f"another audit (process {locks.holder(folder) or 'unknown'}) is using {folder}; wait for it, or give "
                    "this one its own --out and --lake (OUT= and LAKE=)"
                )
            stack.enter_context(lock)
        yield
