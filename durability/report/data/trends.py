"""The last year: the failures of each nightly run, and how long partitions were at min ISR or worse, day by day.

The counts of a moment apply until the next one. If the two are further apart than the rule tolerates, the time in between is
unknown. The time after a moment is also unknown if it found no unhealthy partition but could not read everything. Levels are
those of `spark_jobs.history.readings.level`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import captured_from
from durability.lake.tables import HEALTH_COUNTERS, RUNS
from durability.plan.plan import Plan
from durability.report.data import moments

YEAR = 366
FEWEST = 3
"""The fewest days of history for a trend."""
AT_ONCE = 3_000
"""The most runs whose counters are in memory at once. A year of pulses of a hundred clusters is ten million rows."""
DAY_US = 86_400_000_000
UNREAD = -1


class Days(NamedTuple):
    """Minutes per day, oldest first: `seen`, and of these the minutes at min ISR, under it, and offline (the worst counts)."""

    seen: np.ndarray
    at: np.ndarray
    under: np.ndarray
    offline: np.ndarray

    @property
    def order(self) -> tuple[float, float, float]:
        """A sort key. Descending is worst first."""
        return self.offline.sum(), self.under.sum(), self.at.sum()


class Night(NamedTuple):
    """A nightly run's failures by severity. day: its number, from 0. status: as in `runs`."""

    day: int
    status: str
    severities: Mapping[str, int]


@dataclass(frozen=True)
class Trends:
    """`days` days from `first` on. clusters: this run's clusters with any count, worst first."""

    first: date
    days: int
    nights: Sequence[Night] = ()
    clusters: Sequence[tuple[str, Days]] = ()

    @property
    def fleet(self) -> Days:
        """The sum of all clusters' minutes."""
        return Days(*np.sum([days for _, days in self.clusters], axis=0))


def read(lake: Any, plan: Plan, severities: Mapping[str, int], gaps: Mapping[str, timedelta]) -> Trends | None:
    """The year up to this run for its clusters; None if the lake has fewer than FEWEST days of it.

    lake: an object with `scan(table, where, columns)`.
    severities: this run's failures. Its row in `runs` isn't needed.
    gaps: see `moments.gaps`. A cluster without an entry tolerates the policy's `prolonged_after`.
    """
    if not plan.look_back and not any(part.previous_result_id for part in plan.snapshots):
        return None
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull

    now = moments.newest(plan)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = today - timedelta(days=YEAR - 1)
    recent = GreaterThanOrEqual("captured_at", start.isoformat())
    runs = moments.runs_before(lake, plan, recent)
    days = sorted(pc.floor_temporal(runs["captured_at"], unit="day").to_pylist())
    if len(set(days)) + 1 < FEWEST:
        return None
    nightly = lake.scan(
        RUNS, And(recent, EqualTo("kind", "nightly")), columns=("captured_at", "finished_at", "status", "summary")
    )

    # The first chunk starts with the year, because a run may count snapshots that are older than all rows of `runs`.
    edges = sorted({start, *days[AT_ONCE::AT_ONCE], today + timedelta(days=1)})

    def counters() -> Iterable[pa.Table]:
        for since, until in pairwise(edges):
            here = And(captured_from(since, until), IsNull("topic"))
            yield lake.scan(HEALTH_COUNTERS, here, columns=moments.COLUMNS)

    tolerated = moments.tolerated(plan, gaps)
    measured = minutes(counters(), runs, plan, tolerated, start)
    found = {night.day: night for night in _nights(nightly, tolerated, start, now)}
    found[YEAR - 1] = Night(YEAR - 1, "this run", severities)
    return _trimmed(start.date(), sorted(found.values()), measured)


