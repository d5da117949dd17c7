"""Draws an `OverTime`: columns of stacked counts, the worst at the bottom, over spans without data and of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import altair as alt

from durability.report.html.pictures.over_time import Column, OverTime, Span
from durability.report.html.pictures.style import WIDTH

AXIS = 48
"""Pixels of the axis with the numbers."""
HEIGHT, PLOT = 84, WIDTH - AXIS - 24
"""Pixels of the plot."""
THIN = 1.5
"""The fewest pixels of a column or span, so that a minute of a year is still visible."""
COLOURS = {
    "offline": "var(--critical)",
    "critical": "var(--critical)",
    "under": "var(--f-under)",
    "warning": "var(--f-warning)",
    "at": "var(--f-warning)",
}


def chart(shown: OverTime) -> alt.LayerChart | alt.FacetChart:
    """The chart. Equal columns that follow each other are one rectangle."""
    unit = 60 if shown.hours else 1
    peak = max((column.total for column in shown.columns), default=0) / unit or 1
    start, end = _ms(shown.start), _ms(max(shown.end, shown.start + timedelta(minutes=1)))
    least = (end - start) * THIN / PLOT

    def rows(spans: Sequence[Span]) -> alt.Data:
        times = [(_ms(begin), _ms(until), title) for begin, until, title in spans]
        return alt.Data(values=[{"a": a, "b": max(b, a + least), "title": title} for a, b, title in times])

    long = shown.end - shown.start > timedelta(hours=20)
    form = "%d %b %y" if shown.days else "%d %b %H:%M" if long else "%H:%M"
    x = alt.X("a:T", scale=alt.Scale(type="utc", domain=[start, end]))
    x = x.axis(format=form, tickCount=4, grid=False, labelOverlap=True, labelSeparation=24)
    label = "format(datum.value, ',.1~f')" + (" + ' h'" if shown.hours else "")
    y = alt.Y("low:Q", scale=alt.Scale(domain=[0, peak], nice=False))
    y = y.axis(values=[0, peak], labelExpr=label, minExtent=AXIS, domain=False, ticks=False)
    span = {"x": x, "x2": "b:T", "description": "title:N"}
    layers = [
        alt.Chart(rows(shown.windows)).mark_rect(fill="var(--f-info)", opacity=0.35).encode(**span),
        alt.Chart(rows(shown.gaps))
        .mark_rect(fill=None, stroke="var(--soft)", strokeDash=[3, 3], strokeWidth=1)
        .encode(**span),
        alt.Chart(rows(shown.known))
        .mark_rect(fill="var(--pass)")
        .encode(**span, y=alt.value(HEIGHT - 0.5), y2=alt.value(HEIGHT + 1)),
        alt.Chart(alt.Data(values=_columns(shown, least, peak, unit)))
        .mark_rect()
        .encode(**span, y=y, y2="high:Q", fill=alt.Fill("colour:N", scale=None)),
    ]
    return alt.layer(*layers).properties(width=PLOT, height=HEIGHT)


def _columns(shown: OverTime, least: float, peak: float, unit: int) -> list[dict[str, Any]]:
    """A rectangle for each kind of a column: `a` and `b` in milliseconds, `low` and `high`, at least two pixels apart."""
    merged: list[Column] = []
    for column in shown.columns:
        last = merged[-1] if merged and not shown.days else None
        if last and (last.until, last.counts) == (column.begin, column.counts):
            merged[-1] = last._replace(until=column.until)
        else:
            merged.append(column)
    rows = []
    for column in merged:
        level, a, b = 0.0, _ms(column.begin), _ms(column.until)
        for kind, count in column.counts.items():
            if count:
                low, level = level, min(level + max(count / unit, peak * 2 / HEIGHT), peak)
                row = {"a": a, "b": max(b, a + least), "low": low, "high": level}
                rows.append({**row, "colour": COLOURS[kind], "title": column.title})
    return rows


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
