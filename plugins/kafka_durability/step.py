"""What every operator of an audit shares: how a step of `durability.steps` becomes an Airflow task."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from durability.errors import AuditError, Unreachable
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


class Step(BaseOperator):
    """An operator that runs one step; subclasses implement `work`."""

    def execute(self, context: Mapping[str, Any]) -> Any:
        with reported(self.task_id) as summary:
            return self.work(Settings.from_params(context["params"]), context, summary)

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> Any:
        """The step itself; returns what the next steps need: small, JSON, without secrets."""
        raise TypeError(f"{type(self).__name__} does no work")
