"""Step conclude: the row in `runs`, from which a run's results exist for every reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from expectations.posture import Flagged

COMPLETE, INCOMPLETE, UNVERIFIED = "complete", "incomplete", "unverified"


def conclude(settings: Settings, plan: Plan, flagged: Flagged, findings: Path, summary: StepSummary) -> str:
    """Writes a nightly run's row and returns its status.

    COMPLETE; INCOMPLETE: a cluster could not be judged; UNVERIFIED: the cross-check didn't confirm the verdicts.
    """
    from durability.report.files import load

    status = UNVERIFIED if not flagged.verified else INCOMPLETE if unjudged(plan) else COMPLETE
    settings.open_lake().commit_run(run_row(plan, status, flagged.verified, load(findings)["summary"]))
    if not flagged.verified:
        summary.problems += flagged.problems or ["the second check of the verdicts did not confirm them"]
    summary.text = status
    return status


def conclude_pulse(settings: Settings, plan: Plan, summary: StepSummary) -> str:
    """Writes a pulse's row, its counters as the summary, and returns its status. Its verdicts are Spark's alone."""
    status = INCOMPLETE if unjudged(plan) else COMPLETE
    lake = settings.open_lake()
    row = run_row(plan, status, None, {})
    counters = _summed_counters(lake, row)
    lake.commit_run({**row, "summary": json.dumps(counters)})
    unhealthy = {name: n for name, n in counters.items() if n and name not in ("clusters", "partitions")}
    summary.text = f"{status}; " + (", ".join(f"{name} {n:,}" for name, n in unhealthy.items()) or "all healthy")
    return status


def unjudged(plan: Plan) -> list[str]:
    """Names of the clusters that the run could not judge."""
    return [s.cluster for s in plan.snapshots if not s.judged]


def _summed_counters(lake: Lake, run: Mapping[str, Any]) -> dict[str, int]:
    """How many clusters a result judged, and its `health_counters` summed over them."""
    from pyiceberg.expressions import IsNull

    from durability.lake.tables import COUNTED, HEALTH_COUNTERS

    rows = lake.results(HEALTH_COUNTERS, run, IsNull("topic"))
    return {"clusters": rows.num_rows, **{name: sum(rows[name].to_pylist()) for name in COUNTED}}


def run_row(plan: Plan, status: str, verified: bool | None, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The row of `runs` for a plan: columns of `durability.lake.tables.RUNS`."""
    started = datetime.fromisoformat(plan.started_at)
    columns = ("cluster", "snapshot_id", "attempt_id", "status", "reason", "sha256")
    captured = {s.cluster: datetime.fromisoformat(s.captured_at) if s.captured_at else None for s in plan.snapshots}
    judged = [moment for s in plan.judged if (moment := captured[s.cluster]) is not None]
    return {
        "run_id": plan.run_id,
        "result_id": plan.result_id,
        "kind": plan.kind,
        "captured_at": max(judged, default=started),
        "started_at": started,
        "finished_at": datetime.now(UTC),
        "status": status,
        "verified": verified,
        "policy_name": plan.policy.name,
        "policy_sha256": plan.policy.sha256,
        "waivers": json.dumps(plan.waivers),
        "snapshots": [
            {**{c: getattr(s, c) for c in columns}, "captured_at": captured[s.cluster]} for s in plan.snapshots
        ]
        + _counted_earlier(plan),
        "summary": json.dumps(summary),
    }


def _counted_earlier(plan: Plan) -> list[dict[str, Any]]:
    """Entries of a `runs` row for the earlier snapshots that the run counted: no later run counts them again."""
    from durability.plan.plan import COUNTED

    earlier = plan.look_back.uncounted if plan.look_back else []
    kept = ("cluster", "snapshot_id", "attempt_id", "sha256")
    return [
        {
            **{name: getattr(e, name) for name in kept},
            "captured_at": datetime.fromisoformat(e.captured_at),
            "status": COUNTED,
            "reason": None,
        }
        for e in earlier
    ]
