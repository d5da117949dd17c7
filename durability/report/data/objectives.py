"""How long partitions were one failure away from harm, by tier, against the tier's objective.

The unit is the partition-minute. The counts of a moment apply until the next moment of its cluster. Time is unknown, and never
good, if the next moment is further away than the rule tolerates, if the moment was not read or counted nothing, and before the
first moment. Then a tier has as many partitions as at the last known moment, or else at the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import captured_from
from durability.lake.tables import HEALTH_COUNTERS, SNAPSHOTS, TIER_COUNTS
from durability.plan.plan import ACCEPTED, Plan, PolicyPart, SnapshotPart
from durability.report.data import moments

PERIODS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "30d": timedelta(days=30)}
"""The periods up to the run, by their names in findings.json. The last one decides about the objective."""
LONGEST = "30d"
HARMS = (("writes", "broker"), ("data", "broker"), ("writes", "rack"), ("data", "rack"))
"""What a loss stops or puts at risk, and what is lost, in the order of the columns ONE_FAILURE."""
STATES = ("missed", "met", "unknown")
COLUMNS = ("cluster", "captured_at", "result_id", "tiers")
AT_ONCE = 1_000
"""The most runs whose counters are in memory at once. 30 days of pulses of a hundred clusters are 900,000 rows."""
BEFORE = timedelta(days=1)
"""How long before the periods a moment may be that still applies in them."""
MINUTE_US = 60_000_000
ROUNDING = 1e-9


class Minutes(NamedTuple):
    """Partition-minutes: one failure away, unknown, and all of them."""

    near: float
    unknown: float
    all: float


@dataclass(frozen=True)
class Objective:
    """A tier's time one failure away from a harm.

    harm, loss: of HARMS.
    percent: the objective; None if the tier has none for this harm and loss.
    minutes: by period. The last one decides about the objective.
    worst: the cluster with the most partition-minutes one failure away in the last period; None if there are none.
    """

    tier: str
    harm: str
    loss: str
    percent: float | None
    minutes: Mapping[str, Minutes]
    worst: str | None = None

    @property
    def deciding(self) -> Minutes:
        return list(self.minutes.values())[-1]

    def used(self, period: str) -> float | None:
        """The share of the period's budget that is certainly used, 1 for all of it; None without an objective or a partition."""
        near, _, total = self.minutes[period]
        return near / _budget(self.percent, total) if self.percent is not None and total else None

    @property
    def state(self) -> str | None:
        """missed or met, whatever happened in unknown time; unknown otherwise. None without an objective or a partition."""
        near, unknown, total = self.deciding
        if self.percent is None or not total:
            return None
        budget = _budget(self.percent, total)
        if near > budget * (1 + ROUNDING):
            return "missed"
        return "met" if near + unknown <= budget * (1 + ROUNDING) else "unknown"

    def to_dict(self) -> dict[str, Any]:
        """An entry of `objectives` in findings.json."""
        return {
            **{name: getattr(self, name) for name in ("tier", "harm", "loss")},
            "objective": self.percent,
            "state": self.state,
            "partition_minutes": {
                period: {
                    name: round(value, 3) for name, value in zip(("one_failure_away", "unknown", "all"), m, strict=True)
                }
                for period, m in self.minutes.items()
            },
            "budget_used": {period: self.used(period) for period in self.minutes},
            "worst_cluster": self.worst,
        }


def _budget(percent: float, total: float) -> float:
    return (100 - percent) / 100 * total


@dataclass(frozen=True)
class Objectives:
    """entries: the tiers with partitions, in the policy's order. uncounted: clusters of which no partition was ever counted."""

    entries: Sequence[Objective] = ()
    uncounted: Sequence[str] = ()

    @property
    def counted(self) -> bool:
        """Is anything known?"""
        return any(m.all > m.unknown for each in self.entries for m in each.minutes.values())


