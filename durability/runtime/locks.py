"""Locks on files and folders. The kernel releases a lock when its process ends for any reason."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Don't follow links: O_TRUNC would empty the file that a link points to.
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Lock:
    """An acquired lock. `close` or the end of the context releases it."""

    def __init__(self, descriptor: int):
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock of a file and keep it for the block. Creates a missing file. Raises OSError for a link."""
    with Lock(os.open(path, _FILE, 0o666)) as lock:
        assert lock._descriptor is not None
        fcntl.flock(lock._descriptor, fcntl.LOCK_EX)
        yield


def try_lock(path: Path) -> Lock | None:
    """The lock of a file, or None if another process has it. Creates a missing file. Raises OSError for a link."""
    return _tried(os.open(path, _FILE, 0o600))


def try_existing_lock(path: Path) -> Lock | None:
    """`try_lock` for an existing file. Raises FileNotFoundError if it is missing."""
    return _tried(os.open(path, _FILE & ~os.O_CREAT))


def try_folder_lock(folder: Path, *, shared: bool = False) -> Lock | None:
    """The lock of an existing folder, or None if another process of this host has it. Creates no file.

    shared: share the lock with other shared locks.
    """
    return _tried(os.open(folder, _FOLDER), fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def holder(folder: Path) -> int | None:
    """The id of the process that has the lock of a folder, if this host's kernel lists it (proc_locks(5))."""
    found = folder.stat()
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    # "1: FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF". A line with "->" is a waiting process.
    held = [words for words in map(str.split, lines) if "FLOCK" in words[1:2] and place in words]
    return int(held[0][4]) or None if held else None


def _tried(descriptor: int, kind: int = fcntl.LOCK_EX) -> Lock | None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)
