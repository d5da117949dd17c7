"""How long partitions were one failure away from harm in a period, by tier.

The last run of the period that has a tier decides the tier's objective.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.evidence.nights import DAY, Period
from durability.lake.conditions import captured_from
from durability.lake.tables import FINDINGS, HEALTH_COUNTERS, RUNS, SNAPSHOTS
from durability.plan.plan import ACCEPTED, PolicyPart
from durability.report.data import moments, objectives

PERIOD = "period"
WEEK = 7 * DAY
"""So much of the counts is read at once. Less would take more plans of scans, and more would take more memory."""
LATE = timedelta(days=2)
"""How long after the period a run may have counted a snapshot of it."""
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

    `other_tiers`: tiers that were counted, but that no run has a record of. Their partitions are in no number.

    runs: the nightly runs of the period, oldest first. Time after `now` is in no share.
    """
    # A run of documents has another policy, and decides nothing, as for nights.
    runs = [run for run in runs if run.get("inventory")] or runs
    last = runs[-1]
    recorded = json.loads(last["summary"] or "{}").get("objectives")
    if recorded is None:
        return {"found": None, "reason": NOT_RECORDED, "uncounted": [], "other_tiers": []}
    # A tier that was renamed or removed had partitions in the period, too. The last run that has it decides.
    each = (json.loads(run["summary"] or "{}").get("objectives") or {"tiers": {}} for run in runs)
    tiers = {name: tier for one in each for name, tier in one["tiers"].items()}
    policy = PolicyPart(
        name=last["policy_name"],
        sha256=last["policy_sha256"],
        tiers={name: {"survive": tier["survive"]} for name, tier in tiers.items()},
        last_tier=next(reversed(tiers), ""),
        objectives={name: tier["objective"] for name, tier in tiers.items()},
    )
    tolerated, until = _tolerated(lake, runs, recorded["gap_seconds"]), min(period.until, now)
    totals = objectives.Totals(objectives.Judged(policy), tolerated, until, {PERIOD: until - period.since})
    others: set[str] = set()
    # The moment after the end shows how long the last one before it applies.
    for counters, unread in _parts(lake, period.since - DAY, min(period.until + LATE, now)):
        totals.add(counters, unread)
        others.update(_tiers(counters.filter(pc.less(counters["captured_at"], until))) - tiers.keys())
    found = totals.finish()
    return {
        "found": [_row(each) for each in found.entries],
        "reason": None,
        "uncounted": list(found.uncounted),
        "other_tiers": sorted(others),
    }


def _tiers(counters: pa.Table) -> set[str]:
    counted = counters["tiers"].combine_chunks().flatten()
    return set(counted.field("tier").unique().to_pylist()) - {None}


def _row(entry: objectives.Objective) -> dict[str, Any]:
    row = entry.to_dict()
    return {**row, "partition_minutes": row["partition_minutes"][PERIOD], "budget_used": row["budget_used"][PERIOD]}


def _tolerated(lake: Any, runs: Sequence[Row], seconds: float) -> dict[str, timedelta]:
    """By cluster of the runs, how far apart two moments may be: as the last run's rule decided it, or else `seconds`."""
    from pyiceberg.expressions import And, EqualTo

    of_clusters = And(EqualTo("control", moments.CONTROL), EqualTo("resource_type", "cluster"))
    of_last = And(EqualTo("result_id", runs[-1]["result_id"]), of_clusters)
    gaps = moments.gaps(lake.scan(FINDINGS, of_last, ("cluster", "observed")))
    names = {part["cluster"] for run in runs for part in run["snapshots"] or ()}
    return {name: gaps.get(name) or timedelta(seconds=seconds) for name in names}


def _parts(lake: Any, since: datetime, until: datetime) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Week by week, the counts of whole clusters that runs concluded, and the snapshots that were not accepted."""
    from pyiceberg.expressions import And, IsNull, NotEqualTo

    runs = lake.scan(RUNS, captured_from(since, until), ("result_id", "finished_at"))
    while since < until:
        here = captured_from(since, min(since + WEEK, until))
        counters = lake.scan(HEALTH_COUNTERS, And(here, IsNull("topic")), objectives.COLUMNS)
        unread = lake.scan(SNAPSHOTS, And(here, NotEqualTo("status", ACCEPTED)), ("cluster", "captured_at"))
        yield moments.concluded(counters, runs, None), unread
        since += WEEK
