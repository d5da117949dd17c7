"""Counts contradictions in the staged reading of a cluster as a whole, column by column.

A fact that couldn't be read (NULL) contradicts nothing. Contradicting facts of one partition are already unknown in the staged
files (`durability.lake.contradictions`). Of all rows, only topic names and partition ids are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.contradictions import BATCH_ROWS

__all__ = ["BATCH_ROWS", "COLUMNS", "Partitions", "against_topics", "duplicates", "scan"]

COLUMNS = ["topic", "partition", "leader", "replicas", "isr", "elr"]


@dataclass
class Partitions:
    """Result of `scan` for the partitions of one cluster.

    brokers: every broker id in them.
    topics: by name, the number of rows, the number of distinct partition ids, and the highest id.
    """

    rows: int = 0
    brokers: set[int] = field(default_factory=set)
    topics: dict[str, tuple[int, int, int]] = field(default_factory=dict)


def scan(batches: Iterable[pa.RecordBatch]) -> Partitions:
    """Count over record batches with `COLUMNS`: topic string, partition and leader int32, the others lists of int32."""
    found, names = Partitions(), []
    for batch in batches:
        found.rows += batch.num_rows
        for name in ("leader", "replicas", "isr", "elr"):
            named = pc.list_flatten(batch[name]) if pa.types.is_list(batch[name].type) else batch[name]
            found.brokers.update(pc.unique(named.drop_null()).to_pylist())
        names.append(batch.select(["topic", "partition"]))
    if names:
        statistics = [("partition", "count"), ("partition", "count_distinct"), ("partition", "max")]
        grouped = pa.Table.from_batches(names).group_by("topic").aggregate(statistics)
        topic, *counts = (column.to_pylist() for column in grouped.columns)
        found.topics = dict(zip(topic, zip(*counts, strict=True), strict=True))
    return found


def duplicates(values: pa.ChunkedArray) -> int:
    """The number of rows that repeat a value of another row."""
    return len(values) - pc.count_distinct(values, mode="all").as_py()


def against_topics(found: Partitions, topics: pa.Table, *, numbered: bool) -> dict[str, int]:
    """Compare the scanned partitions with `topics` (topic, declared_partitions int32, partitions_known bool).

    Returns counts:

    - duplicate_partitions: rows beyond the first one of a topic's partition.
    - unlisted_topics: topics with partitions but without a row.
    - incomplete_topics: topics that declared another number of partitions than there are. If `numbered`, also topics whose ids
      have gaps: Kafka numbers partitions from 0, but a document may be an excerpt.
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
