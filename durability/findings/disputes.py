"""Verdicts on which Spark and Great Expectations disagree. Their findings are UNKNOWN."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from durability.catalogue.causes import DISAGREE
from durability.lake.tables import FINDINGS

KEY = ("cluster", "control", "resource")


class Disputes:
    """A result's rows of `disagreements`, by cluster, control and resource."""

    def __init__(self, disagreements: pa.Table):
        self._rows = {tuple(row[name] for name in KEY): row for row in disagreements.to_pylist()}
        self._without_verdict = dict(self._rows)
        self.controls = sorted({control for _, control, _ in self._rows})

    def of(self, verdict: Mapping[str, Any]) -> dict[str, Any] | None:
        """The row about a verdict, or None. Resolved verdicts aren't disputed."""
        if not self._rows or (verdict["change"] == "resolved" and verdict["outcome"] != "EXEMPT"):
            return None
        key = tuple(verdict[name] for name in KEY)
        self._without_verdict.pop(key, None)
        return self._rows.get(key)

    def without_verdict(self) -> pa.Table:
        """A finding for each row that `of` has matched with no verdict."""
        findings = [
            row
            | {
                "id": hashlib.sha256("\0".join(key).encode()).hexdigest()[:32],
                "resource_type": "topic",
                "outcome": "UNKNOWN",
                "cause": DISAGREE,
                "message": message(row, None),
            }
            for key, row in self._without_verdict.items()
        ]
        return pa.Table.from_pylist(findings, FINDINGS.arrow)


def message(dispute: Mapping[str, Any], own: str | None) -> str:
    """A message with both outcomes and the rule's own message."""
    spark, expectations = dispute["spark"] or "nothing", dispute["expectations"] or "nothing"
    return f"Spark says {spark}, Great Expectations {expectations}. The rule's own words: {own or 'no message'}"
