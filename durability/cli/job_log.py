"""What commands that run Spark jobs share: a log of their own, and words for what failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from durability.cli import audit
from durability.cli.console import Console
from durability.errors import AuditError

T = TypeVar("T")


def logged(log: Path, console: Console, work: Callable[[], T]) -> T | None:
    """The result of `work`, run with a new log. None if a Spark job failed, which the console then says.

    An AuditError is raised again, after the problems that steps have reported.
    """
    from durability.steps.evaluate import JobFailed

    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    with audit.logging_to(log):
        try:
            return work()
        except AuditError as error:
            for problem in console.problems:
                if problem != str(error):
                    console.error(problem)
            raise
        except JobFailed as error:
            logging.getLogger("spark").error("%s", error)
            console.error(f"{error}: {log}")
            return None
