"""A prediction against what happened: rows of `loss_outcomes` compared with what was seen of each partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from durability.report.data.losses import Row, serves

FIELDS = ("leader", "serves", "error", "isr")
"""What can be compared. serves: accepts, rejects or offline. error: the answer to an acks=all write, None if it is accepted."""
LISTED = 1_000
"""Differences that are listed. All of them are counted."""
ACCEPTED = "NONE"
UNPREDICTED = "the prediction is unknown"
NOT_READ_AGAIN = "the partition could not be read again"
NEW = "the partition was not in the snapshot"

Place = tuple[str, int]
"""Topic and partition."""
Seen = Mapping[Place, Mapping[str, Any]]
"""By partition, what was seen, under the names of FIELDS. A field that is missing was not seen. `isr` is in any order."""


@dataclass
class Comparison:
    """Partitions by field: how many were compared and how many agree.

    compared, agreed: partitions of which at least one field was compared, and those whose compared fields all agree.
    not_compared: partitions by field and reason. A reason that concerns the whole partition has the field None.
    differs: the first LISTED differences, each with topic, partition, field, predicted and seen.
    """

    compared: int = 0
    agreed: int = 0
    fields: dict[str, Counter[str]] = field(default_factory=dict)
    differs: list[dict[str, Any]] = field(default_factory=list)
    not_compared: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    @property
    def agreement(self) -> float | None:
        """The share of compared partitions that agree, 0 to 1; None if none was compared. Only full agreement gives 1."""
        if not self.compared:
            return None
        return 1.0 if self.agreed == self.compared else min(round(self.agreed / self.compared, 4), 0.9999)

    @property
    def full(self) -> bool:
        """Was something compared, and does all of it agree?"""
        return self.compared > 0 and self.agreed == self.compared


def compare(
    rows: Iterable[Row],
    seen: Seen,
    fields: Iterable[str] = ("leader", "serves"),
    unseen: Mapping[str, str] | None = None,
) -> Comparison:
    """Compares each predicted partition with what was seen of it.

    rows: of `loss_outcomes`, for one cluster. `isr_after` may be added: the predicted members of the ISR, or None where they
        can't be predicted.
    fields: which of FIELDS are compared. unseen: the reason by field if it was not compared.
    """
    found, wanted, unseen = Comparison(), tuple(fields), unseen or {}
    predicted_places: set[Place] = set()
    for row in rows:
        expected = _predicted(row)
        for partition in row["partitions"]:
            place = (row["topic"], partition)
            predicted_places.add(place)
            _compare_one(found, place, expected, seen.get(place), wanted, unseen)
    found.not_compared[None, NEW] = len(seen.keys() - predicted_places)
    found.not_compared += Counter()  # drops what was counted zero times
    return found


def _compare_one(
    found: Comparison,
    place: Place,
    expected: Mapping[str, Any],
    seen: Mapping[str, Any] | None,
    wanted: Iterable[str],
    unseen: Mapping[str, str],
) -> None:
    if seen is None:
        found.not_compared[None, NOT_READ_AGAIN] += 1
        return
    compared, differences = 0, []
    for name in wanted:
        if name not in expected:
            found.not_compared[name, UNPREDICTED] += 1
        elif name not in seen:
            found.not_compared[name, unseen.get(name, NOT_READ_AGAIN)] += 1
        else:
            compared += 1
            same = expected[name] == (sorted(seen[name]) if name == "isr" else seen[name])
            found.fields.setdefault(name, Counter())["compared"] += 1
            found.fields[name]["agreed"] += same
            if not same:
                differences.append((name, expected[name], seen[name]))
    found.compared += compared > 0
    found.agreed += compared > 0 and not differences
    topic, partition = place
    for name, predicted, was in differences[: LISTED - len(found.differs)]:
        found.differs.append(
            {"topic": topic, "partition": partition, "field": name, "predicted": predicted, "seen": was}
        )


def _predicted(row: Row) -> dict[str, Any]:
    """What is predicted of a row's partitions, under the names of FIELDS. A field that can't be predicted is left out.

    >>> _predicted({"now": "NOT_ENOUGH_REPLICAS", "leader_after": 2, "isr_after": [3, 2]})
    {'leader': 2, 'serves': 'rejects', 'error': 'NOT_ENOUGH_REPLICAS', 'isr': [2, 3]}
    >>> _predicted({"now": None, "leader_after": None})
    {}
    """
    answer, after = row["now"], serves(row["now"])
    expected: dict[str, Any] = {}
    if row["leader_after"] is not None or after == "offline":
        expected["leader"] = row["leader_after"]
    if after != "unknown":
        expected |= {"serves": after, "error": None if answer == ACCEPTED else answer}
    if row.get("isr_after") is not None:
        expected["isr"] = sorted(row["isr_after"])
    return expected


def as_they_are(rows: Iterable[Row]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Each partition of a snapshot with its leader and whether it serves (KIP-427), as `Seen` has it.

    rows: of `loss_outcomes` for this snapshot. Only what holds before the loss counts.
    """
    for row in rows:
        now = serves(row["before"])
        seen: dict[str, Any] = {} if now == "unknown" else {"serves": now}
        if row["leader_before"] is not None or now == "offline":
            seen["leader"] = row["leader_before"]
        for partition in row["partitions"]:
            yield (row["topic"], partition), seen
