"""The results of each cluster in a fleet, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

SHOWN = 20
"""The most clusters in the table. The report has all."""
COLUMNS = {"FAIL": "failed", "UNKNOWN": "unknown", "EXEMPT": "exempt", "PASS": "passed"}


def fleet_table(document: Mapping[str, Any]) -> Table | None:
    """One row per cluster of a findings.json, most failures first; None for a single cluster.

    A cluster that could not be evaluated shows its status instead of counts.
    """
    from durability.report.text.console import tame

    counts = document["summary"]["clusters"]
    status = {s["cluster"]: s["status"] for s in document["run"]["snapshots"]}
    if len(status) < 2:
        return None
    table = Table("cluster", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS.values():
        table.add_column(name, justify="right")
    judged = {name: counts.get(name, {}) for name in status}
    ranked = sorted(status, key=lambda name: (status[name] == "accepted", -judged[name].get("FAIL", 0), name))
    for name in ranked[:SHOWN]:
        cells = [f"{judged[name].get(outcome, 0):,}" for outcome in COLUMNS]
        if status[name] != "accepted":
            cells[0] = status[name] if status[name] == "rejected" else "not read"
        table.add_row(Text(tame(name, 60)), *cells)
    if len(ranked) > SHOWN:
        table.add_row(f"and {len(ranked) - SHOWN:,} more, in the report")
    return table
