"""Charts over time as rectangles, which the template draws as SVG: a cluster's timeline, and a column for each day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from durability.catalogue.listing import lasted
from durability.report.data.timeline import Timeline
from durability.report.data.trends import Days, Trends

Box = dict[str, Any]
"""`x` and `width` in pixels, `title`; of a bar also `kind`, `y` and `height`."""
WIDTH, HEIGHT = 1140.0, 84.0
TICKS = 6
KINDS = {"offline": "offline", "under": "under min ISR", "at": "at min ISR"}
SEVERITIES = ("critical", "warning")


def timeline_chart(line: Timeline) -> dict[str, Any]:
    """A cluster's counts: `bars`, `gaps` (nothing counted), `known` (the rest), `windows` (maintenance), `ticks`."""
    start, end = line.points[0].first, line.points[-1].last
    seconds = max((end - start).total_seconds(), 1.0)

    def box(begin: datetime, until: datetime, title: str = "") -> Box:
        left, right = (
            round(min(max((at - start).total_seconds() / seconds, 0.0), 1.0) * WIDTH, 2) for at in (begin, until)
        )
        return {"x": left, "width": round(max(right - left, 1.5), 2), "title": title}

    bars: list[Box] = []
    known: list[Box] = []
    gaps: list[Box] = []
    for point, after in zip(line.points, [*line.points[1:], None], strict=True):
        holds = after is not None and after.first - point.last <= line.gap
        until = after.first if after and holds else point.last
        (gaps if point.unread else known).append(box(point.first, until, _unknown(point.first, until)))
        counts = {kind: getattr(point, kind) for kind in KINDS}
        for bar in _stack(box(point.first, until), counts, line.peak):
            bars.append(bar | {"title": f"{_minute(point.first)}: {counts[bar['kind']]} {KINDS[bar['kind']]}"})
        if after and not holds:
            gaps.append(box(point.last, after.first, _unknown(point.last, after.first)))
    step = (end - start) / TICKS
    clock = "%d %b %H:%M" if end - start > timedelta(hours=20) else "%H:%M"
    return {
        "cluster": line.cluster,
        "reading": line.reading,
        "peak": line.peak,
        "from": _minute(start),
        "to": _minute(end),
        "bars": bars,
        "known": known,
        "gaps": gaps,
        "windows": [
            box(begin, until, f"maintenance: {reason[:200]}")
            for begin, until, reason in line.windows
            if until > start and begin <= end
        ],
        "ticks": _ticks([f"{(start + n * step).astimezone(UTC):{clock}}" for n in range(TICKS + 1)]),
    }


def trend_charts(trends: Trends | None, worst: int) -> dict[str, Any]:
    """`nights`, `fleet` and the `worst` of its `clusters`, a chart each; `left`: the number of others. Empty without trends."""
    if trends is None:
        return {}
    unhealthy = [(name, days) for name, days in trends.clusters if any(days.order)] if len(trends.clusters) > 1 else []
    fleet = "all clusters together" if len(trends.clusters) > 1 else "".join(name for name, _ in trends.clusters)
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
        columns[night.day] = (counts, ", ".join(f"{n:,} {severity}" for severity, n in counts.items()) + status)
    peak = max(sum(counts.values()) for counts, _ in columns.values())
    chart = _chart(trends, columns, peak, columns, "no run")
    return {"name": "failed findings", "said": f"at most {peak:,} a night", **chart}


def _days_chart(trends: Trends, name: str, days: Days) -> dict[str, Any]:
    columns = {}
    for day in np.flatnonzero(days.at + days.under + days.offline).tolist():
        counts = {kind: float(getattr(days, kind)[day]) for kind in KINDS}
        columns[day] = (counts, f"{_durations(counts)}, of {lasted(days.seen[day] * 60)} counted")
    peak = max((sum(counts.values()) for counts, _ in columns.values()), default=0)
    total = _durations({kind: float(getattr(days, kind).sum()) for kind in KINDS})
    chart = _chart(trends, columns, peak, np.flatnonzero(days.seen).tolist(), "nothing counted")
    return {"name": name, "said": total or "never at min ISR or worse", **chart}


def _durations(minutes: Mapping[str, float]) -> str:
    return ", ".join(f"{lasted(count * 60)} {KINDS[kind]}" for kind, count in minutes.items() if count)


def _chart(
    trends: Trends,
    columns: Mapping[int, tuple[dict[str, Any], str]],
    peak: float,
    known_days: Iterable[int],
    missing: str,
) -> dict[str, Any]:
    """Bars, gaps and ticks; `columns`: by day its counts and title."""
    width = WIDTH / trends.days

    def box(first: int, end: int, title: str = "") -> Box:
        return {"x": round(first * width, 2), "width": round((end - first) * width, 2), "title": title}

    def date(day: int, form: str = "%d %b %Y") -> str:
        return f"{trends.first + timedelta(days=day):{form}}"

    bars = []
    for day, (counts, title) in columns.items():
        place = {"x": round(day * width, 2), "width": round(max(width - 0.4, 1.0), 2)}
        bars += _stack(place | {"title": f"{date(day)}: {title}"}, counts, peak)
    gaps = _missing_days(known_days, trends.days)
    known = _missing_days({day for first, end in gaps for day in range(first, end)}, trends.days)
    last = trends.days - 1
    return {
        "bars": bars,
        "known": [box(first, end) for first, end in known],
        "gaps": [box(a, b, f"{missing} on {' to '.join(dict.fromkeys((date(a), date(b - 1))))}") for a, b in gaps],
        "windows": [],
        "ticks": _ticks([date(min(int(n * trends.days / TICKS), last), "%d %b %y") for n in range(TICKS + 1)]),
    }


def _missing_days(known: Iterable[int], days: int) -> list[tuple[int, int]]:
    """The runs [first, end) of other days.

    >>> _missing_days({0, 3}, 6)
    [(1, 3), (4, 6)]
    """
    edges = sorted({-1, *known, days})
    return [(a + 1, b) for a, b in pairwise(edges) if b > a + 1]


def _stack(place: Box, counts: Mapping[str, float], peak: float) -> list[Box]:
    """Bars on top of each other, the first count at the bottom; each count above 0 is at least 2 pixels high."""
    bars, level = [], HEIGHT
    for kind, count in counts.items():
        if count:
            height = max(count / peak * (HEIGHT - 4), 2.0)
            level = max(level - height, 0.0)
            bars.append({**place, "kind": kind, "y": round(level, 2), "height": round(height, 2)})
    return bars


def _ticks(texts: Sequence[str]) -> list[Box]:
    return [{"x": round(n * WIDTH / TICKS, 2), "text": text} for n, text in enumerate(texts)]


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _unknown(begin: datetime, until: datetime) -> str:
    return f"nothing counted from {_minute(begin)} to {_minute(until)}"
