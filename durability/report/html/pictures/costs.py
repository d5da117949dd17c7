"""A heat map of what the loss of each rack and broker breaks, by view and class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from durability.lake.tables import VIEWS
from durability.report.html.pictures.style import names, short
from durability.report.words import clipped, visible

HEADS = {"now": "Now", "structural": "By structure", "worst": "Worst case"}
LABELS = {"data": "data", "availability": "offline", "writes": "writes"}
CELL = {"width": 44, "height": 24}
SHADES = [0, 0.12, 0.24, 0.38, 0.55]
"""Opacities by `failures.LEVELS`."""


def chart(cluster: Mapping[str, Any]) -> alt.FacetChart:
    """The heat map of a cluster in `FailureRows.context`. Each cell has its number."""
    rows: list[dict[str, Any]] = []
    nodes: list[str] = []
    for row in cluster["heat"]:
        name = f"{row['kind'].removesuffix('s')} {clipped(str(visible(row['name'])), 24)}"
        name = name if name not in nodes else f"{name} ({len(nodes)})"
        nodes.append(name)
        classes = [(view, of_view) for view, of in VIEWS.items() for of_view in of]
        for (view, harm), cell in zip(classes, row["cells"], strict=True):
            rows.append({"node": name, "view": HEADS[view], "harm": LABELS[harm], **_look(cell, harm, name)})
        lost = {"lost": ("lost", 4), "kept": ("kept", 0)}.get(row["quorum"], ("?", 0))
        quorum = {"node": name, "view": "Quorum", "harm": "majority", "text": lost[0], "shade": SHADES[lost[1]]}
        rows.append({**quorum, "colour": "var(--critical)", "title": f"{name}, controllers' majority: {lost[0]}"})
    x = alt.X("harm:N", sort=[*LABELS.values(), "majority"])
    x = x.axis(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=60)
    y = alt.Y("node:N", sort=None).axis(**names(nodes))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    cells = base.mark_rect(stroke="var(--line)").encode(
        fill=alt.Fill("colour:N", scale=None),
        fillOpacity=alt.FillOpacity("shade:Q", scale=None),
        description="title:N",
    )
    return (
        alt.layer(cells, base.mark_text().encode(text="text:N"))
        .properties(width=alt.Step(CELL["width"]), height=alt.Step(CELL["height"]))
        .facet(column=alt.Column("view:N", sort=[*HEADS.values(), "Quorum"]), spacing=8)
        .resolve_scale(x="independent")
    )


def _look(cell: Mapping[str, Any], harm: str, name: str) -> dict[str, Any]:
    number = cell["number"]
    return {
        "text": "?" if number is None else short(number),
        "shade": SHADES[cell["shade"]],
        "colour": "var(--f-warning)" if harm == "writes" else "var(--critical)",
        "title": f"{name}, {LABELS[harm]}: {'unknown' if number is None else cell['title'] or 'nothing breaks'}",
    }
