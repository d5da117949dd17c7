"""Temporary folders of one process, which the next run removes if that process was killed.

A folder has a lock file, which its owner holds. The kernel releases the lock when the owner ends, however that happens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

from durability.runtime.locks import Lock, try_existing_lock, try_lock

PREFIX = "durability-"
OWNER = ".owner"


class OwnedFolder:
    """A new folder in the temporary folder that only this user can read, until `remove`, or until the next run after this
    process was killed. It is a context manager, too."""

    def __init__(self, prefix: str = PREFIX):
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        # The file gets its name when it is locked: `sweep` must not find it before.
        unnamed = self.path / f"{OWNER}-{uuid.uuid4().hex}"
        lock = try_lock(unnamed)
        assert lock is not None, "no other process knows this name"
        unnamed.rename(self.path / OWNER)
        self._lock: Lock = lock

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def sweep() -> list[Path]:
    """Removes the folders whose owners are gone, and returns them. Folders of other users and without a lock file stay."""
    removed = []
    for entry in list(os.scandir(tempfile.gettempdir())):
        with suppress(OSError):  # another process removes it
            if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            if lock := try_existing_lock(Path(entry.path) / OWNER):
                with lock:
                    shutil.rmtree(entry.path, ignore_errors=True)
                removed.append(Path(entry.path))
    return removed
