"""Locks on files. A lock is the kernel's: it ends with its process, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it meanwhile."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def try_lock(path: Path) -> IO[str] | None:
    """The file, open and locked until it is closed; None while another process has it. Its content stays."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
