"""What a step reports of itself during a run, and to whom."""

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
    """`text`: what came of the step, in a few words, shown beside its name. `problems`: what a user has to fix, in full.
    `progress`: call it with how many of how many are done; any thread may."""

    text: str = ""
    problems: list[str] = field(default_factory=list)
    progress: Callable[[int, int], None] = lambda done, total: None


class StepReporter(Protocol):
    """Receives the reports of each step: a terminal, or a journal that another process reads."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int) -> None: ...

    def problem(self, step: str, text: str) -> None: ...

    def done(self, step: str, seconds: float, text: str) -> None: ...


@contextmanager
def report_step(step: str, reporter: StepReporter, expected: tuple[type[Exception], ...] = ()) -> Iterator[StepSummary]:
    """Report a step's start, its problems, and its end with the seconds it took, also of one that fails.

    Every exception goes on to the caller. An AuditError is reported as a problem; any other as the step's crash, unless it is
    one of `expected`, with which a step ends on purpose. The last lines of a log come from the exception's `lines`.
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


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "cluster"), counted(1200, "partition")
    ('1 cluster', '1,200 partitions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
