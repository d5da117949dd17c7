"""Numbers the patterns of partitions (`loss_patterns`) by group, where the lake has groups of equal partitions.

All partitions of a group have one pattern, but for their topics' settings (`durability.lake.partition_groups`). So the first
partition of each group of a cluster is looked at. Of 1 million partitions placed as Kafka places them there are 3,134, and 31,496
groups by topic. The keys take 6.5 CPU seconds (6.2 if each group by topic is looked at), nearly all of it planning and compiling.
Numbering the partitions takes 3.1 (4.0 with a second join by topic).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.scale import loss_patterns as patterns
from spark_jobs.scale.groups import ROW

OF_GROUP = ("cluster", "partition_group")
"""Partitions of a group of a cluster differ in their topic alone."""
OF_TOPIC = ("cluster", "topic", "partition_group")
MOST = 1_000_000
"""The number of groups up to which they are looked up in memory."""


class Groups(NamedTuple):
    """rows: `groups.numbered`, checkpointed. without: the attempts whose groups can't be used."""

    rows: DataFrame
    without: Sequence[str]


class Keyed(NamedTuple):
    """Partitions with the keys of their patterns.

    rows: the facts of the partitions that are in `groups`. groups: a row per OF_TOPIC with `tid`, KEY and `ids`, its partitions.
    alone: a row per other partition with KEY. Both are checkpointed. compiled: makes a frame that is compiled.
    """

    rows: DataFrame | None
    groups: DataFrame | None
    alone: DataFrame
    compiled: Callable[..., DataFrame]

    @property
    def patterns(self) -> DataFrame:
        """The different KEYs."""
        keys = self.alone.select(*patterns.KEY)
        if self.groups is not None:
            keys = keys.unionByName(self.groups.select(*patterns.KEY))
        return keys.where(F.col("members").isNotNull()).distinct()

    def undescribed(self) -> DataFrame:
        """cluster, topic and partition of the partitions that no pattern describes."""
        none = F.col("members").isNull()
        found = self.alone.where(none).select("cluster", "topic", "partition")
        if self.groups is None:
            return found
        of_groups = self.groups.where(none).select("cluster", "topic", F.explode("ids").alias("partition"))
        return found.unionByName(of_groups)

    def listed(self, numbers: DataFrame) -> DataFrame:
        """All partitions that a pattern describes: tid, pattern, and `ids` of some with that pattern.

        numbers: a `pattern` for each KEY.
        """
        columns = ("tid", "pattern", "ids")
        alone = self.alone.withColumn("ids", F.array("partition"))
        named = alone.join(F.broadcast(numbers), [*patterns.KEY]).select(*columns)
        if self.groups is None:
            return named
        return named.unionByName(self.groups.join(F.broadcast(numbers), [*patterns.KEY]).select(*columns))

    def numbered(self, numbers: DataFrame) -> DataFrame:
        """tid, cluster, replicas and `pattern` of each of these partitions. numbers: a `pattern` for each KEY, checkpointed."""
        columns = ("tid", "cluster", "replicas", "pattern")
        numbers = F.broadcast(numbers)
        described = self.alone.where(F.col("members").isNotNull())
        alone = self.compiled(described).join(numbers, [*patterns.KEY]).select(*columns)
        if self.rows is None or self.groups is None:
            return alone
        of_groups = self.groups.join(numbers, [*patterns.KEY]).select(*OF_TOPIC, "tid", "pattern")
        if self.groups.count() <= MOST:
            of_groups = F.broadcast(of_groups)
        facts = self.compiled(self.rows.select(*OF_TOPIC, "replicas"))
        return facts.join(of_groups, [*OF_TOPIC]).select(*columns).unionByName(alone)


def keyed(
    rows: DataFrame,
    groups: Groups | None,
    topics: DataFrame,
    clusters: DataFrame,
    checkpointed: Callable[[DataFrame], DataFrame],
    compiled: Callable[..., DataFrame],
) -> Keyed:
    """rows: the facts of all partitions. topics: `loss_patterns.numbered_topics`. clusters: `loss_patterns.codes`."""
    named = F.broadcast(topics.select("cluster", "topic", "tid", "settings"))

    def key(some: DataFrame) -> DataFrame:
        of_topics = compiled(some, whole=False).join(named, ["cluster", "topic"])
        kept = ("tid", "settings", "cluster", "topic", "partition", "replicas")
        return checkpointed(patterns.keyed(of_topics, clusters, kept))

    if groups is None:
        return Keyed(None, None, key(rows), compiled)
    # A group doesn't tell which racks hold voters.
    differ = [row.cluster for row in clusters.where(~patterns.alike_without_brokers()).select("cluster").collect()]
    # The lake skips files without such rows, if nothing else is asked.
    tests = [F.col("partition_group").isNull()]
    tests += [
        F.col(name).isin(list(some)) for name, some in (("attempt_id", groups.without), ("cluster", differ)) if some
    ]
    by_itself = reduce(Column.__or__, tests)
    of_rows = groups.rows.where(F.col("partition_group").isNotNull() & ~F.col("cluster").isin(differ))
    firsts = of_rows.groupBy(*OF_GROUP).agg(F.min(ROW).alias(ROW)).select(ROW)
    placed = checkpointed(patterns.keyed(of_rows.join(F.broadcast(firsts), ROW), clusters, OF_GROUP))
    of_topics = of_rows.select(*OF_TOPIC, "ids").join(named, ["cluster", "topic"])
    of_groups = of_topics.join(F.broadcast(placed), [*OF_GROUP])
    return Keyed(rows.where(~by_itself), checkpointed(of_groups), key(rows.where(by_itself)), compiled)
