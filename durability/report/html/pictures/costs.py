"""A heat map of what the loss of each rack and broker breaks, by view and class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from durability.lake.tables import VIEWS
from durability.report.html.pictures.style import NAME, cells, names, short
from durability.report.words import clipped, visible

HEADS = {"now": "Now", "structural": "By structure", "worst": "Worst case"}
LABELS = {"data": "data", "availability": "offline", "writes": "writes"}
CELL = {"width": 44, "height": 24}
SHADES = [0, 0.12, 0.24, 0.38, 0.55]
"""Opacities by `failures.LEVELS`."""
UNKNOWN = {"text": "?", "shade": 0.14, "colour": "var(--unknown)"}
"""How a cell without a known number looks."""


def chart(cluster: Mapping[str, Any]) -> alt.FacetChart:
    """The heat map of a cluster in `FailureRows.context`. Each cell has its number.

    Where partitions could not be judged, the numbers are lower bounds, and the row's label has a question mark.
    """
    rows: list[dict[str, Any]] = []
    labels: list[str] = []
    for number, row in enumerate(cluster["heat"]):
        noun, name = row["kind"].removesuffix("s"), str(visible(row["name"]))
        labels.append(f"{noun} {clipped(name, 24)}{'' if row['unknown'] == 0 else ' ?'}")
        title = f"{noun} {clipped(name, NAME)}"
        classes = [(view, of_view) for view, of in VIEWS.items() for of_view in of]
        for (view, harm), cell in zip(classes, row["cells"], strict=True):
            look, what = _look(cell, harm, row["unknown"])
            place = {"row": number, "view": HEADS[view], "harm": LABELS[harm]}
            rows.append({**place, **look, "title": f"{title}, {LABELS[harm]}: {what}"})
        shade = {"lost": SHADES[4], "kept": SHADES[0]}.get(row["quorum"])
        known = {"text": row["quorum"], "shade": shade, "colour": "var(--critical)"}
        look = UNKNOWN if shade is None else known
        place = {"row": number, "view": "Quorum", "harm": "majority"}
        rows.append({**place, **look, "title": f"{title}, controllers' majority: {look['text']}"})
    x = alt.X("harm:N", sort=[*LABELS.values(), "majority"])
    x = x.axis(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=60)
    y = alt.Y("row:O", sort=None).axis(**names(labels))
    return (
        cells(rows, x, y)
        .properties(width=alt.Step(CELL["width"]), height=alt.Step(CELL["height"]))
        .facet(column=alt.Column("view:N", sort=[*HEADS.values(), "Quorum"]), spacing=8)
        .resolve_scale(x="independent")
    )


def _look(cell: Mapping[str, Any], harm: str, unknown: int | None) -> tuple[dict[str, Any], str]:
    """How a cell looks, and its number in words. unknown: how many partitions could not be judged; None if that is unknown."""
    number = cell["number"]
    rest = "" if unknown == 0 else f", {'an unknown number' if unknown is None else f'{unknown:,}'} not judged"
    if number is None or (rest and not number):
        return UNKNOWN, f"unknown{rest}"
    text, said = short(number), cell["title"] or "nothing breaks"
    if rest:
        text, said = f"\N{GREATER-THAN OR EQUAL TO}{text}", f"at least {said}{rest}"
    colour = "var(--f-warning)" if harm == "writes" else "var(--critical)"
    return {"text": text, "shade": SHADES[cell["shade"]], "colour": colour}, said
