"""The tasks of a Streams application by value of a tag: active, standby, and those that stop with the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from durability.plain import plural
from durability.report.html.pictures.style import NAME, names
from durability.report.words import clipped, visible

APPLICATIONS, VALUES = 6, 8
"""The most applications with a chart, those that lose most tasks, and the most values of tags in one."""
BARS = {
    "active": ("var(--info)", 0.75, "{} active"),
    "standby": ("var(--info)", 0.2, "{} standby"),
    "count": ("var(--critical)", 0.85, "{} lost with it"),
}
"""By member of a loss, the colour and opacity of its bar, and the text beside it."""
BARS_WIDTH, BAR = 220, 15
"""Pixels of the longest bar, and of a bar's height with the space below it."""


def values(application: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The losses of an application that a chart can show. Results of older releases don't count active tasks and standbys."""
    return [loss for loss in application["losses"] if "active" in loss][:VALUES]


def chart(application: Mapping[str, Any]) -> alt.LayerChart | alt.FacetChart:
    rows, labels = [], []
    for number, loss in enumerate(values(application)):
        tag, value = (str(visible(loss[name])) for name in ("tag", "value"))
        labels.append(f"{clipped(tag, 24)} {clipped(value, 24)}")
        name = f"{clipped(tag, NAME)} {clipped(value, NAME)}"
        for member, (colour, opacity, text) in BARS.items():
            row = {"row": number, "member": member, "tasks": loss[member], "text": text.format(f"{loss[member]:,}")}
            title = f"{name}: {plural(loss[member], 'task')} {text.format('').strip()}"
            rows.append({**row, "colour": colour, "opacity": opacity, "title": title})
    most = max(row["tasks"] for row in rows) or 1
    x = alt.X("tasks:Q", axis=None, stack=None, scale=alt.Scale(domain=[0, most], nice=False))
    y = alt.Y("row:O", sort=None).axis(**names(labels))
    offset = alt.YOffset("member:N", sort=list(BARS), scale=alt.Scale(paddingInner=0.15))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y, yOffset=offset)
    fill, opacity_of = alt.Fill("colour:N", scale=None), alt.FillOpacity("opacity:Q", scale=None)
    bars = base.mark_bar().encode(fill=fill, fillOpacity=opacity_of, description="title:N")
    texts = base.mark_text(align="left", dx=5).encode(text="text:N")
    return alt.layer(bars, texts).properties(width=BARS_WIDTH, height=alt.Step(BAR, **{"for": "offset"}))
