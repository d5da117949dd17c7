"""How often a staged reading of a cluster contradicts itself: counts, by whole columns.

A fact that couldn't be read (NULL) contradicts nothing. Memory stays bounded on millions of partitions: lists of
replicas are compared a batch of rows at a time, and of the whole only topic and partition ids are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 1 << 17


@dataclass
class Partitions:
    """What `scan` found in the partitions of one cluster. `keys`: topic index and partition id of every row, as one
    number a row, in `topics`' order of names; `brokers`: every broker id named."""

    rows: int = 0
    leader_not_replica: int = 0
    leader_not_in_sync: int = 0
    isr_not_replica: int = 0
    elr_not_replica: int = 0
    keys: list[np.ndarray] = field(default_factory=list)
    topics: dict[str, int] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)


COLUMNS = ["topic", "partition", "leader", "replicas", "isr", "elr"]


def scan(batches: Iterator[pa.RecordBatch]) -> Partitions:
    """Counts over record batches with `COLUMNS`: topic string, partition and leader int32, the others lists of int32.

    A partition counts once for each contradiction, however many brokers are in it.
    """
    seen = Partitions()
    for batch in batches:
        seen.rows += batch.num_rows
        replicas = _Lists(batch.column("replicas"))
        seen.leader_not_replica += _leaders_outside(batch.column("leader"), replicas)
        isr, elr = _Lists(batch.column("isr")), _Lists(batch.column("elr"))
        # KRaft's controller puts whom it elects into the ISR, also from the ELR and uncleanly (PartitionChangeBuilder).
        seen.leader_not_in_sync += _leaders_outside(batch.column("leader"), isr)
        seen.isr_not_replica += _rows_outside(isr, replicas)
        seen.elr_not_replica += _rows_outside(elr, replicas)
        leaders = batch.column("leader").drop_null().to_numpy(zero_copy_only=False)
        for values in (replicas.values, isr.values, elr.values, leaders):
            seen.brokers.update(np.unique(values).tolist())
        seen.keys.append(_keys(batch, seen.topics))
    return seen


class _Lists:
    """A list column as flat values, with the row of each; `valid`: rows that aren't NULL."""

    def __init__(self, column: pa.Array):
        self.valid = column.is_valid().to_numpy(zero_copy_only=False)
        self.values = pc.list_flatten(column).fill_null(-1).to_numpy(zero_copy_only=False)
        self.lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        self.starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1])) if len(self.lengths) else np.zeros(0, int)
        self.rows = np.repeat(np.arange(len(self.lengths)), self.lengths)

    def holds(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """For each pair of a row and a value: is the value in that row's list."""
        found = np.zeros(len(values), bool)
        starts, lengths = self.starts[rows], self.lengths[rows]
        for place in range(int(lengths.max()) if len(lengths) else 0):
            there = lengths > place
            found[there] |= self.values[starts[there] + place] == values[there]
        return found


def _leaders_outside(leader: pa.Array, members: _Lists) -> int:
    rows = np.flatnonzero(leader.is_valid().to_numpy(zero_copy_only=False) & members.valid)
    leaders = leader.fill_null(-1).to_numpy(zero_copy_only=False)[rows]
    return int((~members.holds(rows, leaders)).sum())


def _rows_outside(inner: _Lists, outer: _Lists) -> int:
    known = outer.valid[inner.rows]
    rows, values = inner.rows[known], inner.values[known]
    return len(np.unique(rows[~outer.holds(rows, values)]))


def _keys(batch: pa.RecordBatch, topics: dict[str, int]) -> np.ndarray:
    column = batch.column("topic")
    names = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    index = np.array([topics.setdefault(n, len(topics)) for n in names.dictionary.to_pylist()], np.int64)
    rows = index[names.indices.to_numpy(zero_copy_only=False)] if len(index) else np.zeros(0, np.int64)
    return (rows << 32) | batch.column("partition").to_numpy(zero_copy_only=False).astype(np.int64)


def duplicates(values: pa.ChunkedArray) -> int:
    """How many rows repeat a value of another row."""
    return len(values) - pc.count_distinct(values, mode="all").as_py()


def _distinct(parts: list[np.ndarray]) -> np.ndarray:
    keys = np.concatenate([np.zeros(0, np.int64), *parts])
    keys.sort()
    return keys[np.concatenate([np.ones(min(1, len(keys)), bool), keys[1:] != keys[:-1]])]


def against_topics(seen: Partitions, topics: pa.Table, *, numbered: bool) -> dict[str, int]:
    """Counts of the scanned partitions against `topics` (topic, declared_partitions int32, partitions_known bool).

    duplicate_partitions: rows beyond the first of a topic's partition; unlisted_topics: topics with partitions but
    without a row of their own; incomplete_topics: topics that declared another number of partitions than there are,
    or, if `numbered`, whose ids aren't 0 up to it (Kafka numbers them so; a document may be an excerpt).
    """
    keys = _distinct(seen.keys)
    names = topics["topic"].to_pylist()
    index = np.array([seen.topics.get(n, -1) for n in names], np.int64)
    counts = np.bincount(keys >> 32, minlength=len(seen.topics))
    last_of_topic = keys[np.cumsum(counts) - 1]  # the keys are sorted, and every topic has one
    present = index >= 0
    found, last = np.zeros(len(names), np.int64), np.full(len(names), -1, np.int64)
    found[present], last[present] = counts[index[present]], last_of_topic[index[present]] & 0xFFFFFFFF
    declared = topics["declared_partitions"].fill_null(-1).to_numpy()
    compared = (declared >= 0) & topics["partitions_known"].fill_null(False).to_numpy()
    wrong = compared & ((found != declared) | (numbered & (last != declared - 1)))
    return {
        "duplicate_partitions": seen.rows - len(keys),
        "unlisted_topics": len(set(seen.topics) - set(names)),
        "incomplete_topics": int(wrong.sum()),
    }
