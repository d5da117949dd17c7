"""Large fleets: partitions of the same placement under the same settings are judged once, whatever their topics.

`durability.lake.alike` numbers a cluster's placements. Seven million partitions of a made-up fleet are some 160,000 rows to
count over, and these some 17,000 different ones for `spark_jobs.frames.partitions` to judge.
"""

from __future__ import annotations

from collections.abc import Callable

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
MOST = 200_000
"""Different ones, at most, to be held in memory and looked up."""


def numbered(rows: DataFrame) -> DataFrame:
    """What `build` needs of rows of `partitions`, each with a number: by that the same row is found again."""
    kept = rows.select("cluster", "topic", "partition", "placement", "room", "alike", "alike_leaders", *JUDGED_BY)
    return kept.withColumn(ROW, F.monotonically_increasing_id())


def build(
    rows: DataFrame,
    topics: DataFrame,
    clusters: DataFrame,
    reassigned: Callable[[DataFrame], DataFrame],
    prepared: Callable[[DataFrame], DataFrame],
    settled: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """What `prepared` makes of what `partitions.build` gives of rows of `partitions`; their own are OWN and which they are.

    rows: `numbered` and computed, since they are read twice. reassigned: adds `unchanged_reassignment`. settled: computes.
    """
    place = F.coalesce("placement", -1 - F.col("partition"))
    # One that is like no other goes by its topic and number.
    like = F.when(F.col("placement").isNull(), F.col("topic")).otherwise(F.col("like"))
    placed = rows.join(F.broadcast(_alike(topics)), ["cluster", "topic"]).withColumns({"place": place, "like": like})
    # A number alone is gathered by hashing; rows themselves would be sorted.
    firsts = placed.groupBy(*KEY).agg(F.min(ROW).alias(ROW)).localCheckpoint(eager=True)
    if firsts.count() > MOST:
        return prepared(partitions.build(reassigned(rows), topics, clusters))
    none = F.lit(None).cast("array<int>")
    ones = rows.drop("placement", "alike", "alike_leaders").join(F.broadcast(firsts.drop("cluster")), ROW)
    ones = ones.withColumns({"placement": F.col("place"), "alike": none, "alike_leaders": none})
    judged = prepared(partitions.build(reassigned(ones), topics, clusters, keep=("like",)))
    of_rows = ("topic", "partition", "ids", "leaders", "placement", "room", *OWN)
    theirs = [c for c in judged.columns if c not in (*of_rows, *KEY)]
    judged = judged.select("cluster", "like", F.col("placement").alias("place"), *theirs)
    judged = settled(judged)
    own = placed.select(*KEY, "topic", "partition", *partitions.standing(), "placement", "room", *OWN)
    return own.join(F.broadcast(judged), list(KEY)).drop("like", "place")


def _alike(topics: DataFrame) -> DataFrame:
    """cluster, topic -> `like`: the same for topics of a cluster with the same settings, and for no others."""
    settings = F.to_json(F.struct(*SETTINGS), {"ignoreNullFields": "false"})
    return topics.select("cluster", "topic", F.sha2(settings, 256).alias("like"))
