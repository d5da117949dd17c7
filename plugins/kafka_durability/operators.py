"""One operator per step of an audit; each wraps the function of `durability.steps` with its name.

XCom carries references and counts only; what grows with the fleet goes through `durability.steps.task_artifacts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from durability.resources import create_private
from durability.runtime import out_lock
from durability.steps import collect, conclude, cross_check, discard, findings, gate, notify, plan, publish, report
from durability.steps.results import Collected, Gated
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from durability.steps.task_artifacts import KEEP_DAYS, TaskArtifacts
from kafka_durability.assets import announce
from kafka_durability.hook import KafkaHook
from kafka_durability.slack import webhook
from kafka_durability.step import Step, artifacts_of, is_scheduled

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.posture import Flagged

IN_TIME = 0.8
"""Part of the collect task's execution timeout for reading; the rest is for staging what was read last."""


class PlanOperator(Step):
    """Checks policy, waivers and clusters, makes the lake's tables where missing, and partitions the sources into groups.

    Returns the groups; with none, while the clusters file lists no cluster, the rest of the run is skipped. Also removes the
    artifacts of earlier runs of this DAG that are too old for clearing their tasks.
    """

    def __init__(self, *, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.kind = kind

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> list[list[dict]]:
        groups = plan.plan(settings, self.kind, summary)
        artifacts_of(settings, context).prune(KEEP_DAYS[self.kind])
        if not groups:
            self.log.warning("%s lists no cluster, so this run ends here: name one there", settings.clusters)
        return groups


class CollectOperator(Step):
    """Reads a group of sources and stages what it read; commits nothing.

    Returns a reference to `Collected`. Every source has attempts or a failure there, so this task succeeds also when none
    could be read.
    """

    template_fields = ("group",)

    def __init__(self, *, group: list[dict], **kwargs: Any):
        super().__init__(**kwargs)
        self.group = group

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        # A cluster that isn't read in time is missing by name; a task that Airflow ends would lose the others as well.
        seconds = (self.execution_timeout or timedelta(hours=1)).total_seconds() * IN_TIME
        results = collect.collect(settings, self.group, lambda c: KafkaHook(c).settings(), seconds, summary)
        ti = context["ti"]
        name = f"collect-{ti.map_index}-{ti.try_number}"
        return {"results": artifacts_of(settings, context).put(name, asdict(results))}


class GateOperator(Step):
    """Checks each snapshot against itself, and counts the sources against what was planned. Returns a reference to `Gated`."""

    template_fields = ("planned", "collected")

    def __init__(self, *, planned: Any, collected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.planned, self.collected = planned, collected

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        if self.planned == []:
            raise AirflowSkipException(f"{settings.clusters} lists no cluster; see the task `plan`")
        if not self.planned:
            raise AirflowFailException("nothing was planned; see the task `plan`")
        artifacts = artifacts_of(settings, context)
        gated = gate.gate(settings, self.planned, collected_groups(artifacts, self.collected), summary)
        return {"gated": artifacts.put("gate", asdict(gated))}


class PublishOperator(Step):
    """Commits accepted snapshots and writes the `snapshots` rows, last; a pulse writes these rows alone.

    Returns references to the rows that the run judges or finds missing, and to what the gate saw.
    """

    template_fields = ("gated",)

    def __init__(self, *, gated: Any, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.gated, self.kind = gated, kind

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        artifacts = artifacts_of(settings, context)
        gated = Gated.from_dict(artifacts.get(self.gated["gated"]))
        rows = publish.publish(settings, self.kind, gated, summary)
        return {"published": artifacts.put("publish", rows), **self.gated}


class EvaluatedStep(Step):
    """A step after `evaluate`. evaluated: what that returned; flagged: what `CrossCheckOperator` returned."""

    template_fields: Sequence[str] = ("evaluated", "flagged")

    def __init__(self, *, evaluated: Any, flagged: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated, self.flagged = evaluated, flagged

    def plan(self, settings: Settings, context: Mapping[str, Any]) -> Plan:
        """The run's plan, as `evaluate` left it."""
        from durability.plan import Plan

        return Plan.from_json(artifacts_of(settings, context).get(self.evaluated["plan"]))

    def checked(self) -> Flagged:
        """What the cross-check found."""
        from expectations.posture import Flagged

        return Flagged(**self.flagged)


class CrossCheckOperator(EvaluatedStep):
    """Has Great Expectations decide the scalar verdicts again; differences become UNKNOWN. Returns `Flagged` as a dict."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict:
        return asdict(cross_check.cross_check(settings, self.plan(settings, context), summary))


class FindingsOperator(EvaluatedStep):
    """Words verdicts and differences as findings, for every reader, and writes the `runs` row. Returns how many there are."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> int:
        return findings.findings(settings, self.plan(settings, context), self.checked(), summary)


class ReportOperator(EvaluatedStep):
    """Writes findings.json, findings.csv and report.html. Returns their paths; events of its outlets have the counts."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        plan = self.plan(settings, context)
        with self._alone_in(settings):
            files = report.report(settings, plan, self.checked(), summary)
        announce(context, self.outlets, plan.run_id, files["findings.json"])
        return {name: str(path) for name, path in files.items()}

    def _alone_in(self, settings: Settings) -> AbstractContextManager[None]:
        """The reports of another audit aren't replaced while it writes them; one that started this run has the folder's lock."""
        if not is_scheduled(settings.lake):
            return nullcontext()
        create_private(settings.out)
        return out_lock.held([settings.out])


class NotifyOperator(Step):
    """Sends the run's digest to Slack where there is a Connection for it; failing to doesn't fail the audit."""

    takes_lake = False  # a catalog that doesn't answer must not fail the audit for a digest's sake
    template_fields = ("reported",)

    def __init__(self, *, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.reported = reported

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        notify.notify(settings, Path(self.reported["findings.json"]), webhook, self.log, summary)
        return summary.text


class ConcludeOperator(EvaluatedStep):
    """Fails unless the run is complete and verified. It comes last, so that the report is out then."""

    last = True

    template_fields = (*EvaluatedStep.template_fields, "reported")

    def __init__(self, *, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.reported = reported

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        plan = self.plan(settings, context)
        status = conclude.conclude(plan, self.checked(), summary)
        if status != conclude.COMPLETE:
            raise AirflowFailException(f"the run is {status}. {'; '.join(conclude.unjudged(plan) or summary.problems)}")
        return status


class ConcludePulseOperator(EvaluatedStep):
    """Writes a pulse's `runs` row with its counters as the summary; fails if a cluster could not be read."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        plan = self.plan(settings, context)
        status = conclude.conclude_pulse(settings, plan, summary)
        if status != conclude.COMPLETE:
            raise AirflowFailException(f"the pulse is incomplete. {'; '.join(conclude.unjudged(plan))}")
        return status


class DiscardOperator(Step):
    """Removes what a pulse staged, whatever became of the pulse. Returns how many files."""

    template_fields = ("collected",)

    def __init__(self, *, collected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.collected = collected

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> int:
        groups = collected_groups(artifacts_of(settings, context), self.collected)
        return discard.discard(settings, groups, summary)


def collected_groups(artifacts: TaskArtifacts, collected: Sequence[Mapping[str, str] | None] | None) -> list[Collected]:
    """The groups' results; nothing of a task that brought none.

    Read as a slice: of what mapped tasks give, Airflow finds the end otherwise by asking for one more than there are, and
    its client logs an error for that.
    """
    references = [c["results"] for c in (collected[:] if collected else ()) if c]
    return [Collected.from_dict(artifacts.get(reference)) for reference in references]
