"""losses.json: what the loss of each broker and rack would cost, and how likely k failures break something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from durability.report.json_text import compact

FORMAT = "durability-losses/1"
NOT_COMPUTED = "this run didn't compute its losses"


class LossesWriter:
    """Writes losses.json as a stream, a line per cluster. run: as in findings.json."""

    def __init__(self, file: TextIO, run: Mapping[str, Any]):
        self.file, self.run, self.separator = file, run, "\n"
        self.written: set[str] = set()
        head = {"format": FORMAT, "run": {name: run[name] for name in ("id", "started_at")}}
        file.write(f'{compact(head)[:-1]},\n"clusters": [')

    def add(self, entry: Mapping[str, Any]) -> None:
        self.file.write(self.separator + compact(entry))
        self.separator = ",\n"
        self.written.add(entry["cluster"])

    def close(self) -> None:
        self.file.write(f'\n],\n"missing": {compact(missing(self.run["snapshots"], self.written))}}}\n')


def missing(snapshots: Sequence[Mapping[str, Any]], there: set[str]) -> list[dict[str, str]]:
    """The clusters of a run without an entry, each with the `reason`. Their losses are unknown.

    >>> missing([{"cluster": "eu", "status": "accepted", "reason": None}], {"us"})
    [{'cluster': 'eu', 'reason': "this run didn't compute its losses"}]
    """
    return [
        {
            "cluster": s["cluster"],
            "reason": NOT_COMPUTED
            if s["status"] == "accepted"
            else f"{s['status']}: {s['reason'] or 'no reason given'}",
        }
        for s in snapshots
        if s["cluster"] not in there
    ]
