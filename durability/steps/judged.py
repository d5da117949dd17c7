"""What rules say of one snapshot: its open findings, and which resources have a verdict that shows a finding gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from durability.plain import plural
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.remedies.cluster import ClusterFacts

Evaluate = Callable[["Lake", "Plan"], None]
"""Runs the Spark job of evaluate over a plan. All results are written when it returns."""


@dataclass(frozen=True)
class Judged:
    """A snapshot's results. plan: of the evaluation. open: the open findings by id, as `of_verdict` gives them. closed: ids of
    the other verdicts. resources: control, type and name of each resource with a verdict of a control that has one per category.
    disputed: ids that the cross-check disputes. cross_checked: did it run, and confirm the others?"""

    plan: Plan
    facts: ClusterFacts
    open: Mapping[str, Mapping[str, Any]]
    closed: frozenset[str]
    resources: frozenset[tuple[str, str, str]] = frozenset()
    disputed: frozenset[str] = frozenset()
    cross_checked: bool = False

    def shows_closed(self, finding: Mapping[str, Any]) -> bool:
        """Has the finding's resource a verdict of its control, so that the finding would be open if it were there?"""
        return finding["id"] in self.closed or _resource(finding) in self.resources


@dataclass
class Together:
    """Snapshots that one job evaluates, when the first of them is asked for: a job alone takes longer than its clusters.

    snapshots: rows of accepted ones.
    """

    snapshots: Sequence[Mapping[str, Any]]
    _plans: dict[str, Plan] | None = field(default=None, init=False)

    def plan_of(self, settings: Settings, lake: Lake, cluster: str, run_id: str, evaluate: Evaluate) -> Plan | None:
        """The cluster's part of the evaluation of all; None if there is no other cluster, or if the job failed."""
        if self._plans is None:
            self._plans = self._evaluated(settings, lake, run_id, evaluate)
        return self._plans.get(cluster)

    def _evaluated(self, settings: Settings, lake: Lake, run_id: str, evaluate: Evaluate) -> dict[str, Plan]:
        from durability.steps.evaluate import JobFailed, plan_evaluation

        new = [snapshot for snapshot in self.snapshots if _of_run(settings, lake, snapshot) is None]
        if len(new) < 2:
            return {}
        plan = plan_evaluation(settings, NIGHTLY, run_id, f"{run_id}:1", new, [])
        try:
            evaluate(lake, plan)
        except JobFailed:  # each is evaluated alone, so that the fault of one costs that one
            return {}
        return {part.cluster: replace(plan, snapshots=[part], partitions=part.partitions) for part in plan.judged}


def of_snapshot(
    settings: Settings,
    lake: Lake,
    snapshot: Mapping[str, Any],
    run_id: str,
    evaluate: Evaluate,
    summary: StepSummary,
    together: Together | None = None,
) -> Judged:
    """The results of the snapshot: those of its newest complete run under this policy, else of an evaluation now.

    together: with which snapshots it is evaluated. None for none.
    """
    from durability.steps.evaluate import plan_evaluation

    plan = _of_run(settings, lake, snapshot)
    cross_checked = plan is not None
    if plan is None:
        if together is not None:
            plan = together.plan_of(settings, lake, snapshot["cluster"], run_id, evaluate)
        if plan is None:
            plan = plan_evaluation(settings, NIGHTLY, run_id, f"{run_id}:1", [snapshot], [])
            evaluate(lake, plan)
        summary.text = plural(plan.partitions, "partition")
    else:
        summary.text = f"as run {plan.run_id} did"
    return replace(results_of(lake, plan), cross_checked=cross_checked)


def _of_run(settings: Settings, lake: Lake, snapshot: Mapping[str, Any]) -> Plan | None:
    """The plan of the newest complete run that evaluated this snapshot under the policy and waivers of the settings.

    The cross-check confirmed the verdicts of a complete run, apart from those it disputes.
    """
    from durability.plan import Plan
    from durability.plan.plan import ACCEPTED, SnapshotPart, policy_part, to_text
    from durability.policy import load_policy, load_waivers
    from durability.steps.conclude import COMPLETE, INCOMPLETE

    policy = policy_part(load_policy(settings.policy), load_waivers(settings.waivers))
    for run in reversed(lake.runs(NIGHTLY)):
        same = (run["policy_name"], run["policy_sha256"]) == (policy.name, policy.sha256)
        if not same or run["status"] not in (COMPLETE, INCOMPLETE):
            continue
        for judged in run["snapshots"] or ():
            # Each reading of a document is an attempt of its own.
            names = ("cluster", "snapshot_id", "sha256")
            if all(judged[name] == snapshot[name] for name in names) and judged["status"] == ACCEPTED:
                part = SnapshotPart(
                    **{n: snapshot[n] for n in ("cluster", "status", "snapshot_id", "attempt_id", "sha256", "source")},
                    captured_at=to_text(snapshot["captured_at"]),
                    partitions=snapshot["partitions"] or 0,
                )
                return Plan(
                    run_id=run["run_id"],
                    kind=NIGHTLY,
                    result_id=run["result_id"],
                    started_at=to_text(run["started_at"]),
                    policy=policy,
                    waivers=json.loads(run["waivers"]),
                    snapshots=[part],
                    partitions=part.partitions,
                    lake=lake.location,
                )
    return None


def results_of(lake: Lake, plan: Plan) -> Judged:
    """The verdicts of a plan's one cluster. Where a cross-check differed, the finding is UNKNOWN."""
    from pyiceberg.expressions import And, EqualTo

    from durability.catalogue import CONTROLS, causes
    from durability.findings.build import of_verdict
    from durability.findings.clusters import facts_of_clusters
    from durability.findings.disputes import Disputes
    from durability.findings.reassignments import Plans
    from durability.lake.conditions import of_result
    from durability.lake.tables import DISAGREEMENTS, VERDICTS
    from durability.remedies.change.proof import OPEN

    [part] = plan.judged
    where = And(of_result(plan), EqualTo("cluster", part.cluster))
    facts = facts_of_clusters(lake, plan, Plans())[part.cluster]
    disputes = Disputes(lake.scan(DISAGREEMENTS, where))
    found: dict[str, Mapping[str, Any]] = {}
    closed: set[str] = set()
    resources: set[tuple[str, str, str]] = set()
    disputed: set[str] = set()
    per_category = {control.id for control in CONTROLS.values() if control.per_category}
    for rows in lake.parts(VERDICTS, where):
        for row in rows.to_pylist():
            if row["control"] in per_category:
                resources.add(_resource(row))
            if disputes.of(row):
                disputed.add(row["id"])
                row |= {"outcome": "UNKNOWN", "severity": None, "cause": causes.DISAGREE, "evidence": None}
            if row["outcome"] in OPEN:
                found[row["id"]] = of_verdict(row, facts)
            else:
                closed.add(row["id"])
    return Judged(plan, facts, found, frozenset(closed), frozenset(resources), frozenset(disputed))


def _resource(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["control"], row["resource_type"], row["resource"]
