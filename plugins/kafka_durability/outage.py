"""The operators of `rack_outage`: a lost rack, what it costs, an approval, changes of topics, and the way back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk.exceptions import AirflowSkipException

from durability.errors import Unreachable
from durability.plain import plain
from durability.report import outage as report
from durability.steps import outage
from durability.steps.outage import Ids, Work
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from kafka_durability.evaluate import EvaluateJob
from kafka_durability.left import allows, connect
from kafka_durability.remediate import OF, ApproveOperator, approval
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Step, reported, run_of

if TYPE_CHECKING:
    from durability.apply.record import Approval

AGAIN_SECONDS = 20
"""Between the two readings that show a lost rack. By default Kafka fences a broker after 9 seconds."""
POLL = timedelta(seconds=30)
"""Between two looks whether the rack is back."""


class DetectOperator(Step):
    """Reads twice which racks have lost all their brokers. With the param `rack` it reads nothing.

    Returns the cluster's name and the racks that both readings have, each with its brokers. It is skipped if there is none.
    A change that isn't allowed is refused first.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, Any]:
        params = context["params"]
        outage.check(settings, params, allows)
        cluster, lost = outage.lost_now(settings, params, connect)
        if lost and not params["rack"]:
            time.sleep(AGAIN_SECONDS)
            _, again = outage.lost_now(settings, params, connect)
            lost = {rack: brokers for rack, brokers in lost.items() if rack in again}
        if not lost:
            raise AirflowSkipException(plain(f"{cluster}: each rack has a live broker"))
        summary.text = plain(f"{cluster}: {', '.join(sorted(lost))}")
        return {"cluster": cluster, "lost": lost}


class AssessOperator(EvaluateJob):
    """Takes a snapshot, evaluates it and writes what the outage costs into the log; see `outage.assess`.

    Returns the assessment, with the texts of the approval: `subject` and `body`, in Markdown.
    """

    template_fields: Sequence[str] = (*SparkJob.template_fields, "detected")

    def __init__(self, *, detected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.detected = detected

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]  # goes to XCom
        settings = Settings.from_params(context["params"])
        run_id = run_of(context)
        ids = Ids(run_id, f"{run_id}:{context['ti'].try_number}")
        with reported(self.task_id) as summary:
            assessed = outage.assess(
                settings,
                self.detected["cluster"],
                self.detected["lost"],
                connect,
                ids,
                lambda lake, plan: self.evaluate(context, lake, plan),
                summary,
            )
            texts = {"subject": report.subject(assessed), "body": report.page(assessed), OF: assessed["result_id"]}
            self.log.info("%s\n\n%s", texts["subject"], texts["body"])
            return assessed | texts


class ApproveOutageOperator(ApproveOperator):
    """`ApproveOperator`, skipped with the task after it if there is nothing to approve. shown: the assessment."""

    def execute(self, context: Any) -> Any:
        if why := outage.needs_approval(self.shown, context["params"]):
            raise AirflowSkipException(why)
        if context["params"]["give_up_elr"]:
            self.params["give_up_elr"] = True
        return super().execute(context)


class ChangeOperator(Step):
    """Changes the topics that still need it, once approved. Returns how many, by what was done."""

    template_fields: Sequence[str] = ("assessed", "approved")

    def __init__(self, *, assessed: Any, approved: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.assessed, self.approved = assessed, approved

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, int]:
        throttle, approved = context["params"]["throttle"], approval(self.approved, self.assessed[OF])
        work = Work(settings, self.assessed["cluster"], run_of(context), throttle, approved)
        give_up_elr = bool(self.approved["params_input"].get("give_up_elr"))
        return outage.change(work, self.assessed, give_up_elr, connect, allows, summary)


class LookingStep(Step):
    """Looks until it is done. Between two looks it is deferred, so that it takes no slot. Subclasses implement `look`.

    It goes on where runs before this one were killed: what they changed is in the lake. An outage lasts long, so a cluster or a
    lake that doesn't answer is looked at again. approve: the id of the task that approves; its rejection must not skip this task.
    """

    def __init__(self, *, approve: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.approve = approve

    def execute(self, context: Mapping[str, Any]) -> Any:
        return self.again(context)

    def again(self, context: Mapping[str, Any], event: Any = None) -> None:
        """event: the timer's."""
        settings = Settings.from_params(context["params"])
        with reported(self.task_id) as summary:
            try:
                cluster = outage.cluster_of(settings, context["params"])
                work = Work(settings, cluster, run_of(context), context["params"]["throttle"], self._approval(context))
                if not outage.is_open(work):
                    raise AirflowSkipException("nothing is left to put back")
                done = self.look(work, summary)
                self.log.info("%s", summary.text)
            except Unreachable as error:
                self.log.warning("%s", error)
                done = False
        if not done:
            self.defer(trigger=TimeDeltaTrigger(POLL), method_name="again")

    def _approval(self, context: Mapping[str, Any]) -> Approval | None:
        """The approval of this run, if there was one."""
        answer = context["ti"].xcom_pull(task_ids=self.approve)
        return approval(answer, answer[OF]) if answer else None

    def look(self, work: Work, summary: StepSummary) -> bool:
        """Is it done?"""
        raise TypeError(f"{type(self).__name__} doesn't look")


class WatchOperator(LookingStep):
    """Waits until a topic can be put back: its rack is back, its replicas are in sync, and no ELR is left."""

    def look(self, work: Work, summary: StepSummary) -> bool:
        return outage.is_ready(work, connect, allows, summary)


class RestoreOutageOperator(LookingStep):
    """Puts back each topic as soon as it can be. What others set meanwhile stays, and is named in the log."""

    def look(self, work: Work, summary: StepSummary) -> bool:
        return outage.restore(work, connect, allows, summary)
