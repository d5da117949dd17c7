"""The journal: tasks under Airflow append their progress to a file, and the program that started the run reads it.

Each line is one JSON event. `step` has `name`, `state` (started or done), `seconds` and `note`. `problem` has `name` and
`text`, an error message for the user.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "DURABILITY_JOURNAL"


def write(event: str, **fields: object) -> None:
    """Append one event to the file named by the variable DURABILITY_JOURNAL. Does nothing if the variable is unset.

    One O_APPEND write per event lets mapped tasks write concurrently.
    """
    target = os.environ.get(VARIABLE)
    if not target:
        return
    # The leading newline ends a line that a full disk may have cut short.
    line = "\n" + json.dumps({"event": event, **fields}, default=str) + "\n"
    # The journal is not essential: a full disk must not fail the step here.
    with suppress(OSError):
        descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class JournalReporter:
    """A `StepReporter` that writes to the journal."""

    def started(self, step: str) -> None:
        write("step", name=step, state="started")

    def progress(self, step: str, done: int, total: int) -> None:
        """Does nothing: under Airflow, a long step consists of several tasks."""

    def problem(self, step: str, text: str) -> None:
        write("problem", name=step, text=text)

    def done(self, step: str, seconds: float, text: str) -> None:
        write("step", name=step, state="done", seconds=seconds, note=text)


class Reader:
    """Follows a journal. `new()` yields the events completed since the last call."""

    def __init__(self, path: Path):
        self._path = path
        self._offset = 0

    def new(self) -> Iterator[dict]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            while (line := file.readline()).endswith(b"\n"):
                self._offset = file.tell()
                with suppress(ValueError):  # an empty line, or one that a full disk cut short
                    yield json.loads(line)
