"""How often a staged reading of a cluster contradicts itself: counts, by whole columns.

A fact that couldn't be read (NULL) contradicts nothing. Lists of replicas are compared a batch of rows at a time; only
names of topics and partition ids are kept of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 1 << 17
COLUMNS = ["topic", "partition", "leader", "replicas", "isr", "elr"]
ABSENT = -(2**31)
"""Fills up rows of `_Ids`; no broker id."""


@dataclass
class Partitions:
    """What `scan` found in the partitions of one cluster. `brokers`: every broker id named; `topics`: by name how many rows
    and how many different partition ids the topic has, and the highest id."""

    rows: int = 0
    leader_not_replica: int = 0
    leader_not_in_sync: int = 0
    isr_not_replica: int = 0
    elr_not_replica: int = 0
    brokers: set[int] = field(default_factory=set)
    topics: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class _Ids(NamedTuple):
    """Broker ids, a row per partition; `known`: False where the column is NULL."""

    ids: np.ndarray
    known: np.ndarray

    def outside(self, others: _Ids) -> int:
        """How many partitions have an id here that isn't among `others`, where those are known."""
        found = self.ids == ABSENT
        for column in others.ids.T:
            found |= self.ids == column[:, None]
        return int((others.known & ~found.all(axis=1)).sum())


def scan(batches: Iterable[pa.RecordBatch]) -> Partitions:
    """Counts over record batches with `COLUMNS`: topic string, partition and leader int32, the others lists of int32.

    A partition counts once for each contradiction, however many brokers are in it.
    """
    found, names = Partitions(), []
    for batch in batches:
        leader = batch["leader"].fill_null(ABSENT).to_numpy(zero_copy_only=False)[:, None]
        leaders = _Ids(leader, leader[:, 0] != ABSENT)
        replicas, isr, elr = (_ids(batch[name]) for name in ("replicas", "isr", "elr"))
        found.rows += batch.num_rows
        found.leader_not_replica += leaders.outside(replicas)
        # KRaft's controller puts whom it elects into the ISR, also from the ELR and uncleanly (PartitionChangeBuilder).
        found.leader_not_in_sync += leaders.outside(isr)
        found.isr_not_replica += isr.outside(replicas)
        found.elr_not_replica += elr.outside(replicas)
        for some in (leaders, replicas, isr, elr):
            found.brokers.update(np.unique(some.ids).tolist())
        names.append(batch.select(["topic", "partition"]))
    found.brokers.discard(ABSENT)
    if names:
        statistics = [("partition", "count"), ("partition", "count_distinct"), ("partition", "max")]
        grouped = pa.Table.from_batches(names).group_by("topic").aggregate(statistics)
        topic, *counts = (column.to_pylist() for column in grouped.columns)
        found.topics = dict(zip(topic, zip(*counts, strict=True), strict=True))
    return found


def _ids(column: pa.Array) -> _Ids:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    ids = np.full((len(column), lengths.max(initial=0)), ABSENT, np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = pc.list_flatten(column).to_numpy(zero_copy_only=False)
    return _Ids(ids, column.is_valid().to_numpy(zero_copy_only=False))


def duplicates(values: pa.ChunkedArray) -> int:
    """How many rows repeat a value of another row."""
    return len(values) - pc.count_distinct(values, mode="all").as_py()


def against_topics(found: Partitions, topics: pa.Table, *, numbered: bool) -> dict[str, int]:
    """Counts of the scanned partitions against `topics` (topic, declared_partitions int32, partitions_known bool).

    duplicate_partitions: rows beyond the first of a topic's partition; unlisted_topics: topics with partitions but
    without a row of their own; incomplete_topics: topics that declared another number of partitions than there are,
    or, if `numbered`, whose ids aren't 0 up to it (Kafka numbers them so; a document may be an excerpt).
    """
    incomplete = 0
    for topic in topics.to_pylist():
        _, partitions, last = found.topics.get(topic["topic"], (0, 0, -1))
        declared = topic["declared_partitions"]
        if declared is not None and topic["partitions_known"]:
            incomplete += partitions != declared or (numbered and last != declared - 1)
    return {
        "duplicate_partitions": sum(rows - partitions for rows, partitions, _ in found.topics.values()),
        "unlisted_topics": len(set(found.topics) - set(topics["topic"].to_pylist())),
        "incomplete_topics": incomplete,
    }
