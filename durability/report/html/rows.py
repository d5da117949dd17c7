"""Selects the findings that report.html lists, so that the page stays small for any fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.report.words import clipped, clipped_script, is_resolved, is_script, ranges

QUOTAS = {"FAIL": (700, 1.4), "UNKNOWN": (200, 0.4), "EXEMPT": (150, 0.3), "resolved": (100, 0.2)}
"""The most rows and mebibytes by kind of finding. With the rest, the page stays under 5 MB."""
MESSAGE, REMEDIATION, RESOURCE, WAIVER = 700, 1_800, 260, 300
"""The most characters of each."""
NAMED = 10
"""The most partitions that a message names."""
ACKS_TABLE = 3200
"""The most bytes of a finding's table of acks values."""


class Budget:
    """A limit for items and for their bytes after HTML escaping. offered: the number of items so far, with those left out."""

    def __init__(self, items: int, mebibytes: float):
        self.items, self.bytes, self.offered = items, int(mebibytes * (1 << 20)), 0

    @property
    def used_up(self) -> bool:
        return self.items <= 0 or self.bytes <= 0

    def takes(self, *texts: str | None, more: int = 0) -> bool:
        """Whether an item with these texts and `more` bytes still fits."""
        from markupsafe import escape

        self.offered += 1
        if self.used_up:
            return False
        self.items -= 1
        self.bytes -= 600 + more + sum(len(str(escape(t)).encode()) for t in texts if t)
        return True


class FindingRows:
    """Rows by kind in the given order, until the quota of the kind is used up.

    A partition-health finding on the same partitions as an earlier one is added to that row (`also`). A script that an earlier
    finding of the cluster has isn't repeated (`same_fix`: that row).
    """

    def __init__(self, quotas: Mapping[str, tuple[int, float]] = QUOTAS) -> None:
        self.shown: dict[str, list[dict[str, Any]]] = {kind: [] for kind in quotas}
        self._budgets = {kind: Budget(*quota) for kind, quota in quotas.items()}
        self._unhealthy: dict[tuple, dict[str, Any]] = {}
        self._scripts: dict[tuple[str, str], dict[str, Any]] = {}
        self._merged = 0

    def add(self, finding: Mapping[str, Any]) -> None:
        kind = "resolved" if is_resolved(finding) else finding["outcome"]
        budget = self._budgets[kind]
        if budget.used_up:
            budget.offered += 1
            return
        health = None
        if kind == "FAIL" and finding["control"] == "partition-health":
            health = (finding["cluster"], finding["resource"], finding["cause"], tuple(finding["partitions"]))
            if health in self._unhealthy:
                other = {name: finding[name] for name in ("id", "category", "severity")}
                self._unhealthy[health]["also"].append(other)
                budget.offered += 1
                self._merged += 1
                return
        texts = {name: clipped(finding[name], MESSAGE) for name in ("message", "cause")}
        texts["remediation"] = clipped_script(finding["remediation"] or "", REMEDIATION)
        texts["resource"] = clipped(finding["resource"], RESOURCE)
        in_message = texts["message"].startswith("partition") and len(finding["partitions"]) <= NAMED
        texts["partitions"] = "" if in_message else ranges(finding["partitions"])
        more = ACKS_TABLE if "acks" in finding["observed"] else 0
        if not budget.takes(*texts.values(), finding["cluster"], more=more):
            return
        waiver = finding["waiver"] and {k: clipped(str(v or ""), WAIVER) for k, v in finding["waiver"].items()}
        row = {**finding, **texts, "waiver": waiver, "also": [], "same_fix": None}
        if is_script(row["remediation"]):
            first = self._scripts.setdefault((finding["cluster"], row["remediation"]), row)
            row["same_fix"] = None if first is row else first
        if health:
            self._unhealthy[health] = row
        self.shown[kind].append(row)

    def left_out(self, kind: str) -> int:
        """The number of findings of the kind without a row."""
        return self._budgets[kind].offered - len(self.shown[kind]) - (self._merged if kind == "FAIL" else 0)
