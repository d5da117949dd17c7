"""Prevents two concurrent audits from writing to one folder of reports."""

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
    """Lock every folder for the block. The lock excludes all users of this host.

    On network file systems that can't lock folders, it excludes only processes of this user.
    Raises Unreachable with the folder and the process if another audit has a lock. The user can try again later.
    """
    with ExitStack() as stack:
        for folder in sorted({f.resolve() for f in folders}):
            try:
                lock = locks.try_folder_lock(folder)
            except OSError:  # a network file system that can't lock folders
                name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
                lock = locks.try_lock(private.folder("locks") / name)
            if lock is None:
                raise Unreachable(
                    f"another audit (process {locks.holder(folder) or 'unknown'}) is using {folder}; wait for it, or give "
                    "this one its own --out and --lake (OUT= and LAKE=)"
                )
            stack.enter_context(lock)
        yield
