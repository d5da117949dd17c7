"""The last year: what each nightly run found, and how long partitions were at min ISR or worse, day by day.

A moment counted by a pulse or a run lasts to the next one, unless they are further apart than readings over time tolerate
(`gap_after_seconds` of the cluster's own finding; where it has none, what is prolonged): then nothing is known in between,
and a day without any known minute is a gap, no zero. A moment that found nothing and could not read everything isn't known
either. Levels are as `spark_jobs.history.readings.level` has them. A lake with fewer days than FEWEST has no trend.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import HEALTH_COUNTERS, RUNS
from durability.report.data import timeline

YEAR = 366
FEWEST = 3
WORST = 5
AT_ONCE = 3_000
"""Runs whose counters are read at once: a year of pulses of a hundred clusters is ten million rows."""
COLUMNS = tuple(name for name in timeline.COLUMNS if name != "snapshot_id")
SEVERITIES = ("critical", "warning")
DAY_US = 86_400_000_000
UNREAD = -1


@dataclass(frozen=True)
class Days:
    """Minutes of each day, oldest first: `seen`, and of these `at`, `under` and `offline`, each but the worse ones."""

    seen: np.ndarray
    at: np.ndarray
    under: np.ndarray
    offline: np.ndarray

    @property
    def order(self) -> tuple[float, float, float]:
        """The worse, the greater."""
        return self.offline.sum(), self.under.sum(), self.at.sum()


@dataclass(frozen=True)
class Night:
    """A nightly run's failed findings by severity; `status`: as in `runs`."""

    day: int
    status: str
    severities: Mapping[str, int]


@dataclass(frozen=True)
class Trends:
    """From `first` on, a day each; `clusters`: those of this run with anything counted, the worst first."""

    first: date
    days: int
    nights: Sequence[Night] = ()
    clusters: Sequence[tuple[str, Days]] = field(default_factory=tuple)

    @property
    def fleet(self) -> Days | None:
        """All clusters' minutes added up."""
        if not self.clusters:
            return None
        return Days(*(sum(getattr(d, n) for _, d in self.clusters) for n in ("seen", "at", "under", "offline")))


def read(lake, plan, severities: Mapping[str, int]) -> Trends | None:
    """The year up to this run, of its clusters; None where the lake has fewer than FEWEST days of it.

    `lake`: anything with `scan(table, where, columns)`. severities: this run's failed findings, whose row in `runs` isn't
    there yet.
    """
    if not plan.look_back and not any(part.previous_result_id for part in plan.snapshots):
        return None
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, LessThan

    now = max((datetime.fromisoformat(p.captured_at) for p in plan.judged), default=None)
    now = now or datetime.fromisoformat(plan.started_at)
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight - timedelta(days=YEAR - 1)
    recent = GreaterThanOrEqual("captured_at", start.isoformat())
    runs = lake.scan(RUNS, recent, columns=("result_id", "captured_at", "finished_at"))
    runs = runs.filter(pc.less_equal(runs["captured_at"], pa.scalar(now, runs["captured_at"].type)))
    if len(pc.unique(pc.floor_temporal(runs["captured_at"], unit="day"))) + 1 < FEWEST:
        return None
    nightly = lake.scan(
        RUNS,
        And(recent, EqualTo("kind", "nightly")),
        columns=("result_id", "captured_at", "finished_at", "status", "summary"),
    )

    def chunks() -> Iterator[pa.Table]:
        for since, until in windows(runs, start, now):
            here = And(GreaterThanOrEqual("captured_at", since.isoformat()), LessThan("captured_at", until.isoformat()))
            yield lake.scan(HEALTH_COUNTERS, And(here, IsNull("topic")), columns=COLUMNS)

    gaps = timeline.gaps(timeline.verdicts(lake, plan)) if plan.look_back else {}
    prolonged = timedelta(seconds=plan.policy.readings.get("prolonged_after") or 0)
    tolerated = {part.cluster: gaps.get(part.cluster) or prolonged for part in plan.snapshots}
    measured = minutes(chunks(), finished_of(runs, plan), tolerated, start)
    found = nights(nightly, plan, now, severities, start)
    return trimmed(Trends(start.date(), YEAR, found, sorted(measured.items(), key=lambda c: c[1].order, reverse=True)))


