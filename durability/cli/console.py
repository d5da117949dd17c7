"""Progress of an audit on the terminal: the running step, a line per finished step, and the first problems once a run goes on.

Rich draws it, without colours under NO_COLOR or in a file, and with a spinner on terminals only. Paths, commands and the lines
of a log aren't wrapped, so that they can be copied and searched. `width` is for prose.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console as RichConsole
from rich.status import Status
from rich.text import Text

from durability.plain import plain, plain_lines

EARLY = 3
"""The most problems of a step that are shown when another step starts. The end of the run shows all of them in full."""


class Console:
    """Writes short lines: `line` and `done` to standard output, `error` to standard error.

    It is a `StepReporter` that shows the first line of a problem when the next step starts, and has all of them in `problems`. A
    step that ends the run has no next step, and its problems are shown once, as errors.
    """

    def __init__(self, out: TextIO | None = None, errors: TextIO | None = None):
        self._out = RichConsole(file=out, highlight=False)
        self._errors = RichConsole(file=errors, stderr=errors is None, highlight=False)
        self._status: Status | None = None
        self.problems: list[str] = []
        self._unshown: list[str] = []

    @property
    def colour(self) -> bool:
        """Whether standard output supports colours."""
        return self._out.is_terminal and not self._out.no_color

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None in a file."""
        return self._out.width if self._out.is_terminal else None

    def line(self, text: str = "") -> None:
        """One line of plain text."""
        self._out.print(Text(plain(text)), soft_wrap=True)

    def coloured(self, text: str) -> None:
        """Print lines with ANSI colours. Text from clusters and files in them must be `plain` already."""
        self._out.print(Text.from_ansi(text, end=""), soft_wrap=True)

    def draw(self, renderable: object) -> None:
        """Print a table or another Rich object."""
        self._out.print(renderable)

    def error(self, text: str) -> None:
        self._errors.print(Text.assemble(("error: ", "bold red"), plain_lines(text)), soft_wrap=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """On a terminal, show the running step in the last line."""
        if not self._out.is_terminal:
            yield
            return
        with self._out.status("") as self._status:
            try:
                yield
            finally:
                self._status = None

    def started(self, step: str) -> None:
        """
        >>> console = Console()
        >>> console.problem("collect", "us-logs: connection refused")
        >>> console.started("gate")
            us-logs: connection refused
        """
        found, self._unshown = self._unshown, []
        more = [f"and {len(found) - EARLY:,} more"] if len(found) > EARLY else []
        for text in (*found[:EARLY], *more):
            self._out.print(Text(f"    {plain(text)}", "yellow"), soft_wrap=True)
        if self._status is not None:
            self._status.update(Text(f"{step} …"))

    def progress(self, step: str, done: int, total: int) -> None:
        if self._status is not None and total > 1:
            self._status.update(Text(f"{step} … {done:,} of {total:,}"))

    def problem(self, step: str, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            self._unshown.append(text.partition("\n")[0])

    def done(self, step: str, seconds: float, text: str) -> None:
        """
        >>> Console().done("collect", 2.134, "1 cluster")
          collect        2.1 s  1 cluster
        """
        self._out.print(
            Text.assemble((f"  {step:<11}", "bold"), f"{seconds:7.1f} s  {plain(text)}".rstrip()), soft_wrap=True
        )
