"""One operator per step of an audit. Each wraps the function of the same name in `durability.steps`.

XCom contains references and counts only. Larger data is passed through `durability.steps.task_artifacts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from durability.plan.plan import to_text
from durability.resources import create_private
from durability.runtime import out_lock
from durability.steps import (
    alert,
    collect,
    conclude,
    cross_check,
    discard,
    evidence,
    findings,
    gate,
    notify,
    plan,
    publish,
    report,
)
from durability.steps.results import Collected, Gated
from durability.steps.settings import NIGHTLY, PULSE, Settings
from durability.steps.summary import StepSummary
from durability.steps.task_artifacts import KEEP_DAYS, TaskArtifacts
from kafka_durability.assets import announce
from kafka_durability.channels import channels_of, heartbeat
from kafka_durability.hook import KafkaHook
from kafka_durability.signing import signing_key
from kafka_durability.slack import webhook
from kafka_durability.step import Step, artifacts_of, is_scheduled, run_of

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.posture import Flagged

IN_TIME = 0.8
"""The part of the collect task's execution timeout for reading. The rest is for staging the last clusters."""


class PlanOperator(Step):
    """Validates policy, waivers and clusters, creates missing tables of the lake, and partitions the sources into groups.

    Returns the groups. If the clusters file lists no cluster, there are none and the rest of the run is skipped. Also removes
    artifacts of this DAG's runs that are too old to clear their tasks.
    """

    def __init__(self, *, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.kind = kind

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> list[list[dict]]:
        groups = plan.plan(settings, self.kind, summary, scheduled=is_scheduled(settings.lake))
        artifacts_of(settings, context).prune(KEEP_DAYS[self.kind])
        if not groups:
            self.log.warning("%s lists no cluster, so this run ends here: name one there", settings.clusters)
        return groups


class CollectOperator(Step):
    """Reads a group of sources and stages the facts. Nothing is committed.

    Returns a reference to `Collected`. Every source in it has attempts or a failure. So this task succeeds even if no source
    could be read.

    keep: also keep the documents for the run's evidence.
    """

    template_fields = ("group",)

    def __init__(self, *, group: list[dict], keep: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.group, self.keep = group, keep

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        # A cluster not read in time is reported by name. If Airflow ended the task, all clusters would be lost.
        seconds = (self.execution_timeout or timedelta(hours=1)).total_seconds() * IN_TIME
        results = collect.collect(
            settings, self.group, lambda c: KafkaHook(c).settings(), seconds, summary, keep=self.keep
        )
        ti = context["ti"]
        name = f"collect-{ti.map_index}-{ti.try_number}"
        return {"results": artifacts_of(settings, context).put(name, asdict(results))}


class GateOperator(Step):
    """Checks each snapshot for contradictions and each planned source for a result. Returns a reference to `Gated`.

    A nightly run's Data Docs get the gate's pages.
    """

    template_fields = ("planned", "collected")

    def __init__(self, *, planned: Any, collected: Any, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.planned, self.collected, self.kind = planned, collected, kind

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        if self.planned == []:
            raise AirflowSkipException(f"{settings.clusters} lists no cluster; see the task `plan`")
        if not self.planned:
            raise AirflowFailException("nothing was planned; see the task `plan`")
        artifacts = artifacts_of(settings, context)
        run = (run_of(context), to_text(context["dag_run"].start_date)) if self.kind == NIGHTLY else None
        gated = gate.gate(settings, self.planned, collected_groups(artifacts, self.collected), summary, run)
        return {"gated": artifacts.put("gate", asdict(gated))}


class PublishOperator(Step):
    """Commits accepted snapshots, then writes the `snapshots` rows. A pulse writes these rows only.

    Returns references to the rows of the clusters in this run, and to the attempts after the gate.
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
    """A step after `evaluate`. evaluated: the result of that task. flagged: the result of `CrossCheckOperator`."""

    template_fields: Sequence[str] = ("evaluated", "flagged")

    def __init__(self, *, evaluated: Any, flagged: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated, self.flagged = evaluated, flagged

    def plan(self, settings: Settings, context: Mapping[str, Any]) -> Plan:
        """The run's plan, made by `evaluate`."""
        from durability.plan import Plan

        return Plan.from_json(artifacts_of(settings, context).get(self.evaluated["plan"]))

    def checked(self) -> Flagged:
        """The result of the cross-check."""
        from expectations.posture import Flagged

        return Flagged(**self.flagged)


class CrossCheckOperator(EvaluatedStep):
    """Computes scalar verdicts again with Great Expectations. Differences become UNKNOWN. Returns `Flagged` as a dict."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict:
        return asdict(cross_check.cross_check(settings, self.plan(settings, context), summary))


class FindingsOperator(EvaluatedStep):
    """Writes findings with text from verdicts and differences, and the `runs` row. Returns how many were written."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> int:
        return findings.findings(settings, self.plan(settings, context), self.checked(), summary)


class ReportOperator(EvaluatedStep):
    """Writes the files of a report (`durability.report.build`), and attests them. Returns their paths.

    Events of its outlets have the counts.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> dict[str, str]:
        plan = self.plan(settings, context)
        with self._alone_in(settings):
            files = report.report(settings, plan, self.checked(), summary)
            evidence.attest(settings, plan, self.checked(), files, signing_key, self.log, summary)
        announce(context, self.outlets, plan.run_id, files["findings.json"])
        return {name: str(path) for name, path in files.items()}

    def _alone_in(self, settings: Settings) -> AbstractContextManager[None]:
        """Locks the folder, so that no other audit replaces the reports. A command that started this run has the lock already."""
        if not is_scheduled(settings.lake):
            return nullcontext()
        create_private(settings.out)
        return out_lock.held([settings.out])


class NotifyOperator(Step):
    """Sends the run's digest to Slack if there is a Connection for it. A failure doesn't fail the audit.

    Runs after a failure, too. Then there is no report, and `tell_slack` reports the failure.
    """

    takes_lake = False  # a catalog that doesn't answer must not fail the audit because of a digest
    template_fields = ("reported",)

    def __init__(self, *, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.reported = reported

    def execute(self, context: Mapping[str, Any]) -> Any:
        if not self.reported:
            raise AirflowSkipException("no report was written")
        return super().execute(context)

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        notify.notify(settings, Path(self.reported["findings.json"]), webhook, self.log, summary)
        return summary.text


class ConcludeOperator(EvaluatedStep):
    """Fails unless the run is complete and verified. It comes after `report`, so the report is already written."""

    last = True

    template_fields = (*EvaluatedStep.template_fields, "reported")

    def __init__(self, *, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.reported = reported

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        plan = self.plan(settings, context)
        status = conclude.conclude(plan, self.checked(), summary)
        heartbeat(NIGHTLY, self.log)
        if status != conclude.COMPLETE:
            raise AirflowFailException(f"the run is {status}. {'; '.join(conclude.unjudged(plan) or summary.problems)}")
        return status


class ConcludePulseOperator(EvaluatedStep):
    """Writes a pulse's `runs` row with its counters. Fails if a cluster could not be read."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        plan = self.plan(settings, context)
        status = conclude.conclude_pulse(settings, plan, summary)
        heartbeat(PULSE, self.log)
        if status != conclude.COMPLETE:
            raise AirflowFailException(f"the pulse is incomplete. {'; '.join(conclude.unjudged(plan))}")
        return status


class AlertOperator(EvaluatedStep):
    """Opens and closes alerts from a pulse, and sends what is due to the receivers that have a Connection.

    Runs after a failure, too: what earlier pulses decided is sent, and Alertmanager gets open alerts again. A receiver that
    can't be reached doesn't fail the task.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        plan = self.plan(settings, context) if self.evaluated else None
        alert.alert(settings, plan, run_of(context), channels_of, self.log, summary)
        return summary.text


class DiscardOperator(Step):
    """Removes a pulse's staged files, even if the pulse failed. Returns how many."""

    template_fields = ("collected",)

    def __init__(self, *, collected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.collected = collected

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> int:
        groups = collected_groups(artifacts_of(settings, context), self.collected)
        return discard.discard(settings, groups, summary)


def collected_groups(artifacts: TaskArtifacts, collected: Sequence[Mapping[str, str] | None] | None) -> list[Collected]:
    """The results of all groups. A task without a result is left out.

    Read as a slice. Otherwise Airflow finds the end of mapped results by requesting one too many, and its client logs an
    error for that.
    """
    references = [c["results"] for c in (collected[:] if collected else ()) if c]
    return [Collected.from_dict(artifacts.get(reference)) for reference in references]
