"""What all charts have in common. Colours are the page's CSS tokens, so that a chart is readable in light, dark and print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

WIDTH = 480
"""Pixels of a chart. On a phone it shrinks to about 390, where its text of 12 pixels is still readable."""
CHARACTER = 7.2
"""Pixels of a character in a wide font."""
NAME = 120
"""The most characters of a name in a title. Labels are shorter."""
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "padding": {"left": 4, "top": 4, "right": 20, "bottom": 4},
    "aria": False,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "title": None,
    },
    "header": {"labelFontSize": 12, "labelFontWeight": 600, "title": None},
    "text": {"fontSize": 12},
}


def cells(rows: list[dict[str, Any]], x: alt.X, y: alt.Y, **text: Any) -> alt.LayerChart | alt.FacetChart:
    """Cells with a text each: `text`, `colour`, `shade` (its opacity) and `title` of a row. text: properties of the texts."""
    import altair as alt

    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    filled = base.mark_rect(stroke="var(--line)").encode(
        fill=alt.Fill("colour:N", scale=None),
        fillOpacity=alt.FillOpacity("shade:Q", scale=None),
        description="title:N",
    )
    return alt.layer(filled, base.mark_text(**text).encode(text="text:N"))


def names(labels: Sequence[str]) -> dict[str, Any]:
    """An axis of rows, given by their numbers from 0, with their labels. Rows with equal labels stay separate.

    Its space allows for a wider font than the converter measures: browsers choose their own.
    """
    space, label = CHARACTER * max(map(len, labels)), f"{json.dumps(labels)}[datum.value]"
    return {"labelExpr": label, "labelLimit": 0, "minExtent": space, "domain": False, "ticks": False}


def short(count: int) -> str:
    """A number of at most five characters.

    >>> short(0), short(9_999), short(10_499), short(999_999), short(1_250_000), short(98_700_000)
    ('0', '9,999', '10 k', '1.0 M', '1.2 M', '99 M')
    """
    if count < 10_000:
        return f"{count:,}"
    if count < 999_500:
        return f"{count / 1e3:.0f} k"
    return f"{count / 1e6:.1f} M" if count < 9.95e6 else f"{count / 1e6:.0f} M"
