"""Charts over time as rectangles, which the template draws as SVG: a cluster's timeline, and a column for each day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import chain, pairwise
from typing import Any

import numpy as np

from durability.catalogue.listing import lasted
from durability.report.data.timeline import Timeline
from durability.report.data.trends import Days, Trends

Counts = Mapping[str, float]
"""Numbers by kind or severity, worst first."""
Span = tuple[datetime, datetime, str]
"""(from, to, title)."""
Column = tuple[datetime, datetime, str, Counts]
WIDTH, HEIGHT = 1140.0, 84.0
TICKS = 6
KINDS = {"offline": "offline", "under": "under min ISR", "at": "at min ISR"}
SEVERITIES = ("critical", "warning")


def timeline_chart(line: Timeline) -> dict[str, Any]:
    """A cluster's counts (see `_chart`) with their `peak`, and the times `from` and `to`."""
    start, end = line.points[0].first, line.points[-1].last
    columns: list[Column] = []
    known: list[Span] = []
    gaps: list[Span] = []
    for point, after in zip(line.points, [*line.points[1:], None], strict=True):
        holds = after is not None and after.first - point.last <= line.gap
        until = after.first if after and holds else point.last
        counts = {kind: getattr(point, kind) for kind in KINDS}
        text = ", ".join(f"{count} {KINDS[kind]}" for kind, count in counts.items() if count)
        columns.append((point.first, until, f"{_minute(point.first)}: {text}", counts))
        (gaps if point.unread else known).append(_uncounted(point.first, until))
        if after and not holds:
            gaps.append(_uncounted(point.last, after.first))
    windows = [
        (begin, until, f"maintenance: {reason[:200]}")
        for begin, until, reason in line.windows
        if until > start and begin <= end
    ]
    clock = "%d %b %H:%M" if end - start > timedelta(hours=20) else "%H:%M"
    labels = [f"{(start + n * (end - start) / TICKS).astimezone(UTC):{clock}}" for n in range(TICKS + 1)]
    chart = _chart(start, end, columns, known, gaps, windows, labels)
    about = {"cluster": line.cluster, "reading": line.reading, "peak": line.peak}
    return {**about, "from": _minute(start), "to": _minute(end), **chart}


def trend_charts(trends: Trends | None, worst: int) -> dict[str, Any]:
    """Charts of `nights`, of the `fleet`, and of its `worst` clusters. `left`: the number of others. Empty without trends."""
    if trends is None:
        return {}
    several = len(trends.clusters) > 1
    unhealthy = [(name, days) for name, days in trends.clusters if any(days.order)] if several else []
    fleet = "all clusters together" if several else "".join(name for name, _ in trends.clusters)
    return {
        "days": trends.days,
        "nights": _nights_chart(trends),
        "fleet": _days_chart(trends, fleet, trends.fleet) if trends.clusters else None,
        "clusters": [_days_chart(trends, name, days) for name, days in unhealthy[:worst]],
        "left": max(0, len(unhealthy) - worst),
    }


def _nights_chart(trends: Trends) -> dict[str, Any]:
    columns = {}
    for night in trends.nights:
        counts = {severity: night.severities.get(severity) or 0 for severity in SEVERITIES}
        status = "" if night.status == "complete" else f" ({night.status})"
        columns[night.day] = ", ".join(f"{n:,} {severity}" for severity, n in counts.items()) + status, counts
    peak = max(sum(counts.values()) for _, counts in columns.values())
    return {
        "name": "failed findings",
        "said": f"at most {peak:,} a night",
        **_daily(trends, columns, columns, "no run"),
    }


def _days_chart(trends: Trends, name: str, days: Days) -> dict[str, Any]:
    def durations(minutes: Counts) -> str:
        return ", ".join(f"{lasted(count * 60)} {KINDS[kind]}" for kind, count in minutes.items() if count)

    columns = {}
    for day in np.flatnonzero(days.at + days.under + days.offline).tolist():
        counts = {kind: float(getattr(days, kind)[day]) for kind in KINDS}
        columns[day] = f"{durations(counts)}, of {lasted(days.seen[day] * 60)} counted", counts
    total = durations({kind: float(getattr(days, kind).sum()) for kind in KINDS})
    chart = _daily(trends, columns, np.flatnonzero(days.seen).tolist(), "nothing counted")
    return {"name": name, "said": total or "never at min ISR or worse", **chart}


def _daily(
    trends: Trends, columns: Mapping[int, tuple[str, Counts]], known: Iterable[int], missing: str
) -> dict[str, Any]:
    """A chart of days, given by their numbers. missing: the title of days that aren't in `known`."""

    def at(day: float) -> datetime:
        return datetime.combine(trends.first, time(), UTC) + timedelta(days=day)

    def date(day: int) -> str:
        return f"{at(day):%d %b %Y}"

    edges = sorted({-1, *known, trends.days})
    unknown = [(a + 1, b) for a, b in pairwise(edges) if b > a + 1]
    between = [0, *chain.from_iterable(unknown), trends.days]
    gaps = [(at(a), at(b), f"{missing} on {' to '.join(dict.fromkeys((date(a), date(b - 1))))}") for a, b in unknown]
    return _chart(
        at(0),
        at(trends.days),
        # A tenth of each column is left blank.
        [(at(day), at(day + 0.9), f"{date(day)}: {title}", counts) for day, (title, counts) in columns.items()],
        [(at(a), at(b), "") for a, b in zip(between[::2], between[1::2], strict=True) if b > a],
        gaps,
        [],
        [f"{min(at(n * trends.days / TICKS), at(trends.days - 1)):%d %b %y}" for n in range(TICKS + 1)],
    )


def _chart(
    start: datetime,
    end: datetime,
    columns: Sequence[Column],
    known: Sequence[Span],
    gaps: Sequence[Span],
    windows: Sequence[Span],
    labels: Sequence[str],
) -> dict[str, Any]:
    """Rectangles with `x`, `width` and `title` (in pixels) for `known`, `gaps`, `windows` and `bars`, and `ticks` with `x` and
    `text`. `bars` stacks the counts of each column, with `y`, `height` and `kind`."""
    seconds = max((end - start).total_seconds(), 1.0)
    peak = max((sum(counts.values()) for *_, counts in columns), default=0)

    def box(begin: datetime, until: datetime, title: str, *_: Counts) -> dict[str, Any]:
        left, right = (min(max((at - start).total_seconds() / seconds, 0.0), 1.0) * WIDTH for at in (begin, until))
        return {"x": round(left, 2), "width": round(max(right - left, 1.5), 2), "title": title}

    bars = []
    for column in columns:
        level = HEIGHT
        for kind, count in column[3].items():
            if count:
                height = max(count / peak * (HEIGHT - 4), 2.0)
                level = max(level - height, 0.0)
                bars.append({**box(*column), "kind": kind, "y": round(level, 2), "height": round(height, 2)})
    ticks = [{"x": round(n * WIDTH / TICKS, 2), "text": text} for n, text in enumerate(labels)]
    spans = {"known": known, "gaps": gaps, "windows": windows}
    return {"bars": bars, "ticks": ticks, **{name: [box(*span) for span in found] for name, found in spans.items()}}


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _uncounted(begin: datetime, until: datetime) -> Span:
    return (begin, until, f"nothing counted from {_minute(begin)} to {_minute(until)}")
