"""The replicas of a topic: a row for each broker by rack, a column for each partition, and a letter for what the replica is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from durability.report.html.pictures.style import names
from durability.report.words import clipped, visible

LETTERS = {"leader": "L", "in sync": "S", "ELR": "E", "out of sync": "O", "unknown": "?", "": ""}
"""The letter of a state. `adding` and `removing` append a sign."""
SIGNS = {"adding": "+", "removing": "\N{MINUS SIGN}"}
COLOURS = {"L": "--info", "S": "--pass", "E": "--warning", "O": "--critical", "?": "--unknown", "": "--soft"}
CELL = {"width": 38, "height": 24}
LEADER = "leader's id"


def chart(topic: Mapping[str, Any]) -> alt.FacetChart:
    """The chart of one of `data.placements.read`."""
    racks = [(group, rack) for group, (rack, brokers) in enumerate(topic["racks"], 1) for _ in range(brokers)]
    rows = []
    for row in topic["rows"]:
        leader = _leader(row, topic["columns"])
        mark = {"no leader": "O", "?": "?"}.get(leader, "")
        rows.append(_cell(0, LEADER, row, {"no leader": "none"}.get(leader, leader), mark, f"leader: {leader}"))
        for place, (broker, (group, rack)) in enumerate(zip(topic["columns"], racks, strict=True)):
            state = "unknown" if row["cells"] is None else row["cells"][place]
            letter, signs = _letter(state)
            where = "no rack known" if rack is None else clipped(str(visible(rack)), 20)
            name = f"{where} / {broker['broker']}{' down' if broker['down'] else ''}"
            rows.append(_cell(group, name, row, letter + signs, letter, f"{name}: {state or 'no replica'}"))
    x = alt.X("partition:N", sort=None).axis(title="partition", orient="top", labelAngle=0, domain=False, ticks=False)
    y = alt.Y("broker:N", sort=None).axis(**names(row["broker"] for row in rows))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    cells = base.mark_rect(stroke="var(--line)").encode(
        fill=alt.Fill("colour:N", scale=None),
        fillOpacity=alt.FillOpacity("shade:Q", scale=None),
        description="title:N",
    )
    letters = base.mark_text(fontWeight=600).encode(text="text:N")
    return (
        alt.layer(cells, letters)
        .properties(width=alt.Step(CELL["width"]), height=alt.Step(CELL["height"]))
        .facet(row=alt.Row("group:O", header=None), spacing=6)
        .resolve_scale(y="independent")
    )


def _letter(state: str) -> tuple[str, str]:
    """The letter of a state of `placements.placement`, and its signs.

    >>> _letter("in sync, adding"), _letter("leader, ISR unknown"), _letter("ISR unknown"), _letter("")
    (('S', '+'), ('L', ''), ('?', ''), ('', ''))
    """
    first, *more = state.split(", ")
    return LETTERS["unknown" if "unknown" in first else first], "".join(SIGNS.get(name, "") for name in more)


def _leader(row: Mapping[str, Any], columns: list[dict[str, Any]]) -> str:
    """The leader's broker id; `no leader`; `?`: unknown, or not among the columns."""
    if row["leader"] == "none":
        return "no leader"
    states = zip(row["cells"] or (), columns, strict=False)
    return next((str(broker["broker"]) for state, broker in states if state.startswith("leader")), "?")


def _cell(group: int, broker: str, row: Mapping[str, Any], text: str, letter: str, title: str) -> dict[str, Any]:
    return {
        "group": group,
        "broker": broker,
        "partition": str(row["partition"]),
        "text": text,
        "colour": f"var({COLOURS[letter]})",
        "shade": {"": 0, "L": 0.3}.get(letter, 0.14),
        "title": f"partition {row['partition']}, {title}",
    }