def read(lake: Any, plan: Plan, gaps: Mapping[str, timedelta]) -> Objectives:
    """The time of this run's clusters one failure away from harm. Without an earlier run, nothing is read.

    lake: an object with `scan(table, where, columns)`.
    gaps: see `moments.gaps`.
    """
    if not plan.look_back and not any(part.previous_result_id for part in plan.snapshots):
        return Objectives()
    from pyiceberg.expressions import And, GreaterThanOrEqual, IsNull, NotEqualTo

    now = moments.newest(plan)
    tolerated = moments.tolerated(plan, gaps)
    start = now - PERIODS[LONGEST] - min(BEFORE, max(tolerated.values(), default=BEFORE))
    recent = GreaterThanOrEqual("captured_at", start.isoformat())
    runs = moments.runs_before(lake, plan, recent)
    unread = lake.scan(SNAPSHOTS, And(recent, NotEqualTo("status", ACCEPTED)), columns=("cluster", "captured_at"))
    ended = sorted(runs["captured_at"].to_pylist())
    edges = sorted({start, *ended[AT_ONCE::AT_ONCE], now + timedelta(microseconds=1)})
    totals = Totals(plan, tolerated, now)
    for since, until in pairwise(edges):
        here = And(captured_from(since, until), IsNull("topic"))
        counters = lake.scan(HEALTH_COUNTERS, here, columns=COLUMNS)
        first, end = (pa.scalar(moment, unread["captured_at"].type) for moment in (since, until))
        within = pc.and_(pc.greater_equal(unread["captured_at"], first), pc.less(unread["captured_at"], end))
        totals.add(moments.concluded(counters, runs, plan), unread.filter(within))
    return totals.finish()


class Judged(NamedTuple):
    """What Totals needs of a run."""

    policy: PolicyPart
    judged: Sequence[SnapshotPart] = ()


class _Moments(NamedTuple):
    """Moments as columns. cluster: a number. at: microseconds since 1970. known: was anything counted?

    size: a row per tier with its partitions. near, unknown: a row per tier and harm with partitions, none of them in both.
    """

    cluster: np.ndarray
    at: np.ndarray
    known: np.ndarray
    size: np.ndarray
    near: np.ndarray
    unknown: np.ndarray

    def take(self, which: np.ndarray) -> _Moments:
        return _Moments(*(column[..., which] for column in self))


