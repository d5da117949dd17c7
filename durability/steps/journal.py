"""Reports of a run under Airflow to the program that started it: one JSON object per line, read while tasks write it.

Events: `step` (`name`, `state` started or done, `seconds`, `note`) and `problem` (`name`, `text`: an error meant for the person
who ran the audit). Without such a program the variable is unset, and nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "DURABILITY_JOURNAL"


def write(event: str, **fields: object) -> None:
    """Append one event to the journal named by `DURABILITY_JOURNAL`; does nothing where there is none.

    A line goes out in a single O_APPEND write, so mapped tasks may write at once.
    """
    target = os.environ.get(VARIABLE)
    if not target:
        return
    # It begins a line, too: on a full disk the one before may be cut short.
    line = "\n" + json.dumps({"event": event, **fields}, default=str) + "\n"
    # A full disk fails the step by itself, or not at all: the journal never does.
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
        """Not written: a step that takes long is several tasks."""

    def problem(self, step: str, text: str) -> None:
        write("problem", name=step, text=text)

    def done(self, step: str, seconds: float, text: str) -> None:
        write("step", name=step, state="done", seconds=seconds, note=text)


class Reader:
    """Follows a journal: `new()` yields the events completed since it was last called."""

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
