"""A folder that only this user can access, for files shared by the user's processes: the leases of ports.

A fixed name in /tmp is unsafe. Another user could create that folder first and put links into it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from durability.errors import Refused
from durability.resources import NAME, state_folder

SHARED = stat.S_IWGRP | stat.S_IWOTH


def folder(name: str) -> Path:
    """The private folder with this name, created if missing, below $XDG_RUNTIME_DIR or the state folder.

    $XDG_RUNTIME_DIR is used only if it belongs to this user and no other user can write to it (XDG Base Directory
    Specification).
    Raises Refused if the folder can't be created, is a link, belongs to another user or is writable by others.
    """
    place = _base() / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refused(f"the private folder {place} can't be created: {error.strerror}") from error
    if why := _unsafe(place):
        raise Refused(f"the folder {place} can't be used: {why}. Remove it, or name another place with XDG_RUNTIME_DIR")
    return place


def _base() -> Path:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute() and _unsafe(runtime) is None:
        return runtime / NAME
    return state_folder() / "run"


def _unsafe(path: Path) -> str | None:
    """Why files in a folder can't be trusted; None if they can."""
    try:
        found = path.lstat()
    except OSError as error:
        return error.strerror or "it can't be read"
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link or a file"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "other users can write to it" if found.st_mode & SHARED else None
