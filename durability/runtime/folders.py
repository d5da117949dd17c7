"""Temporary folders of one process. If the process is killed, the next run removes them.

Each folder has a lock file. The kernel releases the lock when the process ends for any reason.
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
    """A new temporary folder that only this user can read. Also a context manager.

    `remove` deletes it. If this process is killed, the next run does.
    """

    def __init__(self, prefix: str = PREFIX):
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        # Rename the file only once it is locked, so that `sweep` can't see it unlocked.
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
    """Remove folders whose processes have ended, and return them. Folders of other users or without a lock file stay."""
    removed = []
    for entry in list(os.scandir(tempfile.gettempdir())):
        with suppress(OSError):  # another process is removing it
            if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            if lock := try_existing_lock(Path(entry.path) / OWNER):
                with lock:
                    shutil.rmtree(entry.path, ignore_errors=True)
                removed.append(Path(entry.path))
    return removed
