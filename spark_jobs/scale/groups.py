"""Large fleets: what no rule can tell apart is judged once.

Partitions of one cluster are judged once for each group (`durability.lake.partition_groups`) and settings of their topics. Topics
that only their names tell apart are judged once too: the same settings, and as many partitions of the same groups, all healthy.
An unhealthy partition is reported with its own brokers, so its topic is judged by itself.

Measured at 7 million partitions placed as Kafka places them: MEASUREMENT
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import partitions

SETTINGS = ("required", *partitions.TOPIC_SETTINGS)
"""All that a partition's topic adds to how it is judged."""
OWN = ("leader", "replicas", "isr", "elr", "last_known_elr")
"""What partitions of one placement may have brokers of their own in."""
JUDGED_BY = (*OWN, "adding", "removing", "unreadable", "captured_at")
ROW = "row"
KEY = ("cluster", "like", "place")
TOPIC = ["cluster", "topic"]
NAMES = "names"
"""Of a row of a topic, the topics that it is judged for, itself included."""
MOST = 200_000
"""Different partitions, at most, to be held in memory and looked up."""


class Groups(NamedTuple):
    """partitions: judged, of the topics that are judged. topics: these, with NAMES where they stand for others."""

    partitions: DataFrame
    topics: DataFrame


def representatives(read: Callable[[str], DataFrame], attempts: Sequence[str], grouped: Sequence[str]) -> DataFrame:
    """Rows of partitions that stand for the partitions `ids` with the `leaders`: of `partition_groups` for the attempts in
    `grouped`, and each partition by itself for other `attempts`."""
    alone = [attempt for attempt in attempts if attempt not in set(grouped)]
    together = [attempt for attempt in attempts if attempt in set(grouped)]
    ungrouped = read("partitions").where(F.col("attempt_id").isin(alone))
    ungrouped = ungrouped.withColumns({"ids": F.array("partition"), "leaders": F.array("leader")})
    if not together:
        return ungrouped
    of_groups = read("partition_groups").where(F.col("attempt_id").isin(together))
    of_groups = of_groups.withColumnRenamed("partitions", "ids").drop("reads")
    return of_groups.unionByName(ungrouped.select(*of_groups.columns)) if alone else of_groups


def numbered(rows: DataFrame) -> DataFrame:
    """What `group` needs of `representatives`, each with a number: by that the same row is found again."""
    kept = rows.select("cluster", "topic", "partition", "partition_group", "ids", "leaders", *JUDGED_BY)
    return kept.withColumn(ROW, F.monotonically_increasing_id())


def group(
    rows: DataFrame,
    topics: DataFrame,
    judge: Callable[..., DataFrame],
    checkpointed: Callable[[DataFrame], DataFrame],
    healthy: str | None = "healthy",
) -> Groups:
    """Partitions and topics, each judged once.

    rows: `numbered` and computed, since they are read twice. judge: what rules see of rows of `partitions`, and with `keep=` of
    more columns. checkpointed: computes. healthy: the column that says whether a partition is; None: no topic stands for others.
    """
    place = F.coalesce("partition_group", -1 - F.col("partition"))
    # A partition that is like no other goes by its topic and number.
    like = F.when(F.col("partition_group").isNull(), F.col("topic")).otherwise(F.col("like"))
    settings = checkpointed(_with_same_settings(topics))
    placed = rows.join(F.broadcast(settings.drop("same")), TOPIC).withColumns({"place": place, "like": like})
    # A number alone is gathered by hashing; rows themselves would be sorted.
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
    alike = checkpointed(_several(own, judged.select(*KEY, healthy), settings))
    others = F.broadcast(alike.select("cluster", F.explode(F.slice(NAMES, 2, F.size(NAMES) - 1)).alias("topic")))
    firsts = F.broadcast(alike.select("cluster", F.element_at(NAMES, 1).alias("topic"), NAMES))
    kept = topics.join(others, TOPIC, "left_anti").join(firsts, TOPIC, "left")
    return Groups(
        own.join(others, TOPIC, "left_anti").join(F.broadcast(judged), list(KEY)).drop("like", "place"),
        kept.withColumn(NAMES, F.coalesce(NAMES, F.array("topic"))),
    )


def expand(judged: DataFrame, column: str = "topic") -> DataFrame:
    """A row for each topic that rows of `judged` are of, its name in `column`."""
    return judged.withColumn(column, F.explode(NAMES)).drop(NAMES) if NAMES in judged.columns else judged


def _with_same_settings(topics: DataFrame) -> DataFrame:
    """cluster, topic -> `like`, which topics share that rules can't tell apart by what they look at of a partition's topic,
    and `same`, the first topic of the cluster that it shares everything with but its name."""
    everything = F.struct(*(c for c in topics.columns if c not in TOPIC)).alias("everything")
    named = topics.groupBy("cluster", everything).agg(F.sort_array(F.collect_list("topic")).alias(NAMES))
    settings = F.to_json(F.struct(*(f"everything.{c}" for c in SETTINGS)), {"ignoreNullFields": "false"})
    like, first = F.sha2(settings, 256).alias("like"), F.element_at(NAMES, 1).alias("same")
    return named.select("cluster", like, first, F.explode(NAMES).alias("topic"))


def _several(own: DataFrame, judged: DataFrame, settings: DataFrame) -> DataFrame:
    """cluster, NAMES: topics that share their settings, and of which all partitions are healthy and placed in the same way.

    judged: KEY and whether it is healthy.
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
    alike = per_topic.join(F.broadcast(settings), TOPIC).groupBy("cluster", "same", "placed")
    named = alike.agg(F.sort_array(F.collect_list("topic")).alias(NAMES))
    return named.where(F.size(NAMES) > 1).select("cluster", NAMES)
