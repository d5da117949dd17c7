"""Finds partitions whose facts contradict each other. Such a partition is unknown. The others are evaluated.

Kafka's metadata can contradict itself: brokers answer from copies of different ages, ZooKeeper's controller passes through such
states in a reassignment, and a corrupted node may stay in one. It is unknown which of two readings is right, so neither counts.
Both are kept as text. A fact that could not be read (NULL) contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.topology.kinds import PARTITION_LISTS

BATCH_ROWS = 1 << 17
ABSENT = -(2**31)
"""Pads rows of `Ids`. It is no broker id."""
WIDE = 16
"""Longer lists are compared one by one. In a batch, one such row would make all rows as wide."""
WITHIN = (
    ("leader", "replicas"),
    # KRaft's controller adds each leader that it elects to the ISR, also after an unclean election (PartitionChangeBuilder).
    ("leader", "isr"),
    ("isr", "replicas"),
    ("adding", "replicas"),
    ("removing", "replicas"),
)
"""Pairs of facts: the ids of the first must be among those of the second."""
APART = (("isr", "elr"), ("adding", "removing"))
"""No id is in both: KIP-966 moves a replica from the ISR to the ELR, and a reassignment either adds or removes one."""
PARTIAL = (("adding", "replicas"), ("removing", "replicas"))
"""Some id of the second isn't in the first. A reassignment starts from replicas and ends with replicas, so it neither adds nor
removes all of them (PartitionReassignmentReplicas)."""
FACTS = ("leader", *PARTITION_LISTS)
"""The facts of a partition that are unknown if they contradict each other."""


class Ids(NamedTuple):
    """Broker ids, one row per partition. `known`: False where the column is NULL."""

    ids: np.ndarray
    known: np.ndarray

    def among(self, others: Ids) -> np.ndarray:
        """For each id, whether it is among the other ids of its row. True for padding."""
        return (self.ids == ABSENT) | self._in(others)

    def _in(self, others: Ids) -> np.ndarray:
        found = np.zeros(self.ids.shape, bool)
        for column in others.ids.T:
            found |= self.ids == column[:, None]
        return found

    def outside(self, others: Ids) -> np.ndarray:
        """For each row, whether an id here is missing from `others`, if those are known."""
        return others.known & ~self.among(others).all(axis=1)

    def shares(self, others: Ids) -> np.ndarray:
        """For each row, whether an id is in both."""
        return ((self.ids != ABSENT) & self._in(others)).any(axis=1)

    def covers(self, others: Ids) -> np.ndarray:
        """By row: are all of the other ids here, where there are some?"""
        some = (others.ids != ABSENT).any(axis=1)
        return self.known & some & others.among(self).all(axis=1)

    def repeats(self) -> np.ndarray:
        """For each row, whether an id occurs twice."""
        in_order = np.sort(self.ids, axis=1)
        return ((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] != ABSENT)).any(axis=1)


def ids(column: pa.Array) -> Ids:
    """The ids of a column of broker ids: int32, or lists of int32."""
    if not pa.types.is_list(column.type):
        plain = column.fill_null(ABSENT).to_numpy(zero_copy_only=False)
        return Ids(plain[:, None], plain != ABSENT)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    found = np.full((len(column), lengths.max(initial=0)), ABSENT, np.int32)
    found[np.arange(found.shape[1]) < lengths[:, None]] = pc.list_flatten(column).to_numpy(zero_copy_only=False)
    return Ids(found, column.is_valid().to_numpy(zero_copy_only=False))


def readings(columns: Mapping[str, pa.Array]) -> dict[int, str]:
    """The readings that contradict each other, by row. Sound rows are left out.

    columns: FACTS of partitions, as in the lake's `partitions`.

    >>> lists = pa.list_(pa.int32())
    >>> none = pa.array([[], []], lists)
    >>> readings({"leader": pa.array([1, 3], pa.int32()), "replicas": pa.array([[1, 2], [1, 2]], lists),
    ...           "isr": pa.array([[1, 2], [1]], lists), **dict.fromkeys(("elr", "last_known_elr", "adding", "removing"), none)})
    {1: 'leader 3; replicas 1,2; isr 1'}
    """
    found: dict[int, str] = {}
    for start in range(0, len(columns["leader"]), BATCH_ROWS):
        batch = {name: columns[name].slice(start, BATCH_ROWS) for name in FACTS}
        wide = _wide(batch)
        rows, narrow = np.flatnonzero(~wide), batch
        if wide.any():
            narrow = {name: column.filter(pa.array(~wide)) for name, column in batch.items()}
        named: dict[int, dict[str, None]] = {}
        for row, names in _contradicting({name: ids(column) for name, column in narrow.items()}):
            named.setdefault(int(rows[row]), {}).update(dict.fromkeys(names))
        for row in _rows(wide):
            if odd := _of_one({name: column[row].as_py() for name, column in batch.items()}):
                named[row] = dict.fromkeys(odd)
        for row, those in sorted(named.items()):
            found[start + row] = "; ".join(f"{name} {_shown(batch[name][row].as_py())}" for name in those)
    return found


def _wide(batch: Mapping[str, pa.Array]) -> np.ndarray:
    """For each row, whether one of its lists has more than WIDE ids."""
    longest = [
        pc.fill_null(pc.list_value_length(batch[name]), 0).to_numpy(zero_copy_only=False) for name in PARTITION_LISTS
    ]
    return np.max(longest, axis=0) > WIDE


def _of_one(stated: Mapping[str, int | list[int] | None]) -> list[str]:
    """The result of `_contradicting` for one row: the names of facts that contradict each other."""
    listed = {n: [v] if isinstance(v, int) else v for n, v in stated.items()}
    held = {n: set(v or ()) for n, v in listed.items()}
    within = [pair for pair in WITHIN if listed[pair[1]] is not None and not held[pair[0]] <= held[pair[1]]]
    apart = [pair for pair in APART if held[pair[0]] & held[pair[1]]]
    partial = [pair for pair in PARTIAL if held[pair[1]] and held[pair[0]] >= held[pair[1]]]
    repeated = [(name,) for name in PARTITION_LISTS if len(held[name]) != len(listed[name] or ())]
    return [name for names in (*within, *apart, *partial, *repeated) for name in names]


def _contradicting(facts: Mapping[str, Ids]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Pairs of a row and the names of facts that contradict each other in it."""
    for inner, outer in WITHIN:
        yield from ((row, (inner, outer)) for row in _rows(facts[inner].outside(facts[outer])))
    for one, other in APART:
        yield from ((row, (one, other)) for row in _rows(facts[one].shares(facts[other])))
    for one, other in PARTIAL:
        yield from ((row, (one, other)) for row in _rows(facts[one].covers(facts[other])))
    for name in PARTITION_LISTS:
        yield from ((row, (name,)) for row in _rows(facts[name].repeats()))


def _rows(flags: np.ndarray) -> list[int]:
    return np.flatnonzero(flags).tolist()


def _shown(value: int | list[int]) -> str:
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