def windows(runs: pa.Table, start: datetime, now: datetime) -> list[tuple[datetime, datetime]]:
    """[since, until) of whole days, together the time from `start` to `now`, each with about AT_ONCE runs."""
    moments = np.sort(runs["captured_at"].cast(pa.int64()).to_numpy())[::AT_ONCE][1:]
    edges = sorted({start, *(_moment(int(m) // DAY_US * DAY_US) for m in moments), now + timedelta(microseconds=1)})
    return list(pairwise(edges))


def finished_of(runs: pa.Table, plan) -> pa.Table:
    """result_id and finished_at of what counts, this run's last."""
    mine = pa.table(
        {"result_id": [plan.result_id], "finished_at": pa.array([np.iinfo(np.int64).max], pa.int64())},
    )
    others = runs.select(["result_id", "finished_at"])
    others = others.set_column(1, "finished_at", others["finished_at"].cast(pa.int64()))
    return pa.concat_tables([others, mine])


def minutes(
    chunks: Iterator[pa.Table], finished: pa.Table, tolerated: Mapping[str, timedelta], start: datetime
) -> dict[str, Days]:
    """By cluster the minutes of each day from `start` on.

    chunks: cluster rows of HEALTH_COUNTERS, oldest chunk first. finished: as `finished_of` has it; of a moment counted twice
    the result finished last counts. tolerated: by cluster how far apart moments may be.
    """
    names = sorted(tolerated)
    gap = np.array([tolerated[name] / timedelta(microseconds=1) for name in names], np.int64)
    first = int(start.timestamp() * 1_000_000)
    totals = np.zeros((4, len(names) * YEAR))  # by level
    carried = tuple(np.zeros(0, np.int64) for _ in range(3))
    for chunk in chunks:
        cluster, at, level = (
            np.concatenate(pair) for pair in zip(carried, _moments(chunk, finished, names), strict=True)
        )
        order = np.lexsort((at, cluster))
        cluster, at, level = cluster[order], at[order], level[order]
        follows = np.append(cluster[1:] == cluster[:-1], False)
        carried = tuple(column[~follows] for column in (cluster, at, level))
        lasts = np.append(np.diff(at), 0)
        known = follows & (lasts <= gap[cluster]) & (level != UNREAD)
        _add(totals, cluster[known], at[known] - first, lasts[known], level[known])
    by_cluster = totals.reshape(4, len(names), YEAR) / 60e6
    found = {n: Days(by_cluster[:, i].sum(0), *by_cluster[1:, i]) for i, n in enumerate(names)}
    return {name: days for name, days in found.items() if days.seen.any()}


def _moments(rows: pa.Table, finished: pa.Table, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows that count, once a moment: the cluster (an index of names), when (microseconds since 1970), and the level."""
    cluster = pc.index_in(rows["cluster"], pa.array(names, pa.string()))
    result = pc.index_in(rows["result_id"], finished["result_id"].combine_chunks())
    counts = pc.and_(cluster.is_valid(), result.is_valid())
    rows, cluster, result = rows.filter(counts), cluster.filter(counts), result.filter(counts)
    cluster = cluster.to_numpy().astype(np.int64)
    at, level = rows["captured_at"].cast(pa.int64()).to_numpy(), levels(rows)
    ended = finished["finished_at"].to_numpy()[result.to_numpy()]
    order = np.lexsort((ended, at, cluster))
    cluster, at, level = cluster[order], at[order], level[order]
    last = np.append((cluster[1:] != cluster[:-1]) | (at[1:] != at[:-1]), True) if len(at) else np.zeros(0, bool)
    return cluster[last], at[last], level[last]


def levels(rows: pa.Table) -> np.ndarray:
    """3 offline, 2 under min ISR, 1 at it, 0 none; UNREAD. What the configuration alone brings about doesn't count."""

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
    """Adds what lasts to its days, each part to its own; at: microseconds since the first day."""
    while len(at):
        here = np.minimum(lasts, DAY_US - at % DAY_US)
        slot = cluster * YEAR + at // DAY_US
        for one in range(len(totals)):
            mine = level == one
            totals[one] += np.bincount(slot[mine], weights=here[mine], minlength=totals.shape[1])
        more = lasts > here
        cluster, level = cluster[more], level[more]
        at, lasts = (at + here)[more], (lasts - here)[more]


def nights(nightly: pa.Table, plan, now: datetime, severities: Mapping[str, int], start: datetime) -> list[Night]:
    """The last nightly run of each day that judged a cluster of this one, and this one itself."""
    mine = {part.cluster for part in plan.snapshots}
    found: dict[int, Night] = {}
    for row in sorted(nightly.to_pylist(), key=lambda r: r["finished_at"]):
        summary = json.loads(row["summary"] or "{}")
        day = (row["captured_at"] - start).days
        if mine & set(summary.get("clusters") or ()) and row["captured_at"] <= now and "severities" in summary:
            found[day] = Night(day, row["status"], summary["severities"])
    found[(now - start).days] = Night((now - start).days, "this run", severities)
    return [found[day] for day in sorted(found)]


def trimmed(trends: Trends) -> Trends | None:
    """Without the days before anything is known; None where fewer than FEWEST are left of the whole."""
    known = {night.day for night in trends.nights}
    known |= {int(day) for _, days in trends.clusters for day in np.flatnonzero(days.seen)}
    if len(known) < FEWEST:
        return None
    skip = min(known)
    nights = [Night(n.day - skip, n.status, n.severities) for n in trends.nights]
    clusters = [
        (name, Days(*(getattr(days, n)[skip:] for n in ("seen", "at", "under", "offline"))))
        for name, days in trends.clusters
    ]
    return Trends(trends.first + timedelta(days=skip), trends.days - skip, nights, clusters)


def _moment(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def charts(trends: Trends | None) -> dict[str, object]:
    """What the page's template draws: `nights`, `fleet` and the worst `clusters`, a chart each; empty without a trend."""
    if trends is None:
        return {}
    minutes_of = [(name, days) for name, days in trends.clusters if any(days.order)]
    several = len(trends.clusters) > 1
    return {
        "days": trends.days,
        "nights": _nights_chart(trends),
        "fleet": _days_chart(trends, "all clusters together" if several else trends.clusters[0][0], trends.fleet)
        if trends.clusters
        else None,
        "clusters": [_days_chart(trends, name, days) for name, days in minutes_of[:WORST]] if several else [],
        "left": max(0, len(minutes_of) - WORST) if several else 0,
    }


def _nights_chart(trends: Trends) -> dict[str, object]:
    peak = max(sum(night.severities.get(s) or 0 for s in SEVERITIES) for night in trends.nights)
    bars = []
    for night in trends.nights:
        counts = [(s, night.severities.get(s) or 0) for s in SEVERITIES]
        told = ", ".join(f"{count:,} {s}" for s, count in counts)
        what = "" if night.status == "complete" else f" ({night.status})"
        bars += _column(trends, night.day, counts, peak, f"{told}{what}")
    seen = {night.day for night in trends.nights}
    return _chart(trends, "failed findings", f"at most {peak:,} a night", bars, seen, "no run")


def _days_chart(trends: Trends, name: str, days: Days) -> dict[str, object]:
    peak = float((days.at + days.under + days.offline).max())
    bars = []
    for day in np.flatnonzero(days.at + days.under + days.offline):
        counts = [(kind, float(getattr(days, kind)[day])) for kind in timeline.KINDS]
        told = ", ".join(f"{length(count)} {timeline.WORDS[kind]}" for kind, count in counts if count)
        bars += _column(trends, int(day), counts, peak, f"{told}, of {length(float(days.seen[day]))} counted")
    sums = ((timeline.WORDS[kind], float(getattr(days, kind).sum())) for kind in timeline.KINDS)
    said = ", ".join(f"{word} {length(total)}" for word, total in sums if total) or "never at min ISR or worse"
    return _chart(trends, name, said, bars, {int(day) for day in np.flatnonzero(days.seen)}, "nothing counted")


def _column(trends: Trends, day: int, counts: Sequence[tuple[str, float]], peak: float, told: str) -> list[dict]:
    """A day's bars, the worst at the bottom; whatever there is can be seen."""
    width = timeline.WIDTH / trends.days
    place = {"x": round(day * width, 2), "width": round(max(width - 0.4, 1.0), 2)}
    title = f"{trends.first + timedelta(days=day):%d %b %Y}: {told}"
    return [bar | place | {"title": title} for bar in timeline.stacked(counts, peak)]


def _chart(trends: Trends, name: str, said: str, bars: list[dict], seen: set[int], missing: str) -> dict[str, object]:
    width = timeline.WIDTH / trends.days
    gaps = [
        {"x": round(a * width, 2), "width": round((b - a) * width, 2), "title": f"{missing} on {_span(trends, a, b)}"}
        for a, b in _unseen(seen, trends.days)
    ]
    known = [
        (round(a * width, 2), round((b - a) * width, 2))
        for a, b in _unseen(set(range(trends.days)) - seen, trends.days)
    ]
    step = trends.days / timeline.TICKS
    ticks = [
        {
            "x": round(n * step * width, 2),
            "text": f"{trends.first + timedelta(days=min(int(n * step), trends.days - 1)):%d %b %y}",
        }
        for n in range(timeline.TICKS + 1)
    ]
    return {"name": name, "said": said, "bars": bars, "gaps": gaps, "seen": known, "ticks": ticks}


def _unseen(seen: set[int], days: int) -> list[tuple[int, int]]:
    """The runs [first, end) of days that aren't seen.

    >>> _unseen({0, 3}, 6)
    [(1, 3), (4, 6)]
    """
    edges = sorted({-1, *seen, days})
    return [(a + 1, b) for a, b in pairwise(edges) if b > a + 1]


def _span(trends: Trends, first: int, end: int) -> str:
    days = [trends.first + timedelta(days=n) for n in (first, end - 1)]
    return " to ".join(f"{day:%d %b %Y}" for day in dict.fromkeys(days))


def length(minutes: float) -> str:
    """Minutes as people say them.

    >>> length(0.5), length(61), length(3000)
    ('30 s', '1 h 1 min', '2 d 2 h')
    """
    seconds = round(minutes * 60)
    if seconds < 60:
        return f"{seconds} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60))
    parts = []
    for word, size in units:
        count, seconds = divmod(seconds, size)
        parts.append(f"{count} {word}" if count else "")
    largest = next(n for n, part in enumerate(parts) if part)
    return " ".join(part for part in parts[largest : largest + 2] if part)
