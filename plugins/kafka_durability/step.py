"""The base of all operators: runs a step of `durability.steps` as an Airflow task."""

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
    """Reports to the journal, and problems to the task's log, because scheduled runs have no reader of the journal."""

    def problem(self, step: str, text: str) -> None:
        log.error("%s", text)
        super().problem(step, text)


@contextmanager
def reported(task_id: str) -> Iterator[StepSummary]:
    """Report the step to the journal and the task's log, and turn an AuditError into a failed task.

    A user's error fails the task at once, because a retry doesn't fix it. A service that didn't answer is retried.
    """
    try:
        with report_step(task_id, TaskReporter(), (AirflowFailException, AirflowSkipException)) as summary:
            yield summary
    except Unreachable:
        raise
    except AuditError as error:
        raise AirflowFailException(str(error)) from error


def artifacts_of(settings: Settings, context: Mapping[str, Any]) -> TaskArtifacts:
    """Results that tasks of this run pass on by reference, because they grow with the fleet."""
    return TaskArtifacts(settings.lake, context["dag"].dag_id, context["run_id"])


def is_scheduled(lake: str) -> bool:
    """Is this a scheduled run? An audit from the command line already has the lake's lock."""
    return os.environ.get(run_lock.HELD) != lake


@contextmanager
def holding(lake: str, context: Mapping[str, Any], *, last: bool = False) -> Iterator[None]:
    """Lock the lake for a task of this run. Then keep a lease for the run's next task, unless this one is last or fails for good.

    Of two concurrent runs, each would take the other's results for those of the previous run.
    Raises Unreachable if another run has the lake.
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
    """Will Airflow try the task again?"""
    final = isinstance(error, AuditError) and not isinstance(error, Unreachable)
    final = final or isinstance(error, AirflowFailException | AirflowSkipException)
    return not final and context["ti"].try_number <= context["ti"].max_tries


class Step(BaseOperator):
    """An operator that runs one step. Subclasses implement `work`.

    alone: no other run may use the lake at the same time.
    """

    takes_lake = True
    """If the run is `alone`: must this step wait for the lake?"""
    last = False
    """Is this the last step that needs the lake?"""

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
        """Run the step. Returns data for the next steps: small, JSON, without secrets."""
        raise TypeError(f"{type(self).__name__} does no work")
