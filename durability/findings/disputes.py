"""Verdicts on which Spark and Great Expectations disagree: nothing is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from durability.catalogue.causes import DISAGREE
from durability.lake.tables import VERDICTS

Key = tuple[str, str, str]
"""Cluster, control, resource."""


class Dispute(NamedTuple):
    """What each engine says."""

    spark: str
    expectations: str

    def message(self, own: str | None) -> str:
        """Both readings, and what the rule itself says."""
        return f"Spark says {self.spark}, Great Expectations {self.expectations}. The rule's own words: {own or 'no message'}"


class Disputes:
    """The rows of `disagreements` of a result, by what they are about; those that no verdict stands for are remembered."""

    def __init__(self, disagreements: pa.Table):
        self._rows = disagreements.to_pylist()
        self._by_key = {
            (row["cluster"], row["control"], row["resource"]): Dispute(
                row["spark"] or "nothing", row["expectations"] or "nothing"
            )
            for row in self._rows
        }
        self._met: set[Key] = set()
        self.controls = {row["control"] for row in self._rows}

    def of(self, row: dict) -> Dispute | None:
        """The dispute about a verdict, if there is one; a verdict of the past isn't disputed."""
        if not self._by_key or (row["change"] == "resolved" and row["outcome"] != "EXEMPT"):
            return None
        key = (row["cluster"], row["control"], row["resource"])
        found = self._by_key.get(key)
        if found:
            self._met.add(key)
        return found

    def unmet(self) -> Iterator[dict]:
        """A verdict for each dispute that had none, so that it can't go unseen."""
        for row in self._rows:
            key = (row["cluster"], row["control"], row["resource"])
            if key in self._met:
                continue
            self._met.add(key)
            about = "\0".join(key)
            empty = dict.fromkeys(VERDICTS.arrow.names)
            own = {name: row[name] for name in row if name in empty}
            yield (
                empty
                | own
                | {
                    "id": hashlib.sha256(about.encode()).hexdigest()[:32],
                    "resource_type": "topic",
                    "outcome": "UNKNOWN",
                    "cause": DISAGREE,
                    "was": self._by_key[key].message(None),
                }
            )
