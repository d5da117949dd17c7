"""Charts over time: a cluster's timeline, and a column for each day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from durability.catalogue.listing import lasted
from durability.plain import plural
from durability.report.data.timeline import Timeline
from durability.report.data.trends import Days, Trends

Counts = Mapping[str, float]
"""Numbers by kind or severity, worst first."""
Span = tuple[datetime, datetime, str]
"""(from, to, title)."""
KINDS = {"offline": "offline", "under": "under min ISR", "at": "at min ISR"}
SEVERITIES = ("critical", "warning")
WORST = 12
"""The most columns that are listed below a chart."""


class Column(NamedTuple):
    begin: datetime
    until: datetime
    title: str
    counts: Counts

    @property
    def total(self) -> float:
        return sum(self.counts.values())


class OverTime(NamedTuple):
    """What a chart shows.

    said: a summary. known, gaps, windows: spans with and without data, and of maintenance. days: is each column a day?
    hours: are the numbers minutes, which the axis states as hours?
    """

    name: str
    said: str
    start: datetime
    end: datetime
    columns: Sequence[Column]
    known: Sequence[Span]
    gaps: Sequence[Span]
    windows: Sequence[Span] = ()
    days: bool = False
    hours: bool = False

    @property
    def worst(self) -> list[str]:
        """The columns with the highest numbers, worst first, in words."""
        ranked = sorted(self.columns, key=lambda column: (*(-n for n in column.counts.values()), column.begin))
        return [column.title for column in ranked if column.total][:WORST]


def timeline_chart(line: Timeline) -> OverTime:
    """A cluster's counts."""
    start, end = line.points[0].first, line.points[-1].last
    columns: list[Column] = []
    known: list[Span] = []
    gaps: list[Span] = []
    for point, after in zip(line.points, [*line.points[1:], None], strict=True):
        holds = after is not None and after.first - point.last <= line.gap
        until = after.first if after and holds else point.last
        counts = {kind: getattr(point, kind) for kind in KINDS}
        text = ", ".join(f"{count:,} {KINDS[kind]}" for kind, count in counts.items() if count)
        columns.append(Column(point.first, until, f"{_minute(point.first)}: {text}", counts))
        (gaps if point.unread else known).append(_uncounted(point.first, until))
        if after and not holds:
            gaps.append(_uncounted(point.last, after.first))
    windows = [
        (max(begin, start), min(until, end), f"maintenance: {reason[:200]}")
        for begin, until, reason in line.windows
        if until > start and begin <= end
    ]
    most = f"at most {plural(line.peak, 'partition')}" if known else "nothing could be counted"
    said = f"{line.reading}; {most}"
    return OverTime(line.cluster, said, start, end, columns, known, gaps, windows)


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


def _nights_chart(trends: Trends) -> OverTime:
    columns = {}
    for night in trends.nights:
        counts = {severity: night.severities.get(severity) or 0 for severity in SEVERITIES}
        status = "" if night.status == "complete" else f" ({night.status})"
        columns[night.day] = ", ".join(f"{n:,} {severity}" for severity, n in counts.items()) + status, counts
    peak = max(sum(counts.values()) for _, counts in columns.values())
    return _daily(trends, "failed findings", f"at most {peak:,} a night", columns, columns, "no run")


def _days_chart(trends: Trends, name: str, days: Days) -> OverTime:
    def durations(minutes: Counts) -> str:
        return ", ".join(f"{lasted(count * 60)} {KINDS[kind]}" for kind, count in minutes.items() if count)

    columns = {}
    for day in np.flatnonzero(days.at + days.under + days.offline).tolist():
        counts = {kind: float(getattr(days, kind)[day]) for kind in KINDS}
        columns[day] = f"{durations(counts)}, of {lasted(days.seen[day] * 60)} counted", counts
    total = durations({kind: float(getattr(days, kind).sum()) for kind in KINDS})
    said, seen = total or "never at min ISR or worse", np.flatnonzero(days.seen).tolist()
    return _daily(trends, name, said, columns, seen, "nothing counted")._replace(hours=True)


def _daily(
    trends: Trends,
    name: str,
    said: str,
    columns: Mapping[int, tuple[str, Counts]],
    known: Iterable[int],
    missing: str,
) -> OverTime:
    """A chart of days, given by their numbers. missing: the title of days that aren't in `known`."""

    def at(day: float) -> datetime:
        return datetime.combine(trends.first, time(), UTC) + timedelta(days=day)

    def date(day: int) -> str:
        return f"{at(day):%d %b %Y}"

    edges = sorted({-1, *known, trends.days})
    unknown = [(a + 1, b) for a, b in pairwise(edges) if b > a + 1]
    between = [0, *chain.from_iterable(unknown), trends.days]
    gaps = [(at(a), at(b), f"{missing} on {' to '.join(dict.fromkeys((date(a), date(b - 1))))}") for a, b in unknown]
    return OverTime(
        name,
        said,
        at(0),
        at(trends.days),
        [Column(at(day), at(day + 1), f"{date(day)}: {title}", counts) for day, (title, counts) in columns.items()],
        [(at(a), at(b), "") for a, b in zip(between[::2], between[1::2], strict=True) if b > a],
        gaps,
        days=True,
    )


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _uncounted(begin: datetime, until: datetime) -> Span:
    return (begin, until, f"nothing counted from {_minute(begin)} to {_minute(until)}")
