"""All pictures of report.html, in one call of the converter.

Their number and size don't grow with the fleet: the page limits clusters, racks, brokers, topics, partitions, applications
and points, and says what it left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from durability.plain import plural
from durability.report.html.pictures import costs, replicas, tasks, time_chart
from durability.report.html.pictures.draw import Picture, draw
from durability.report.html.pictures.over_time import OverTime
from durability.report.words import clipped

BELOW = "The table below has the numbers."


def drawn(
    clusters: Sequence[Mapping[str, Any]],
    topics: Sequence[Mapping[str, Any]],
    applications: Sequence[Mapping[str, Any]],
    timelines: Sequence[OverTime],
    trends: Mapping[str, Any],
) -> dict[str, Markup]:
    """SVG elements by name: `costs-1`, `replicas-1`, `tasks-1`, `timeline-1`, `trend-1`, ..., each by its place on the page.

    clusters: of `FailureRows.context`. topics: of `data.placements.read`. applications: of findings.json.
    timelines: of `over_time.timeline_chart`. trends: of `over_time.trend_charts`.
    """
    days = [trends["nights"], trends["fleet"], *trends["clusters"]] if trends else []
    # Tests check charts against Vega-Lite's schema. Checking each row of data again takes longer than drawing it.
    with debug_mode(False):
        pictures = (
            _numbered("costs", (_costs(c) if c["heat"] else None for c in clusters))
            | _numbered("replicas", map(_replicas, topics))
            | _numbered("tasks", (_tasks(a) if tasks.values(a) else None for a in applications[: tasks.APPLICATIONS]))
            | _numbered("timeline", map(_timeline, timelines))
            | _numbered("trend", (_trend(shown) if shown else None for shown in days))
        )
    return draw(pictures)


def _numbered(kind: str, pictures: Iterable[Picture | None]) -> dict[str, Picture]:
    return {f"{kind}-{number}": picture for number, picture in enumerate(pictures, 1) if picture}


def _costs(cluster: Mapping[str, Any]) -> Picture:
    said = [
        f"Worst {kind.removesuffix('s')}: {clipped(cost['name'], 60)}"
        + "".join(f"; {text}" for text in cost["said"].values())
        for kind, cost in cluster["worst"].items()
        if cost
    ]
    if cluster["unknown"] != 0:
        count = "an unknown number" if cluster["unknown"] is None else f"at least {cluster['unknown']:,}"
        said.append(f"Partitions not judged for some loss: {count}")
    title = f"Partitions that the loss of each rack and broker of {clipped(cluster['cluster'], 120)} breaks"
    return Picture(costs.chart(cluster), title, ". ".join([*said, BELOW]))


def _replicas(topic: Mapping[str, Any]) -> Picture:
    title = f"Replicas of {clipped(topic['topic'], 120)} in {clipped(topic['cluster'], 120)}, by rack and broker"
    text = f"{plural(len(topic['rows']), 'partition')} on {plural(len(topic['columns']), 'broker')}. {BELOW}"
    return Picture(replicas.chart(topic), title, text)


def _tasks(application: Mapping[str, Any]) -> Picture:
    title = f"Tasks of {clipped(application['group'], 120)} by tag"
    return Picture(tasks.chart(application), title, BELOW)


def _timeline(shown: OverTime) -> Picture:
    title = f"Partitions at min ISR or worse in {clipped(shown.name, 120)}"
    return Picture(time_chart.chart(shown), title, _worst(shown))


def _trend(shown: OverTime) -> Picture:
    what = "Time at min ISR or worse per day" if shown.hours else "Failures per night"
    return Picture(time_chart.chart(shown), f"{what}: {clipped(shown.name, 120)}, {shown.said}", _worst(shown))


def _worst(shown: OverTime) -> str:
    if not shown.worst and not shown.known:
        return "Nothing could be counted."
    return f"{f'The worst, {shown.worst[0]}' if shown.worst else 'None'}. {plural(len(shown.gaps), 'gap')}."
