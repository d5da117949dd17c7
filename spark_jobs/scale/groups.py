"""Evaluates equal partitions and equal topics once: `group` gives representatives, `expand` gives a row for each topic again.

Partitions of a cluster are equal if they are in one group (`durability.lake.partition_groups`) and their topics have the same
settings. Topics are equal if they share everything but their names, and all their partitions are healthy and equal. A topic with
an unhealthy partition is evaluated by itself, because reports name the partition's own brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import partitions

SETTINGS = ("required", *partitions.TOPIC_SETTINGS)
"""All columns of a topic that the rules for its partitions read."""
OWN = ("leader", "replicas", "isr", "elr", "last_known_elr")
"""Columns in which equal partitions may name different brokers."""
JUDGED_BY = (*OWN, "adding", "removing", "unreadable", "contradiction", "captured_at")
ROW = "row"
KEY = ("cluster", "like", "place")
TOPIC = ["cluster", "topic"]
NAMES = "names"
"""The names of the equal topics that a topic's row represents, its own included."""
MOST = 200_000
"""The number of different partitions up to which they are looked up in memory."""


class Groups(NamedTuple):
    """partitions: evaluated partitions of the topics in `topics`. topics: one per group of equal topics, with NAMES."""

    partitions: DataFrame
    topics: DataFrame


def representatives(read: Callable[[str], DataFrame], attempts: Sequence[str], grouped: Sequence[str]) -> DataFrame:
    """One row per group of a topic's partitions, with their numbers `ids` and their `leaders`.

    grouped: attempts whose groups may be used. Partitions of other `attempts` have one row each.
    """
    alone = [attempt for attempt in attempts if attempt not in set(grouped)]
    together = [attempt for attempt in attempts if attempt in set(grouped)]
    ungrouped = read("partitions").where(F.col("attempt_id").isin(alone))
    # These groups were built without a setting that rules read now, so they may contain partitions that differ.
    alone_again = {
        "partition_group": F.lit(None).cast("int"),
        "ids": F.array("partition"),
        "leaders": F.array("leader"),
    }
    ungrouped = ungrouped.withColumns(alone_again)
    if not together:
        return ungrouped
    of_groups = read("partition_groups").where(F.col("attempt_id").isin(together))
    of_groups = of_groups.withColumnRenamed("partitions", "ids").drop("reads")
    return of_groups.unionByName(ungrouped.select(*of_groups.columns)) if alone else of_groups


def numbered(rows: DataFrame) -> DataFrame:
    """The columns of `representatives` that `group` needs, and a row number."""
    kept = rows.select("cluster", "topic", "partition", "partition_group", "ids", "leaders", *JUDGED_BY)
    return kept.withColumn(ROW, F.monotonically_increasing_id())


def group(
    rows: DataFrame,
    topics: DataFrame,
    judge: Callable[..., DataFrame],
    checkpointed: Callable[[DataFrame], DataFrame],
    healthy: str | None = "healthy",
) -> Groups:
    """Evaluated partitions and their topics, equal ones once.

    rows: as `numbered` returns them, checkpointed because they are read twice.
    judge: evaluates rows of partitions and passes the columns `keep=` through.
    checkpointed: computes a frame.
    healthy: the column that says whether a partition is healthy; None to evaluate each topic by itself.
    """
    place = F.coalesce("partition_group", -1 - F.col("partition"))
    # A partition without a group is keyed by its topic and number.
    like = F.when(F.col("partition_group").isNull(), F.col("topic")).otherwise(F.col("like"))
    settings = checkpointed(_with_same_settings(topics))
    placed = rows.join(F.broadcast(settings.drop("same")), TOPIC).withColumns({"place": place, "like": like})
    # Spark hashes to find the least number. To find a first row it would sort.
    firsts = placed.groupBy(*KEY).agg(F.min(ROW).alias(ROW)).localCheckpoint(eager=True)
    if firsts.count() > MOST:
        return Groups(judge(rows), topics)
    ones = rows.join(F.broadcast(firsts.drop("cluster")), ROW)
    judged = judge(ones, keep=("like", "place"))
    of_rows = ("topic", "partition", "ids", "leaders", "partition_group", *OWN)
    judged = checkpointed(judged.drop(*of_rows))
    own = placed.select(*KEY, "topic", "partition", "ids", "leaders", "partition_group", *OWN)
    if healthy is None:
        return Groups(own.join(F.broadcast(judged), list(KEY)).drop("like", "place"), topics)
    equal = checkpointed(_equal_topics(own, judged.select(*KEY, healthy), settings))
    others = F.broadcast(equal.select("cluster", F.explode(F.slice(NAMES, 2, F.size(NAMES) - 1)).alias("topic")))
    firsts = F.broadcast(equal.select("cluster", F.element_at(NAMES, 1).alias("topic"), NAMES))
    kept = topics.join(others, TOPIC, "left_anti").join(firsts, TOPIC, "left")
    return Groups(
        own.join(others, TOPIC, "left_anti").join(F.broadcast(judged), list(KEY)).drop("like", "place"),
        kept.withColumn(NAMES, F.coalesce(NAMES, F.array("topic"))),
    )


def expand(judged: DataFrame, column: str = "topic") -> DataFrame:
    """One row per topic that a row of `judged` represents, with the topic's name in `column`."""
    return judged.withColumn(column, F.explode(NAMES)).drop(NAMES) if NAMES in judged.columns else judged


def _with_same_settings(topics: DataFrame) -> DataFrame:
    """Columns cluster, topic, `like` and `same`.

    like: equal for topics with equal SETTINGS.
    same: the first topic of the cluster that differs only in its name.
    """
    everything = F.struct(*(c for c in topics.columns if c not in TOPIC)).alias("everything")
    named = topics.groupBy("cluster", everything).agg(F.sort_array(F.collect_list("topic")).alias(NAMES))
    settings = F.to_json(F.struct(*(f"everything.{c}" for c in SETTINGS)), {"ignoreNullFields": "false"})
    like, first = F.sha2(settings, 256).alias("like"), F.element_at(NAMES, 1).alias("same")
    return named.select("cluster", like, first, F.explode(NAMES).alias("topic"))


def _equal_topics(own: DataFrame, judged: DataFrame, settings: DataFrame) -> DataFrame:
    """Columns cluster and NAMES, one row per set of two or more equal, healthy topics.

    judged: KEY, and whether partitions with that key are healthy.
    """
    partition = F.struct("place", "ids")
    per_topic = (
        own.join(F.broadcast(judged), list(KEY))
        .groupBy(*TOPIC)
        .agg(
            F.bool_and(F.col(judged.columns[-1]) & F.col("partition_group").isNotNull()).alias("sound"),
            F.sort_array(F.collect_list(partition)).alias("placed"),
        )
        .where("sound")
    )
    equal = per_topic.join(F.broadcast(settings), TOPIC).groupBy("cluster", "same", "placed")
    named = equal.agg(F.sort_array(F.collect_list("topic")).alias(NAMES))
    return named.where(F.size(NAMES) > 1).select("cluster", NAMES)
