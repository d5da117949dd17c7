"""Step conclude: the run's status and its row in `runs`. Readers see a result once that row exists.

The row of a nightly run is written with its findings, before the report. So no report names a run that the lake doesn't have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durability.lake.conditions import of_result
from durability.plain import plain
from durability.plan.inventory import Inventory
from durability.plan.plan import COUNTED, from_text
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan.plan import Earlier, Plan, SnapshotPart
    from expectations.posture import Flagged

COMPLETE, INCOMPLETE, UNVERIFIED = "complete", "incomplete", "unverified"


def commit(lake: Lake, plan: Plan, flagged: Flagged) -> str:
    """Write a nightly run's row, computed from its findings, and return its status. If written twice, the newest counts."""

    from durability.evidence import objectives
    from durability.lake.tables import FINDINGS
    from durability.report.data import results

    result = of_result(plan)
    counted = lake.scan(FINDINGS, result, columns=results.COUNTED)
    summary = results.summarise(counted, [part.cluster for part in plan.snapshots])
    status = status_of(plan, flagged)
    recorded = {**summary, "objectives": objectives.stated(plan.policy)}
    lake.commit_run(run_row(plan, status, flagged.verified, recorded))
    return status


def status_of(plan: Plan, flagged: Flagged) -> str:
    """UNVERIFIED if the cross-check didn't confirm the verdicts, INCOMPLETE if a cluster wasn't evaluated, else COMPLETE."""
    if not flagged.verified:
        return UNVERIFIED
    return INCOMPLETE if unjudged(plan) else COMPLETE


def conclude(plan: Plan, flagged: Flagged, summary: StepSummary) -> str:
    """A nightly run's status (`status_of`). `summary` gets the reasons if the verdicts aren't verified."""
    if not flagged.verified:
        summary.problems += flagged.problems or ["the second check of the verdicts did not confirm them"]
    summary.text = status_of(plan, flagged)
    return summary.text


def conclude_pulse(settings: Settings, plan: Plan, summary: StepSummary) -> str:
    """Write a pulse's row with its counters and return its status. A pulse has no cross-check."""
    from durability.lake.tables import COUNTED as CATEGORIES

    status = INCOMPLETE if unjudged(plan) else COMPLETE
    lake = settings.open_lake()
    row = run_row(plan, status, None, {})
    counters = _summed_counters(lake, row)
    lake.commit_run({**row, "summary": json.dumps(counters)})
    unhealthy = {name: counters[name] for name in CATEGORIES if counters[name] and name != "partitions"}
    summary.text = f"{status}; " + (", ".join(f"{name} {n:,}" for name, n in unhealthy.items()) or "all healthy")
    return status


def unjudged(plan: Plan) -> list[str]:
    """The clusters that the run could not evaluate, each with the reason."""
    return [plain(f"{s.cluster}: {s.reason or s.status}") for s in plan.snapshots if not s.judged]


def _summed_counters(lake: Lake, run: Mapping[str, Any]) -> dict[str, int | None]:
    """The number of evaluated clusters, and the sums of their `health_counters`; None: not known of every cluster."""
    from pyiceberg.expressions import IsNull

    from durability.lake import tables

    rows = lake.results(tables.HEALTH_COUNTERS, run, IsNull("topic"))
    counted = {name: sum(rows[name].to_pylist()) for name in tables.COUNTED}
    one_failure: dict[str, int | None] = {}
    for name in tables.ONE_FAILURE:
        values = rows[name].to_pylist()
        one_failure[name] = None if None in values else sum(values)  # a sum of some clusters would look like all
    return {"clusters": rows.num_rows, **counted, **one_failure}


def run_row(plan: Plan, status: str, verified: bool | None, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The run's row of `runs` (`durability.lake.tables.RUNS`).

    `snapshots` includes the earlier ones that this run counted, so that no later run counts them again.
    """
    started = from_text(plan.started_at)
    earlier = plan.look_back.uncounted if plan.look_back else []
    return {
        "run_id": plan.run_id,
        "result_id": plan.result_id,
        "kind": plan.kind,
        "captured_at": max((s.moment for s in plan.judged), default=started),
        "started_at": started,
        "finished_at": datetime.now(UTC),
        "status": status,
        "verified": verified,
        "policy_name": plan.policy.name,
        "policy_sha256": plan.policy.sha256,
        "waivers": json.dumps(plan.waivers),
        "snapshots": [_snapshot(s, s.status, s.reason) for s in plan.snapshots]
        + [_snapshot(e, COUNTED, None) for e in earlier],
        "summary": json.dumps(summary),
        "inventory": _inventory(plan),
    }


def _inventory(plan: Plan) -> str | None:
    """A run of a fleet without inventories is recorded, too: so other fleets in the lake aren't taken for it."""
    if plan.inventory is None and plan.fleet is None:
        return None
    return (plan.inventory or Inventory(fleet=plan.fleet)).record()


def _snapshot(part: SnapshotPart | Earlier, status: str, reason: str | None) -> dict[str, Any]:
    named = {name: getattr(part, name) for name in ("cluster", "snapshot_id", "attempt_id", "sha256")}
    captured = from_text(part.captured_at) if part.captured_at else None
    return {**named, "captured_at": captured, "status": status, "reason": reason}
