"""The operators of `remediate`: a proven plan of change, its approval, its application, and what became of the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from durability.plain import plain
from durability.plan.plan import to_text
from durability.runtime.folders import OwnedFolder
from durability.steps import remediate, verified
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from kafka_durability.evaluate import EvaluateJob
from kafka_durability.left import allows, connect
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Step, reported, run_of

if TYPE_CHECKING:
    from durability.apply.record import Approval
    from durability.lake import Lake
    from durability.plan import Plan


OF = "of"
"""What an approval is for: a plan's SHA-256, or the result of an assessment. A cleared task may have made another one."""
GIVEN_UP = "given_up_changes"
"""What an approval gives up, as the approver saw it: `recorded.change_names`."""


class MakePlanOperator(EvaluateJob):
    """Makes and proves a plan, or finds the one that the param `plan` names. Returns it in a few values: `applied.brief`.

    Params of an application that isn't allowed are refused first, before the lake or a cluster is read.
    """

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]  # goes to XCom
        params = context["params"]
        settings = Settings.from_params(params)
        with reported(self.task_id) as summary, OwnedFolder("durability-proof-") as scratch:
            remediate.check(settings, params, allows)

            def evaluate(lake: Lake, plan: Plan) -> None:
                # Other hosts of a Spark cluster can't read the proof's lake, which is in this folder.
                here = Path(lake.location).is_relative_to(scratch)
                self.evaluate(context, lake, plan, here=here)

            planned = remediate.plan(settings, params, connect, evaluate, scratch)
            summary.text = plain(planned["plan"])
            return planned


class PlannedStep(Step):
    """A step after `plan`. planned: the result of that task. approved: the result of `ApproveOperator`."""

    template_fields: Sequence[str] = ("planned", "approved")

    def __init__(self, *, planned: Any, approved: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.planned, self.approved = planned, approved

    def application(self, settings: Settings, context: Mapping[str, Any]) -> remediate.Application:
        """The plan with its approval. Skips the task without one."""
        by = approval(self.approved, self.planned["sha256"])
        if by is None:
            raise AirflowSkipException("the plan was not approved, so nothing was applied")
        given_up = self.approved.get(GIVEN_UP) or ()  # none in the answer of an earlier release
        return remediate.Application(settings, self.planned, run_of(context), by, given_up)


class ReportPlanOperator(PlannedStep):
    """Writes the plan into the task's log.

    Returns what is asked in the approval: `subject` and `body`, in Markdown, OF and GIVEN_UP.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, Any]:
        subject, body, given_up = remediate.shown(settings, self.planned, context["params"], connect, summary)
        self.log.info("%s\n\n%s", subject, body)
        return {"subject": subject, "body": body, OF: self.planned["sha256"], GIVEN_UP: given_up}


class AllowedOperator(PlannedStep):
    """Skipped, with all tasks after it, unless the plan is to be applied. Fails if it isn't offered, or not allowed."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> None:
        if why := remediate.ends_after_plan(settings, context["params"], self.planned, allows):
            raise AirflowSkipException(plain(why))


class ApproveOperator(ApprovalOperator):
    """Waits for an approval of the plan, for the hours in the param `approve_within`. Without an answer it is rejected.

    A rejection skips the tasks after it. shown: the result of `ReportPlanOperator`. params: `settings.approve_params`. Returns
    the answer with what was asked, OF and GIVEN_UP, as it was when the approver was asked.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "shown")

    def __init__(self, *, shown: Any, **kwargs: Any):
        super().__init__(
            subject="",
            defaults=[self.REJECT],
            response_timeout=timedelta(hours=1),  # of the param, which is known when it runs
            **kwargs,
        )
        self.shown = shown

    def execute(self, context: Any) -> Any:
        self.response_timeout = timedelta(hours=context["params"]["approve_within"])
        self.subject, self.body = self.shown["subject"], self.shown["body"]
        for key in (OF, GIVEN_UP):
            context["ti"].xcom_push(key=key, value=self.shown[key])
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        if given := event.get("params_input"):
            # An answer by API may leave out fields of the form: they have the form's defaults, so give_up_elr is off. Without
            # this, Airflow fails the task and asks again.
            event = {**event, "params_input": {**self.params.dump(), **given}}
        answer = super().execute_complete(context, event)
        return {**answer, **{key: context["ti"].xcom_pull(task_ids=self.task_id, key=key) for key in (OF, GIVEN_UP)}}


def approval(approved: Mapping[str, Any] | None, of: str) -> Approval | None:
    """Who approved, as `ApproveOperator` returned it; None without an approval. Fails if the approval is for something else.

    of: what is to be done, see OF.
    """
    from durability.apply.record import Approval

    if not approved or approved["chosen_options"] != [ApprovalOperator.APPROVE]:
        return None
    if approved[OF] != of:
        raise AirflowFailException(
            "what was approved has been made again since: clear the task `approve`, and approve it as it is now"
        )
    user, at = approved["responded_by_user"], approved["responded_at"]
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return Approval(user["name"] or user["id"], moment, (approved["params_input"] or {}).get("comment") or None)


class ApplyOperator(PlannedStep):
    """Applies the plan. Returns the ids of the steps that are complete, and what was left as others changed it.

    Fails if the application stopped. A restarted task goes on where the earlier one was. A stopped one does after `restore`.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, Any]:
        application, params = self.application(settings, context), context["params"]
        if (by := application.approval) is not None:
            self._say(f"approved by {by.by} at {to_text(by.at)}; throttle {params['throttle']:,} bytes per second")
        outcome = remediate.apply(application, params, connect, allows, self._say)
        summary.text = remediate.counts(outcome)
        summary.problems += outcome.left
        if outcome.stopped is not None:
            raise AirflowFailException(plain(f"stopped at step {outcome.stopped}: {outcome.why}. {summary.text}"))
        return {"done": list(outcome.done), "left": list(outcome.left)}

    def _say(self, text: str) -> None:
        self.log.info("%s", plain(text))


class RestoreOperator(PlannedStep):
    """Takes back the throttles that the application left, in any case. Skipped if nothing was applied."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> list[str]:
        if not self.planned:  # the task `plan` failed, and this one runs nevertheless
            raise AirflowSkipException("no plan was made, so nothing was applied")
        stays = remediate.restore(self.application(settings, context), connect, allows)
        summary.text = f"{len(stays)} left" if stays else "as before"
        summary.problems += stays
        return stays


class VerifyOperator(EvaluateJob):
    """Reads and evaluates the cluster again, and writes what became of each targeted finding.

    Fails if a finding is left that the plan's proof promised to fix. applied: the result of `ApplyOperator`.
    """

    template_fields: Sequence[str] = (*SparkJob.template_fields, "planned", "approved", "applied")

    def __init__(self, *, planned: Any, approved: Any, applied: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.planned, self.approved, self.applied = planned, approved, applied

    def execute(self, context: Mapping[str, Any]) -> str:  # type: ignore[override]  # goes to XCom
        settings = Settings.from_params(context["params"])
        run_id = f"{run_of(context)}:seen"
        ids = run_id, f"{run_id}:{context['ti'].try_number}"
        with reported(self.task_id) as summary:
            made = remediate.signed(approval(self.approved, self.planned["sha256"])) | self.applied
            evaluate = partial(self.evaluate, context)
            found = verified.verify(settings, self.planned, made, connect, ids, evaluate, summary)
            if left := verified.broken_promises(found):
                raise AirflowFailException(f"the plan's proof promised to fix these findings: {', '.join(left)}")
            return summary.text
