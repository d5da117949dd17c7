"""What every operator of an audit shares: how a step of `durability.steps` becomes an Airflow task."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from durability.errors import AuditError, Unreachable
from durability.runtime import run_lock
from durability.steps.journal import JournalReporter
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, report_step
from durability.steps.task_artifacts import TaskArtifacts

log = logging.getLogger("airflow.task")


class TaskReporter(JournalReporter):
    """Writes to the journal, and each problem to the task's log: on a schedule nobody reads a journal."""

    def problem(self, step: str, text: str) -> None:
        log.error("%s", text)
        super().problem(step, text)


@contextmanager
def reported(task_id: str) -> Iterator[StepSummary]:
    """Report the step to the journal and the task's log, and turn an AuditError into a failed task.

    A retry doesn't fix what a user caused, so such a task fails at once. A service that didn't answer is retried.
    """
    try:
        with report_step(task_id, TaskReporter(), (AirflowFailException, AirflowSkipException)) as summary:
            yield summary
    except Unreachable:
        raise
    except AuditError as error:
        raise AirflowFailException(str(error)) from error


def artifacts_of(settings: Settings, context: Mapping[str, Any]) -> TaskArtifacts:
    """What the tasks of this run hand on by a reference, since it grows with the fleet."""
    return TaskArtifacts(settings.lake, context["dag"].dag_id, context["run_id"])


def is_scheduled(lake: str) -> bool:
    """Did no audit of the command line start this run? That audit would have the lake's lock already."""
    return os.environ.get(run_lock.HELD) != lake


@contextmanager
def holding(lake: str, context: Mapping[str, Any], *, last: bool = False) -> Iterator[None]:
    """Have the lake for a task of this run, and then for the run's next task, unless it is the last or fails for good.

    Two runs at once would each take the other's results for those of the run before. Raises Unreachable if another run has
    the lake.
    """
    if not is_scheduled(lake):
        yield
        return
    run, goes_on = run_of(context), not last
    with run_lock.shared(lake, run):
        try:
            yield
        except BaseException as error:
            goes_on = _is_retried(error, context)
            raise
        finally:
            if goes_on:
                run_lock.renew(lake, run)
            else:
                run_lock.end(lake, run)


def run_of(context: Mapping[str, Any]) -> str:
    """The run's name in the lake."""
    return f"{context['dag'].dag_id}:{context['run_id']}"


def _is_retried(error: BaseException, context: Mapping[str, Any]) -> bool:
    """Does Airflow try the task again?"""
    final = isinstance(error, AuditError) and not isinstance(error, Unreachable)
    final = final or isinstance(error, AirflowFailException | AirflowSkipException)
    return not final and context["ti"].try_number <= context["ti"].max_tries


class Step(BaseOperator):
    """An operator that runs one step; subclasses implement `work`.

    alone: no other run may use the lake meanwhile.
    """

    takes_lake = True
    """Does it wait for the lake where the run is `alone`?"""
    last = False
    """Is it the last step that needs the lake?"""

    def __init__(self, *, alone: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.alone = alone

    def execute(self, context: Mapping[str, Any]) -> Any:
        settings = Settings.from_params(context["params"])
        with reported(self.task_id) as summary, ExitStack() as stack:
            if self.alone and self.takes_lake:
                stack.enter_context(holding(settings.lake, context, last=self.last))
            return self.work(settings, context, summary)

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> Any:
        """The step itself; returns what the next steps need: small, JSON, without secrets."""
        raise TypeError(f"{type(self).__name__} does no work")
