"""What the console shows while an audit runs: one line a finished step, errors in full, nothing of the logs."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Console:
    """Short lines for a person: `step` names what is being done, `done` says how long it took."""

    def __init__(self, out: TextIO = sys.stdout, errors: TextIO = sys.stderr):
        self._out, self._errors = out, errors
        self._began = time.monotonic()

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def done(self, name: str, seconds: float, note: str = "") -> None:
        """
        >>> Console().done("collect", 2.134, "1 cluster")
          collect       2.1 s  1 cluster
        """
        self.line(f"  {name:<10}{seconds:7.1f} s  {note}".rstrip())

    def error(self, text: str) -> None:
        print(f"error: {text}", file=self._errors, flush=True)

    @property
    def seconds(self) -> float:
        """Since this console was made."""
        return time.monotonic() - self._began
