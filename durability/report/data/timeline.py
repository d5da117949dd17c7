"""Partitions at min ISR or worse over time, a picture per cluster: KIP-427's counts at every counted moment.

What the rules decided isn't decided again here: from where on moments are too far apart to be joined is the cluster's own
finding's `gap_after_seconds`. The pictures are SVG in the page, drawn from rectangles; a moment lasts to the next one. At a
moment that found nothing and could not read everything, nothing is drawn either: that is no zero.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import FINDINGS, HEALTH_COUNTERS, RUNS

CONTROL = "at-min-isr-over-time"
COLUMNS = (
    "cluster",
    "captured_at",
    "result_id",
    "snapshot_id",
    "unknown",
    "offline",
    "under_min_isr",
    "at_min_isr",
    "at_min_isr_by_configuration",
    "under_min_isr_by_configuration",
)
KINDS = ("offline", "under", "at")
WORDS = {"offline": "offline", "under": "under min ISR", "at": "at min ISR"}
SAID = {"PASS": "passes", "UNKNOWN": "unknown", "EXEMPT": "exempt", "NOT_APPLICABLE": "too few snapshots to tell"}
POINTS = 240  # of one picture
SHOWN = 24  # pictures of one page
WIDTH, HEIGHT = 1140.0, 84.0
TICKS = 6


@dataclass(frozen=True)
class Point:
    """One or several moments, with the partitions of the worst of them: most offline, else most under min ISR, else at it."""

    first: datetime
    last: datetime
    offline: int
    under: int
    at: int
    unread: bool = False  # nothing was found, and not all could be read

    @property
    def total(self) -> int:
        return self.offline + self.under + self.at


@dataclass(frozen=True)
class Timeline:
    """A cluster's points in their order; `gap`: moments further apart aren't joined; `windows`: maintenance."""

    cluster: str
    points: Sequence[Point]
    gap: timedelta
    windows: Sequence[tuple[datetime, datetime, str]] = ()
    reading: str = ""

    @property
    def peak(self) -> int:
        return max(p.total for p in self.points)


def read(lake, plan) -> list[Timeline]:
    """The judged clusters' timelines, the worst first; none where the run had nothing to look back on.

    `lake`: anything with `scan(table, where, columns)`; only rows of whole clusters in the look-back are read.
    """
    if not plan.look_back:
        return []
    from pyiceberg.expressions import And, GreaterThanOrEqual, IsNull

    recent = GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset)
    whole = And(recent, IsNull("topic"))
    runs = lake.scan(RUNS, recent, columns=("result_id", "finished_at"))
    return timelines(lake.scan(HEALTH_COUNTERS, whole, columns=COLUMNS), runs, verdicts(lake, plan), plan)


def verdicts(lake, plan) -> pa.Table:
    """What this run found of the clusters' own readings: rows of FINDINGS."""
    from pyiceberg.expressions import And, EqualTo

    this = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    of_control = And(EqualTo("control", CONTROL), EqualTo("resource_type", "cluster"))
    return lake.scan(FINDINGS, And(this, of_control), columns=("cluster", "outcome", "category", "observed"))


def gaps(verdicts: pa.Table) -> dict[str, timedelta]:
    """By cluster how far apart two moments may be with nothing said to happen in between, as the rule had it; a cluster of
    which it could not tell isn't joined at all."""
    found = zip(verdicts["cluster"].to_pylist(), verdicts["observed"].to_pylist(), strict=True)
    return {name: timedelta(seconds=json.loads(seen or "{}").get("gap_after_seconds") or 0) for name, seen in found}


def timelines(counters: pa.Table, runs: pa.Table, verdicts: pa.Table, plan) -> list[Timeline]:
    """The same from Arrow tables: cluster rows of HEALTH_COUNTERS, rows of RUNS, this run's findings of the control."""
    finished, joined = finished_of(runs, plan), gaps(verdicts)
    told: dict[str, list[dict]] = {}
    for verdict in verdicts.to_pylist():
        told.setdefault(verdict["cluster"], []).append(verdict)
    result = []
    for part in plan.judged:
        rows = counters.filter(pc.equal(counters["cluster"], part.cluster))
        now = datetime.fromisoformat(part.captured_at)
        points = _points(moments(rows, finished, now, plan.policy.readings["look_back"]), now)
        mine = told.get(part.cluster, [])
        if len(points) > 1 and mine:
            said = [v["category"] or SAID[v["outcome"]] for v in mine]
            windows = plan.policy.windows(part.cluster)
            result.append(Timeline(part.cluster, points, joined[part.cluster], windows, " and ".join(sorted(said))))
    return sorted(result, key=lambda t: (not any(p.total for p in t.points), -t.peak, t.cluster))


