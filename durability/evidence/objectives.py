"""How long partitions were one failure away from harm in a period, by tier, against the objectives of the period's last run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from durability.evidence.nights import DAY, Period
from durability.lake.tables import FINDINGS, HEALTH_COUNTERS, RUNS, SNAPSHOTS
from durability.plan.plan import ACCEPTED, PolicyPart
from durability.report.data import moments, objectives

PERIOD = "period"
NOT_RECORDED = "the last run of the period has no record of its tiers"
Row = Mapping[str, Any]


def stated(policy: PolicyPart) -> dict[str, Any]:
    """What a run records of its policy, for `read`: the tiers, and how far apart two moments may be."""
    tiers = {
        name: {"survive": list(tier.get("survive") or ()), "objective": policy.objectives.get(name) or {}}
        for name, tier in policy.tiers.items()
    }
    return {"tiers": tiers, "gap_seconds": policy.readings.get("prolonged_after") or 0}


def read(lake: Any, period: Period, runs: Sequence[Row], now: datetime) -> dict[str, Any]:
    """`found`: a row per tier, harm and loss, None if `reason` says why. `uncounted`: clusters that were never counted.

    runs: the nightly runs of the period, oldest first. Time after `now` is in no share.
    """
    last = runs[-1]
    recorded = json.loads(last["summary"] or "{}").get("objectives")
    if recorded is None:
        return {"found": None, "reason": NOT_RECORDED, "uncounted": []}
    tiers = recorded["tiers"]
    policy = PolicyPart(
        name=last["policy_name"],
        sha256=last["policy_sha256"],
        tiers={name: {"survive": tier["survive"]} for name, tier in tiers.items()},
        last_tier=next(reversed(tiers), ""),
        objectives={name: tier["objective"] for name, tier in tiers.items()},
    )
    tolerated, until = _tolerated(lake, runs, recorded["gap_seconds"]), min(period.until, now)
    totals = objectives.Totals(objectives.Judged(policy), tolerated, until, {PERIOD: until - period.since})
    for counters, unread in _parts(lake, period.since - DAY, until):
        totals.add(counters, unread)
    found = totals.finish()
    return {"found": [_row(each) for each in found.entries], "reason": None, "uncounted": list(found.uncounted)}


def _row(entry: objectives.Objective) -> dict[str, Any]:
    row = entry.to_dict()
    return {**row, "partition_minutes": row["partition_minutes"][PERIOD], "budget_used": row["budget_used"][PERIOD]}


def _tolerated(lake: Any, runs: Sequence[Row], seconds: float) -> dict[str, timedelta]:
    """By cluster of the runs, how far apart two moments may be: as the last run's rule decided it, or else `seconds`."""
    from pyiceberg.expressions import And, EqualTo

    of_clusters = And(EqualTo("control", moments.CONTROL), EqualTo("resource_type", "cluster"))
    gaps = moments.gaps(lake.results(FINDINGS, runs[-1], of_clusters).select(["cluster", "observed"]))
    names = {part["cluster"] for run in runs for part in run["snapshots"] or ()}
    return {name: gaps.get(name) or timedelta(seconds=seconds) for name in names}


def _parts(lake: Any, since: datetime, until: datetime) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Day by day, the counts of whole clusters that runs concluded, and the snapshots that were not accepted."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, IsNull, LessThan, NotEqualTo

    def within(first: datetime, end: datetime) -> Any:
        return And(GreaterThanOrEqual("captured_at", first.isoformat()), LessThan("captured_at", end.isoformat()))

    runs = lake.scan(RUNS, within(since, until), ("result_id", "finished_at"))
    while since < until:
        here = within(since, min(since + DAY, until))
        counters = lake.scan(HEALTH_COUNTERS, And(here, IsNull("topic")), objectives.COLUMNS)
        unread = lake.scan(SNAPSHOTS, And(here, NotEqualTo("status", ACCEPTED)), ("cluster", "captured_at"))
        yield moments.concluded(counters, runs, None), unread
        since += DAY
