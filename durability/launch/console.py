"""What the console shows while an audit runs: one line a finished step, errors in full, nothing of the logs."""

from __future__ import annotations

import sys
from typing import TextIO


class Console:
    """Short lines for a person: `line` and `done` go to standard output, `error` to standard error."""

    def __init__(self, out: TextIO | None = None, errors: TextIO | None = None):
        self._out, self._errors = out or sys.stdout, errors or sys.stderr

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