def minutes(
    chunks: Iterable[pa.Table], runs: pa.Table, plan: Plan, tolerated: Mapping[str, timedelta], start: datetime
) -> dict[str, Days]:
    """By cluster, the minutes of each day of the year from `start` on.

    chunks: cluster rows of HEALTH_COUNTERS, oldest first.
    runs: result_id and finished_at; see `moments.concluded`.
    tolerated: by cluster, how far apart moments may be.
    """
    names = sorted(tolerated)
    gap = np.array([tolerated[name] / timedelta(microseconds=1) for name in names], np.int64)
    totals = np.zeros((4, len(names) * YEAR))  # by level
    carried = [np.zeros(0, np.int64)] * 3  # the last moment of each cluster: the next chunk shows its duration
    for chunk in chunks:
        rows = moments.concluded(chunk, runs, plan)
        place = pc.index_in(rows["cluster"], pa.array(names, pa.string()))
        rows = rows.filter(place.is_valid())
        at = rows["captured_at"].cast(pa.int64()).to_numpy() - int(start.timestamp() * 1_000_000)
        found = (place.drop_null().to_numpy().astype(np.int64), at, levels(rows))
        cluster, at, level = (np.concatenate(pair) for pair in zip(carried, found, strict=True))
        order = np.lexsort((at, cluster))
        cluster, at, level = cluster[order], at[order], level[order]
        has_next = np.append(cluster[1:] == cluster[:-1], np.zeros(min(1, len(cluster)), bool))
        carried = [column[~has_next] for column in (cluster, at, level)]
        lasts = np.append(np.diff(at), np.zeros(min(1, len(at)), np.int64))
        known = has_next & (lasts <= gap[cluster]) & (level != UNREAD)
        _add(totals, cluster[known], at[known], lasts[known], level[known])
    by_cluster = totals.reshape(4, len(names), YEAR) / 60e6
    measured = {n: Days(by_cluster[:, i].sum(0), *by_cluster[1:, i]) for i, n in enumerate(names)}
    return {name: days for name, days in measured.items() if days.seen.any()}


def levels(rows: pa.Table) -> np.ndarray:
    """3 offline, 2 under min ISR, 1 at min ISR, 0 none; UNREAD. Partitions at a level by configuration don't count."""

    def where(condition: pa.ChunkedArray) -> np.ndarray:
        return pc.fill_null(condition, False).to_numpy()

    by_configuration = pc.fill_null(rows["under_min_isr_by_configuration"], 0)
    kinds = [
        where(pc.greater(rows["offline"], 0)),
        where(pc.greater(rows["under_min_isr"], by_configuration)),
        where(pc.greater(rows["at_min_isr"], rows["at_min_isr_by_configuration"])),
        where(pc.greater(rows["unknown"], 0)),
    ]
    return np.select(kinds, [3, 2, 1, UNREAD], 0).astype(np.int64)


def _add(totals: np.ndarray, cluster: np.ndarray, at: np.ndarray, lasts: np.ndarray, level: np.ndarray) -> None:
    """Add each duration to the days that it covers. at: microseconds since the first day."""
    while len(at):
        here = np.minimum(lasts, DAY_US - at % DAY_US)
        slot = cluster * YEAR + at // DAY_US
        for one in range(len(totals)):
            mine = level == one
            totals[one] += np.bincount(slot[mine], weights=here[mine], minlength=totals.shape[1])
        more = lasts > here
        cluster, level = cluster[more], level[more]
        at, lasts = (at + here)[more], (lasts - here)[more]


def _nights(nightly: pa.Table, clusters: Iterable[str], start: datetime, now: datetime) -> Iterable[Night]:
    """Nightly runs that evaluated one of the clusters, in the order in which they finished."""
    mine = set(clusters)
    for row in sorted(nightly.to_pylist(), key=lambda r: r["finished_at"]):
        summary = json.loads(row["summary"] or "{}")
        if mine & set(summary.get("clusters") or ()) and row["captured_at"] <= now and "severities" in summary:
            yield Night((row["captured_at"] - start).days, row["status"], summary["severities"])


def _trimmed(start: date, nights: Sequence[Night], measured: Mapping[str, Days]) -> Trends | None:
    """The trends without the days before the first known day; None if fewer than FEWEST days are known."""
    known = {night.day for night in nights}.union(*(np.flatnonzero(days.seen).tolist() for days in measured.values()))
    if len(known) < FEWEST:
        return None
    skip = min(known)
    clusters = [(name, Days(*(of_day[skip:] for of_day in days))) for name, days in measured.items()]
    clusters.sort(key=lambda c: c[1].order, reverse=True)
    nights = [night._replace(day=night.day - skip) for night in nights]
    return Trends(start + timedelta(days=skip), YEAR - skip, nights, clusters)
