"""Counts over time: the valid rows of `health_counters`, and how far apart two of them may be."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import of_result
from durability.lake.tables import FINDINGS, HEALTH_COUNTERS, RUNS
from durability.plan.plan import Plan

CONTROL = "at-min-isr-over-time"
COLUMNS = (
    *("cluster", "captured_at", "result_id", "unknown", "offline", "under_min_isr", "under_min_isr_by_configuration"),
    *("at_min_isr", "at_min_isr_by_configuration"),
)
"""Columns of `health_counters` that timelines and trends read."""


def readings(lake: Any, plan: Plan) -> pa.Table:
    """This run's findings of CONTROL on whole clusters. lake: an object with `scan(table, where, columns)`."""
    from pyiceberg.expressions import And, EqualTo

    result = of_result(plan)
    clusters = And(EqualTo("control", CONTROL), EqualTo("resource_type", "cluster"))
    return lake.scan(FINDINGS, And(result, clusters), columns=("cluster", "outcome", "category", "observed"))


def gaps(readings: pa.Table) -> dict[str, timedelta]:
    """By cluster, the longest time between two moments for which the first one's counts apply until the second.

    The rule decides it (`gap_after_seconds`). Zero if the rule could not evaluate the cluster.
    """
    found = {r["cluster"]: json.loads(r["observed"] or "{}").get("gap_after_seconds") for r in readings.to_pylist()}
    return {cluster: timedelta(seconds=seconds or 0) for cluster, seconds in found.items()}


def tolerated(plan: Plan, gaps: Mapping[str, timedelta]) -> dict[str, timedelta]:
    """By cluster of the run, how far apart two moments may be: see `gaps`, or else the policy's `prolonged_after`."""
    prolonged = timedelta(seconds=plan.policy.readings.get("prolonged_after") or 0)
    return {part.cluster: gaps.get(part.cluster) or prolonged for part in plan.snapshots}


def newest(plan: Plan) -> datetime:
    """The time of the newest evaluated snapshot, in UTC; the run's start if there is none."""
    return max((part.moment for part in plan.judged), default=datetime.fromisoformat(plan.started_at)).astimezone(UTC)


def runs_before(lake: Any, plan: Plan, recent: Any) -> pa.Table:
    """result_id, captured_at and finished_at of other runs up to this one. recent: a condition on `captured_at`."""
    runs = lake.scan(RUNS, recent, columns=("result_id", "captured_at", "finished_at"))
    runs = runs.filter(pc.not_equal(runs["result_id"], plan.result_id))
    return runs.filter(pc.less_equal(runs["captured_at"], pa.scalar(newest(plan), runs["captured_at"].type)))


def read(lake: Any, plan: Plan, recent: Any, columns: tuple[str, ...], clusters: Collection[str] = ()) -> pa.Table:
    """Valid rows of whole clusters. recent: a condition on `captured_at`. clusters: all if empty."""
    from pyiceberg.expressions import And, In, IsNull

    whole = And(recent, IsNull("topic"))
    counters = lake.scan(
        HEALTH_COUNTERS, And(whole, In("cluster", list(clusters))) if clusters else whole, columns=columns
    )
    return concluded(counters, lake.scan(RUNS, recent, columns=("result_id", "finished_at")), plan)


def concluded(counters: pa.Table, runs: pa.Table, plan: Plan | None) -> pa.Table:
    """The rows whose result is in `runs`, or the plan's if there is one, without `result_id`, sorted by time in each cluster.

    If two results counted the same moment, the one that finished last counts. The plan's result is the last of all.
    """
    own = [{"result_id": plan.result_id, "finished_at": datetime.max.replace(tzinfo=UTC)}] if plan else []
    names = pa.schema([RUNS.arrow.field(name) for name in ("result_id", "finished_at")])
    finished = pa.concat_tables([pa.Table.from_pylist(own, names), runs.select(names.names)])
    place = pc.index_in(counters["result_id"], finished["result_id"].combine_chunks())
    counters, place = counters.drop_columns(["result_id"]).filter(place.is_valid()), place.drop_null()
    cluster = counters["cluster"].combine_chunks().dictionary_encode().indices.to_numpy()
    at = counters["captured_at"].cast(pa.int64()).to_numpy()
    ended = finished["finished_at"].cast(pa.int64()).to_numpy()[place.to_numpy()]
    order = np.lexsort((ended, at, cluster))
    cluster, at = cluster[order], at[order]
    counted_again = (cluster[1:] == cluster[:-1]) & (at[1:] == at[:-1])
    return counters.take(pa.array(order[~np.append(counted_again, np.zeros(min(1, len(order)), bool))]))
