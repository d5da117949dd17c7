"""Large fleets: topics that only their names tell apart are judged once, for each of them.

Such topics have the same settings and as many partitions, all healthy and all of one placement (`durability.lake.alike`). An
unhealthy partition is told by its own brokers, so a topic that has any is judged by itself. The one that is judged has the
names of all in NAMES, itself included; a row without others has its own there.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

KEY = ("cluster", "topic")
NAMES = "names"


def found(alone: DataFrame, topics: DataFrame) -> DataFrame:
    """cluster, topic, NAMES: those that are judged for others too.

    alone: cluster, topic, and what else tells partitions apart, of the topics that may be alike. topics: with their settings.
    """
    same = [c for c in dict.fromkeys((*topics.columns, *alone.columns)) if c not in KEY]
    keyed = topics.join(F.broadcast(alone), list(KEY)).select(*KEY, F.struct(*same).alias("same"))
    groups = keyed.groupBy("cluster", "same").agg(F.sort_array(F.collect_list("topic")).alias(NAMES))
    return groups.where(_several()).select("cluster", F.element_at(NAMES, 1).alias("topic"), NAMES)


def only_once(frame: DataFrame, alike: DataFrame) -> DataFrame:
    """Rows of `frame`, of topics, without those that another is judged for."""
    others = alike.select("cluster", F.explode(F.slice(NAMES, 2, F.size(NAMES) - 1)).alias("topic"))
    return frame.join(F.broadcast(others), list(KEY), "left_anti")


def with_names(topics: DataFrame, alike: DataFrame) -> DataFrame:
    """`topics` that are judged, with their NAMES."""
    joined = only_once(topics, alike).join(F.broadcast(alike), list(KEY), "left")
    return joined.withColumn(NAMES, F.coalesce(NAMES, F.array("topic")))


def carried(present: Iterable[str]) -> list[str]:
    """NAMES, where they are among a frame's columns."""
    return [NAMES] if NAMES in present else []


def each(judged: DataFrame) -> DataFrame:
    """A row for each topic that rows of `judged` are of."""
    return judged.withColumn("topic", F.explode(NAMES)).drop(NAMES) if NAMES in judged.columns else judged


def named(verdicts: DataFrame) -> DataFrame:
    """Verdicts on what stands for several topics, one for each topic."""
    if NAMES not in verdicts.columns:
        return verdicts
    return verdicts.withColumn("resource", F.explode(NAMES)).drop(NAMES)


def _several() -> Column:
    return F.size(NAMES) > 1
