"""Writes files atomically, and replaces several files together."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from durability.errors import Refused
from durability.resources import create_private

UNFINISHED = ".unfinished-"
OLD = "old"
"""In a temporary folder: the subfolder with the files that are being replaced, until all are."""


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """A temporary folder in `folder`, removed at the end. Remains of killed processes are removed first.

    Raises Refused if `folder` can't be used.
    """
    try:
        create_private(folder)
        sweep(folder)
        path, lock = _locked(folder)
    except OSError as error:
        raise Refused(f"{folder}: can't be used as output folder: {error.strerror}; name another") from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def sweep(folder: Path) -> None:
    """Remove the temporary folders of processes that have ended. A running process has its folder locked.

    If a process was killed while it replaced files together, the old files are restored from its folder.
    """
    for path in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for kept in (path / OLD).rglob("*"):
                    if kept.is_file():
                        kept.replace(folder / kept.relative_to(path / OLD))
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(folder: Path) -> tuple[Path, int]:
    """A new temporary folder and its lock: a file descriptor."""
    while True:
        path = Path(tempfile.mkdtemp(dir=folder, prefix=UNFINISHED))
        # Before the folder is locked, another process may remove it as a dead process's folder.
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # some network file systems can't lock folders
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():
                return path, lock
            os.close(lock)


@contextmanager
def atomic_files(folder: Path, *names: str) -> Iterator[Sequence[TextIO]]:
    """Open UTF-8 text files that replace those in `folder` when the block ends. After an error, the old files stay.

    names: names, or paths in a subfolder. Line ends are written as given. Either all files are replaced or none. Raises
    Refused if the folder can't be used, or if one of the old files can't be replaced.
    """
    with unfinished(folder) as temporary:
        for left in (left for name in names for left in folder.glob(f".{name}.*.tmp")):  # of versions before 0.1
            left.unlink(missing_ok=True)
        paths = [temporary / name for name in names]
        for path in paths:
            path.parent.mkdir(exist_ok=True)
        with ExitStack() as opened:
            files = [opened.enter_context(path.open("w", encoding="utf-8", newline="")) for path in paths]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        _replace_together(paths, folder, temporary)


def write_whole(path: Path, pieces: Iterable[str], temporary: Path) -> None:
    """Replace `path` atomically by a UTF-8 text file. pieces: its text. temporary: a folder of `unfinished`."""
    partial = temporary / "partial"
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial.replace(path)


def _replace_together(paths: Sequence[Path], folder: Path, temporary: Path) -> None:
    """Move the files into `folder`. If one can't be moved, the old ones are restored."""
    old = temporary / OLD
    old.mkdir()
    done: list[Path] = []
    for path in paths:
        name = path.relative_to(temporary)
        target = folder / name
        try:
            target.parent.mkdir(exist_ok=True)
            (old / name).parent.mkdir(exist_ok=True)
            if target.is_dir():
                raise IsADirectoryError(None, "it is a folder")
            if target.exists():
                _keep(target, old / name)
            path.replace(target)
            done.append(target)
        except OSError as error:
            for moved in done:
                kept = old / moved.relative_to(folder)
                kept.replace(moved) if kept.exists() else moved.unlink(missing_ok=True)
            raise Refused(
                f"{target}: can't be replaced: {error.strerror}; the files of the earlier run stay"
            ) from error
    old.rename(temporary / "replaced")


def _keep(file: Path, copy: Path) -> None:
    """Keep an old file under a second name. Some file systems have no links, so it may be copied."""
    try:
        os.link(file, copy)
    except OSError:
        shutil.copy2(file, copy)
