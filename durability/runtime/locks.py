"""Locks on files and folders. A lock is the kernel's: it ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A link would be another file than the one that is meant, and O_TRUNC would empty it.
_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Lock:
    """A lock that is held until `close`; a context manager closes it."""

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
    """Wait for the lock of a file, which is created if missing, and hold it meanwhile. OSError if the path is a link."""
    with Lock(os.open(path, _FILE, 0o666)) as lock:
        assert lock._descriptor is not None
        fcntl.flock(lock._descriptor, fcntl.LOCK_EX)
        yield


def try_lock(path: Path) -> Lock | None:
    """The lock of a file, which is created if missing; None while another process has it. OSError if the path is a link."""
    return _tried(os.open(path, _FILE, 0o600))


def try_existing_lock(path: Path) -> Lock | None:
    """`try_lock` of a file that exists; FileNotFoundError if it doesn't."""
    return _tried(os.open(path, _FILE & ~os.O_CREAT))


def try_folder_lock(folder: Path, *, shared: bool = False) -> Lock | None:
    """The lock of an existing folder; None while another process of this host has it. It leaves no file in the folder.

    shared: beside others that share it.
    """
    return _tried(os.open(folder, _FOLDER), fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def holder(folder: Path) -> int | None:
    """The process that has the lock of a folder, as far as this host's kernel names it (proc_locks(5))."""
    found = folder.stat()
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    # "1: FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF"; a line with "->" is a process that waits.
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