class Totals:
    """Sums partition-minutes over moments that arrive in order of time."""

    def __init__(
        self,
        plan: Plan | Judged,
        tolerated: Mapping[str, timedelta],
        now: datetime,
        periods: Mapping[str, timedelta] = PERIODS,
    ):
        """now: the end of the periods for clusters that the run didn't evaluate. For others it is their evaluated snapshot.

        periods: the length of each, the longest one last.
        """
        self._clusters, self._policy, self._periods = sorted(tolerated), plan.policy, periods
        self._tiers = list(plan.policy.tiers)
        ends = {part.cluster: part.moment for part in plan.judged}
        self._gap = np.array([tolerated[name] / timedelta(microseconds=1) for name in self._clusters], np.int64)
        self._end = np.array([_micros(ends.get(name, now)) for name in self._clusters], np.int64)
        shape = len(periods), len(self._tiers), len(self._clusters)
        self._all = np.zeros(shape)
        self._near, self._unknown = np.zeros((2, *shape[:2], len(HARMS), shape[2]))
        self._unsized = np.zeros((shape[0], shape[2]))  # minutes before a cluster's first known moment
        self._first, self._last = np.zeros((2, *shape[1:]), np.int64)
        self._sized = np.zeros(shape[2], bool)
        self._carried: _Moments | None = None  # the last moment of each cluster: the next chunk shows its duration
        self._begun = np.zeros(shape[2], bool)

    def add(self, counters: pa.Table, unread: pa.Table) -> None:
        """Add moments later than all before.

        counters: rows of `moments.concluded` with `tiers`.
        unread: cluster and captured_at of snapshots that were not accepted. One that a run has counted is ignored.
        """
        found = _joined(self._counted(counters), self._unread(unread))
        self._add(_ordered(found if self._carried is None else _joined(self._carried, found)), last=False)

    def finish(self) -> Objectives:
        """The result. Nothing can be added afterwards."""
        if self._carried is not None:
            self._add(self._carried, last=True)
        late = self._unsized[:, None, :] * self._first[None]
        totals, unknown = self._all + late, self._unknown + late[:, :, None, :]
        found = []
        for t, tier in enumerate(self._tiers):
            for h, (harm, loss) in enumerate(HARMS):
                sums = (self._near[:, t, h].sum(1), unknown[:, t, h].sum(1), totals[:, t].sum(1))
                minutes = {period: Minutes(*(float(s[p]) for s in sums)) for p, period in enumerate(self._periods)}
                near = self._near[-1, t, h]
                worst = self._clusters[int(near.argmax())] if near.any() else None
                found.append(Objective(tier, harm, loss, self._percent(tier, harm, loss), minutes, worst))
        uncounted = [name for name, sized in zip(self._clusters, self._sized, strict=True) if not sized]
        return Objectives([each for each in found if each.deciding.all], uncounted)

    def _percent(self, tier: str, harm: str, loss: str) -> float | None:
        """The objective is about the loss of a broker, and of a rack only if the tier must survive that."""
        about = loss == "broker" or "rack" in self._policy.tiers[tier].get("survive", ())
        return self._policy.objectives.get(tier, {}).get(harm) if about else None

    def _counted(self, rows: pa.Table) -> _Moments:
        place = pc.index_in(rows["cluster"], pa.array(self._clusters, pa.string()))
        rows, place = rows.filter(place.is_valid()), place.drop_null()
        count, tiers = rows.num_rows, rows["tiers"].combine_chunks()
        values = np.full((len(TIER_COUNTS), len(self._tiers), count), -1, np.int64)
        values[0] = 0  # a tier that isn't listed has no partitions
        parent, listed = pc.list_parent_indices(tiers), pc.list_flatten(tiers)
        tier = pc.index_in(pc.struct_field(listed, "tier"), pa.array(self._tiers, pa.string()))
        mine = tier.is_valid()
        at = tier.filter(mine).to_numpy(zero_copy_only=False), parent.filter(mine).to_numpy()
        for n, name in enumerate(TIER_COUNTS):
            values[n][at] = pc.fill_null(pc.struct_field(listed, name).filter(mine), -1).to_numpy(zero_copy_only=False)
        size, numbers, unknown = values[0], values[1:-1].swapaxes(0, 1), values[-1]
        # A number that wasn't counted is unknown for all partitions. A partition is never in both.
        near = np.clip(numbers, 0, size[:, None])
        open_ = np.where((numbers < 0) | (unknown < 0)[:, None], size[:, None], unknown[:, None])
        moment = rows["captured_at"].cast(pa.int64()).to_numpy()
        known = tiers.is_valid().to_numpy(zero_copy_only=False)
        return _Moments(
            place.to_numpy().astype(np.int64), moment, known, size, near, np.minimum(open_, size[:, None] - near)
        )

    def _unread(self, rows: pa.Table) -> _Moments:
        place = pc.index_in(rows["cluster"], pa.array(self._clusters, pa.string()))
        rows, place = rows.filter(place.is_valid()), place.drop_null()
        count, tiers = rows.num_rows, len(self._tiers)
        moment = rows["captured_at"].cast(pa.int64()).to_numpy()
        none = np.zeros((tiers, len(HARMS), count), np.int64)
        known = np.zeros(count, bool)
        return _Moments(place.to_numpy().astype(np.int64), moment, known, none[:, 0], none, none)

    def _add(self, found: _Moments, last: bool) -> None:
        """last: no moment follows. Otherwise the last moment of each cluster is kept for the next time."""
        cluster, at = found.cluster, found.at
        if not len(cluster):
            return
        has_next = np.append(cluster[1:] == cluster[:-1], False)
        first = np.append(True, ~has_next[:-1])
        new = first & ~self._begun[cluster]
        self._outside(cluster[new], np.full(new.sum(), np.iinfo(np.int64).min), at[new])
        self._begun[cluster] = True
        size, sized = self._sizes(found, first, ~has_next)
        until = np.where(has_next, np.append(at[1:], 0), self._end[cluster])
        counts = has_next if not last else np.ones(len(at), bool)
        good = found.known & has_next & (until - at <= self._gap[cluster])
        self._outside(cluster[counts & ~sized], at[counts & ~sized], until[counts & ~sized])
        for p, minutes in enumerate(self._within(cluster, at, until)):
            rows = np.flatnonzero(counts & sized & (minutes > 0))
            self._sum(p, cluster[rows], minutes[rows], good[rows], size[:, rows], found.take(rows))
        if not last:
            self._carried = found.take(~has_next)

    def _sizes(self, found: _Moments, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each moment's partitions by tier, those of the last known moment if need be; and whether there is one.

        first, last: is the moment the first, or the last, of its cluster?
        """
        cluster, index = found.cluster, np.arange(len(found.cluster))
        latest = np.maximum.accumulate(np.where(found.known, index, -1))
        here = latest >= np.maximum.accumulate(np.where(first, index, 0))  # not that of another cluster
        size = np.where(here, found.size[:, latest], self._last[:, cluster])
        sized = here | self._sized[cluster]
        opening = np.flatnonzero(found.known & ~self._sized[cluster])
        which, row = np.unique(cluster[opening], return_index=True)
        self._first[:, which] = found.size[:, opening[row]]
        ends = last & here
        self._last[:, cluster[ends]] = size[:, ends]
        self._sized[cluster[ends]] = True
        return size, sized

    def _within(self, cluster: np.ndarray, since: np.ndarray, until: np.ndarray) -> Iterable[np.ndarray]:
        """For each period, the minutes of [since, until) in it."""
        end = self._end[cluster]
        for length in self._periods.values():
            begin = end - length // timedelta(microseconds=1)
            yield np.maximum(np.minimum(until, end) - np.maximum(since, begin), 0) / MINUTE_US

    def _outside(self, cluster: np.ndarray, since: np.ndarray, until: np.ndarray) -> None:
        """Time before a cluster's first known moment."""
        for p, minutes in enumerate(self._within(cluster, since, until)):
            np.add.at(self._unsized[p], cluster, minutes)

    def _sum(
        self, p: int, cluster: np.ndarray, minutes: np.ndarray, good: np.ndarray, size: np.ndarray, found: _Moments
    ) -> None:
        def by_cluster(partitions: np.ndarray) -> np.ndarray:
            return np.bincount(cluster, weights=partitions * minutes, minlength=len(self._clusters))

        for t in range(len(self._tiers)):
            self._all[p, t] += by_cluster(size[t])
            for h in range(len(HARMS)):
                self._near[p, t, h] += by_cluster(np.where(good, found.near[t, h], 0))
                self._unknown[p, t, h] += by_cluster(np.where(good, found.unknown[t, h], size[t]))


def _micros(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1_000_000)


def _joined(one: _Moments, other: _Moments) -> _Moments:
    return _Moments(*(np.concatenate(pair, axis=-1) for pair in zip(one, other, strict=True)))


def _ordered(found: _Moments) -> _Moments:
    """By cluster and time. Of a snapshot that a run counted and another one didn't read, the count stays."""
    order = np.lexsort((~found.known, found.at, found.cluster))
    found = found.take(order)
    again = (found.cluster[1:] == found.cluster[:-1]) & (found.at[1:] == found.at[:-1])
    return found.take(~np.append(False, again)) if len(order) else found
