"""The replicas of a topic: a row for each broker by rack, a column for each partition, and a letter for what the replica is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from durability.report.html.pictures.style import cells, names
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
    brokers = list(zip(topic["columns"], racks, strict=True))
    labels = [LEADER, *(_label(rack, broker) for broker, (_, rack) in brokers)]
    rows = []
    for row in topic["rows"]:
        leader = _leader(row, topic["columns"])
        mark = {"no leader": "O", "?": "?"}.get(leader, "")
        rows.append(_cell(0, 0, row, {"no leader": "none"}.get(leader, leader), mark, f"leader: {leader}"))
        for number, (_, (group, _)) in enumerate(brokers, 1):
            state = "unknown" if row["cells"] is None else row["cells"][number - 1]
            letter, signs = _letter(state)
            title = f"{labels[number]}: {state or 'no replica'}"
            rows.append(_cell(group, number, row, letter + signs, letter, title))
    x = alt.X("partition:N", sort=None).axis(title="partition", orient="top", labelAngle=0, domain=False, ticks=False)
    y = alt.Y("row:O", sort=None).axis(**names(labels))
    return (
        cells(rows, x, y, fontWeight=600)
        .properties(width=alt.Step(CELL["width"]), height=alt.Step(CELL["height"]))
        .facet(row=alt.Row("group:O", header=None), spacing=6)
        .resolve_scale(y="independent")
    )


def _label(rack: str | None, broker: Mapping[str, Any]) -> str:
    where = "no rack known" if rack is None else clipped(str(visible(rack)), 20)
    return f"{where} / {broker['broker']}{' down' if broker['down'] else ''}"


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


def _cell(group: int, number: int, row: Mapping[str, Any], text: str, letter: str, title: str) -> dict[str, Any]:
    return {
        "group": group,
        "row": number,
        "partition": str(row["partition"]),
        "text": text,
        "colour": f"var({COLOURS[letter]})",
        "shade": {"": 0, "L": 0.3}.get(letter, 0.14),
        "title": f"partition {row['partition']}, {title}",
    }
