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
    if not lake.has(DRILLS):
        return {"found": None, "reason": NO_TABLE}
    # All rows, as a task that was repeated later may have read the cluster again after the period.
    rows = sorted(lake.scan(DRILLS).to_pylist(), key=lambda row: row["recorded_at"])
    newest = {row["run_id"]: row for row in rows}
    within = [row for row in newest.values() if period.has(row["captured_at"])]
    found = sorted(within, key=lambda row: (row["captured_at"], row["cluster"]))
    return {"found": [_row(row) for row in found], "reason": None}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in STATED},
        "seen_at": to_text(row["captured_at"]),
        "seen_in": row["snapshot_id"],
        "predicted_at": to_text(row["predicted_at"]),
        "run_id": row["run_id"],
    }