def finished_of(runs: pa.Table, plan) -> dict[str, datetime]:
    """When each result that counts was finished, from rows of RUNS; this run's will be the last."""
    finished = dict(zip(runs["result_id"].to_pylist(), runs["finished_at"].to_pylist(), strict=True))
    return finished | {plan.result_id: datetime.max.replace(tzinfo=UTC)}


def moments(rows: pa.Table, finished: dict[str, datetime], until: datetime, look_back: int | None = None) -> list[dict]:
    """One cluster's rows of HEALTH_COUNTERS up to `until`, in order, for so many seconds back; of a moment counted twice
    the result finished last counts."""
    since = until - timedelta(seconds=look_back) if look_back else datetime.min.replace(tzinfo=UTC)
    found: dict[datetime, dict] = {}
    for row in rows.to_pylist():
        here = row["result_id"] in finished and since <= row["captured_at"] <= until
        known = found.get(row["captured_at"])
        if here and (known is None or finished[known["result_id"]] <= finished[row["result_id"]]):
            found[row["captured_at"]] = row
    return [found[at] for at in sorted(found)]


def _points(ordered: list[dict], until: datetime) -> list[Point]:
    """At most POINTS of them, from what `moments` gave."""
    if not ordered:
        return []
    width = max((until - ordered[0]["captured_at"]) / POINTS, timedelta(microseconds=1))
    points: list[Point] = []
    number = -1
    for row in ordered:
        at, counts = row["captured_at"], _counts(row)
        bucket = min(int((at - ordered[0]["captured_at"]) / width), POINTS - 1)
        if bucket == number:
            last = points.pop()
            points.append(Point(last.first, at, *max((last.offline, last.under, last.at, last.unread), counts)))
        else:
            points.append(Point(at, at, *counts))
        number = bucket
    return points


def _counts(row: dict) -> tuple[int, int, int, bool]:
    """Offline, under and at min ISR, without what is so by configuration; and a Point's `unread`."""
    under = row["under_min_isr"] - (row["under_min_isr_by_configuration"] or 0)
    counts = row["offline"], under, row["at_min_isr"] - (row["at_min_isr_by_configuration"] or 0)
    return *counts, bool(row["unknown"]) and not any(counts)


def pictures(lines: Sequence[Timeline]) -> dict[str, object]:
    """What the page's template draws: `shown`, a picture each, and `left`, how many more clusters there are."""
    return {"shown": [_picture(line) for line in lines[:SHOWN]], "left": max(0, len(lines) - SHOWN)}


def _picture(line: Timeline) -> dict[str, object]:
    start, end = line.points[0].first, line.points[-1].last
    span = max((end - start).total_seconds(), 1.0)

    def x(moment: datetime) -> float:
        return round(min(max((moment - start).total_seconds() / span, 0.0), 1.0) * WIDTH, 2)

    bars, seen, gaps = [], [], []
    following = [*line.points[1:], None]
    for point, after in zip(line.points, following, strict=True):
        joined = after is not None and after.first - point.last <= line.gap
        to = after.first if joined else point.last
        left, width = x(point.first), max(x(to) - x(point.first), 1.5)
        if point.unread:
            gaps.append((left, width, point.first, to))
        else:
            seen.append((left, width))
        bars += _bars(point, left, width, line.peak)
        if after is not None and not joined:
            gaps.append((x(point.last), max(x(after.first) - x(point.last), 1.0), point.last, after.first))
    windows = [
        {"x": x(begin), "width": max(x(until) - x(begin), 1.5), "reason": reason[:200]}
        for begin, until, reason in line.windows
        if until > start and begin <= end
    ]
    step = (end - start) / TICKS
    return {
        "cluster": line.cluster,
        "reading": line.reading,
        "peak": line.peak,
        "from": start,
        "to": end,
        "bars": bars,
        "seen": seen,
        "gaps": [{"x": left, "width": width, "from": a, "to": b} for left, width, a, b in gaps],
        "windows": windows,
        "ticks": [{"x": x(start + n * step), "text": _tick(start + n * step, end - start)} for n in range(TICKS + 1)],
        "words": WORDS,
    }


def _bars(point: Point, left: float, width: float, peak: int) -> list[dict]:
    counts = [(kind, getattr(point, kind)) for kind in KINDS]
    place = {"x": left, "width": round(width, 2), "at": point.first}
    return [bar | place for bar in stacked(counts, peak)]


def stacked(counts: Sequence[tuple[str, float]], peak: float) -> list[dict]:
    """Heights of what is counted by kind, the first at the bottom; whatever there is can be seen."""
    bars, level = [], HEIGHT
    for kind, count in counts:
        if count:
            height = max(count / peak * (HEIGHT - 4), 2.0)
            level = max(level - height, 0.0)
            bars.append({"kind": kind, "count": count, "y": round(level, 2), "height": round(height, 2)})
    return bars


def _tick(moment: datetime, span: timedelta) -> str:
    return moment.astimezone(UTC).strftime("%d %b %H:%M" if span > timedelta(hours=20) else "%H:%M")
