"""The table of report.html about the time one failure away from harm."""

from __future__ import annotations

from typing import Any

from durability.report.data.objectives import LONGEST, PERIODS, Objective, Objectives

ROWS, CLUSTERS = 80, 10
HARMS = {"writes": "acks=all writes stop", "data": "acknowledged data at risk"}
BADGES = {"missed": "warning", "met": "PASS", "unknown": "UNKNOWN", None: None}


def objective_rows(found: Objectives, stated: bool) -> dict[str, Any]:
    """`shown`: the rows. `left`: the number of others. `uncounted`: clusters. Empty if there is nothing to say.

    stated: does a tier have an objective? Then the section says so if nothing was counted.
    """
    if not found.counted and not stated:
        return {}
    entries = found.entries if found.counted else ()
    return {
        "shown": [_row(entry) for entry in entries[:ROWS]],
        "left": max(0, len(entries) - ROWS),
        "uncounted": found.uncounted[:CLUSTERS],
        "more_uncounted": max(0, len(found.uncounted) - CLUSTERS),
    }


def _row(entry: Objective) -> dict[str, Any]:
    near, unknown, total = entry.minutes[LONGEST]
    return {
        "tier": entry.tier,
        "harm": HARMS[entry.harm],
        "loss": entry.loss,
        "near": percent(near / total),
        "unknown": percent(unknown / total),
        "objective": f"{entry.percent:.10g} %" if entry.percent is not None else None,
        "state": entry.state,
        "badge": BADGES[entry.state],
        "used": [_used(entry, period) for period in PERIODS],
        "worst": entry.worst,
    }


def _used(entry: Objective, period: str) -> str | None:
    """The share of a period's budget. Unknown time may have used more of it."""
    used = entry.used(period)
    if used is None:
        return None
    return f"{'≥ ' if entry.minutes[period].unknown else ''}{percent(used)}"


def percent(share: float) -> str:
    """A share in percent. It is 0 or 100 only if it is exactly that.

    >>> [percent(share) for share in (0, 1, 0.25, 0.00123, 0.99999, 0.999999999, 1e-9, 0.9996)]
    ['0 %', '100 %', '25 %', '0.123 %', '99.999 %', '> 99.999 %', '< 0.001 %', '99.96 %']
    >>> percent(3.5), percent(123.456)
    ('350 %', '12,346 %')
    """
    value = share * 100
    if 0 < value < 0.001:
        return "< 0.001 %"
    if 99.9995 <= value < 100:
        return "> 99.999 %"
    digits = 0 if value > 100 else 3 if value < 1 or value > 99 else 1
    text = f"{value:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
