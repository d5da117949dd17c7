"""The error message for a step that stopped early: the step, the cause, and its last log lines.

The log itself may be on the full disk, so the message contains the cause.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from durability.errors import Refused

STOPPED = "stopped before its end"
LINES = 5
"""The most log lines to show."""
FULL = (errno.ENOSPC, errno.EDQUOT)
LITTLE = 1 << 20
"""Bytes. A disk with less free space counts as full."""
_FULL_TEXT = re.compile(r"no space left on device|disk quota exceeded|database or disk is full", re.IGNORECASE)
_FULL_STORE = re.compile(r"XMinioStorageFull|QuotaExceeded|InsufficientStorage|(HTTP status|Status Code:) 507\b")
"""What MinIO, Ceph and other object stores answer when they are full."""
_TELLING = re.compile(r"Caused by|Exception|Error\b|ERROR|No space left|Killed|OutOfMemory")


def text_of(step: str, error: BaseException, lines: Sequence[str] = ()) -> str:
    """One problem for the console. lines: the end of the step's log, if there is one."""
    # Airflow's Spark hook puts the last lines of the job into the exception.
    lines = [line.rstrip() for line in lines or str(error).splitlines()[1:] if line.strip()]
    cause = full_disk(error, lines) or f"{type(error).__name__}: {_first_line(error)}"
    telling = [line for line in lines if _TELLING.search(line) and not line.lstrip().startswith("at ")]
    shown = (telling or lines)[-LINES:]
    return "\n".join([f"{step} {STOPPED}: {cause}", *(f"  {line[:300]}" for line in shown)])


def full_disk(error: BaseException, lines: Iterable[str] = ()) -> str | None:
    """The cause if a disk or an object store is full, else None.

    It is found in the error, in the errors that caused it, or in log lines.
    """
    met = [
        one for one in _chain(error) if (isinstance(one, OSError) and one.errno in FULL) or _FULL_TEXT.search(str(one))
    ]
    # An error of a copy has the source in `filename` and the destination in `filename2`.
    named = [getattr(one, "filename2", None) or getattr(one, "filename", None) for one in met]
    if place := next(filter(None, named), None):
        return _no_space(f"the disk of {place}")
    if met or any(_FULL_TEXT.search(line) for line in lines):
        places = [Path(place) for place in getattr(error, "places", ())]
        return _no_space(_named(full_places([*places, *_places()])))
    if any(_FULL_STORE.search(text) for text in (*map(str, _chain(error)), *lines)):
        return _no_space("the object store (S3), or its quota is used up")
    return None


def full_places(places: Iterable[Path]) -> list[str]:
    """The folders of `places` whose disks are full."""
    found = []
    for place in places:
        with suppress(OSError):
            state = os.statvfs(next(path for path in (place, *place.parents) if path.exists()))
            if state.f_bavail * state.f_frsize < LITTLE or (state.f_files and not state.f_favail):
                found.append(str(place))
    return found


@contextmanager
def full_disk_refused() -> Iterator[None]:
    """Turn an OSError of a full disk, raised outside all steps, into Refused."""
    try:
        yield
    except OSError as error:
        if cause := full_disk(error):
            raise Refused(f"the audit {STOPPED}: {cause}") from error
        raise


def _places() -> list[Path]:
    """Folders that processes write to by default. Spark's data goes to the first."""
    import tempfile

    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return [Path(place) for place in dict.fromkeys([*filter(None, spark), tempfile.gettempdir(), os.getcwd()])]


def _named(places: Sequence[str]) -> str:
    return f"the disk of {', '.join(places)}" if places else "a disk that the audit writes to"


def _no_space(where: str) -> str:
    return f"no space left on {where}; free some, then run the audit again"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:500]
