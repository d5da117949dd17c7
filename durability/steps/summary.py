"""Reports a step's progress and outcome while a run is in progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from durability.errors import AuditError
from durability.plain import plain, plain_lines
from durability.steps import crash


@dataclass
class StepSummary:
    """What a step reports.

    text: the outcome in a few words, shown beside the step's name.
    problems: what a user has to fix, in full.
    progress: call with the numbers of done and of all items, from any thread.
    """

    text: str = ""
    problems: list[str] = field(default_factory=list)
    progress: Callable[[int, int], None] = lambda done, total: None


class StepReporter(Protocol):
    """Receives the reports of each step, for a terminal or for a journal that another process reads."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int) -> None: ...

    def problem(self, step: str, text: str) -> None: ...

    def done(self, step: str, seconds: float, text: str) -> None: ...


@contextmanager
def report_step(step: str, reporter: StepReporter, expected: tuple[type[Exception], ...] = ()) -> Iterator[StepSummary]:
    """Report a step's start, its problems, its end and its seconds, even if it fails.

    Every exception is raised again. An AuditError is reported as a problem. An error in `expected` ends a step on purpose and
    isn't reported. Any other error is reported as a crash, with the last log lines from its attribute `lines`.
    """
    started, summary = time.monotonic(), StepSummary(progress=partial(reporter.progress, step))
    reporter.started(step)
    try:
        yield summary
    except AuditError as error:
        reporter.problem(step, str(error))
        raise
    except expected:
        raise
    except Exception as error:
        reporter.problem(step, plain_lines(crash.text_of(step, error, getattr(error, "lines", ()))))
        raise
    finally:
        for problem in summary.problems:
            reporter.problem(step, plain_lines(problem))
        reporter.done(step, round(time.monotonic() - started, 1), plain(summary.text))
