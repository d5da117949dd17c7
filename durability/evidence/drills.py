"""The drills of a period, from the lake."""

from __future__ import annotations

from typing import Any

from durability.evidence.nights import Period
from durability.lake.tables import DRILLS
from durability.plan.plan import to_text

NO_TABLE = "no drill was recorded: this lake was last written by a version that kept none"
STATED = ("cluster", "kind", "predicted_from", "asked", "brokers", "controllers", "compared", "agreed", "started_by")


def read(lake: Any, period: Period) -> dict[str, Any]:
    """The member `drills` of period.json: `found`, oldest first, or None with a `reason`.

    A drill counts if its cluster was read again in the period. Of a task that was repeated, the last result counts.
    """
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

    if not lake.has(DRILLS):
        return {"found": None, "reason": NO_TABLE}
    within = And(
        GreaterThanOrEqual("captured_at", period.since.isoformat()), LessThan("captured_at", period.until.isoformat())
    )
    rows = sorted(lake.scan(DRILLS, within).to_pylist(), key=lambda row: row["recorded_at"])
    newest = {row["run_id"]: row for row in rows}
    found = sorted(newest.values(), key=lambda row: (row["captured_at"], row["cluster"]))
    return {"found": [_row(row) for row in found], "reason": None}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in STATED},
        "seen_at": to_text(row["captured_at"]),
        "seen_in": row["snapshot_id"],
        "predicted_at": to_text(row["predicted_at"]),
        "run_id": row["run_id"],
    }
