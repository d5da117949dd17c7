"""Finds the earlier snapshots that the readings over time (KIP-427) need, while a run's plan is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from durability.lake.attempt import FULL
from durability.plan.plan import ACCEPTED, Earlier, LookBack, to_text
from durability.policy.model import Readings

if TYPE_CHECKING:
    from durability.lake import Lake


def look_back(
    lake: Lake, readings: Readings, judged: Sequence[Mapping[str, Any]], counted: AbstractSet[tuple[str, str]]
) -> LookBack | None:
    """The earlier snapshots for the readings over time; None if the lake has none.

    judged: rows of `snapshots`, one per cluster. The look-back of a cluster ends at its captured_at.
    counted: (cluster, snapshot_id) of the full snapshots whose partition health a run has counted. A pulse needs no entry:
        its health is counted in its own run, or it has no facts.
    """
    moments = {row["cluster"]: row["captured_at"] for row in judged}
    if not moments:
        return None
    length = readings.look_back
    since = min(moments.values()) - length
    earlier = [
        row
        for row in lake.snapshots(since=since)
        if row["cluster"] in moments
        and moments[row["cluster"]] - length <= row["captured_at"] < moments[row["cluster"]]
    ]
    if not earlier:
        return None
    uncounted = [
        Earlier(
            cluster=row["cluster"],
            captured_at=to_text(row["captured_at"]),
            snapshot_id=row["snapshot_id"],
            attempt_id=row["attempt_id"],
            sha256=row["sha256"],
            partitions=row["partitions"] or 0,
        )
        for row in earlier
        if row["status"] == ACCEPTED and row["kind"] == FULL and (row["cluster"], row["snapshot_id"]) not in counted
    ]
    return LookBack(to_text(since), dict(Counter(row["cluster"] for row in earlier)), uncounted)
