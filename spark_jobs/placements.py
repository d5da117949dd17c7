"""Large fleets: partitions of the same placement under the same settings are judged once, whatever their topics.

`durability.lake.alike` numbers a cluster's placements. Seven million partitions of a made-up fleet are some 400,000 rows to
count over, and these some 50,000 different ones for `spark_jobs.partitions` to judge.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs import partitions

SETTINGS = ("required", *partitions.TOPIC_SETTINGS)
"""All that a partition's topic adds to how it is judged."""
OWN = ("leader", "replicas", "isr", "elr", "last_known_elr")
"""What partitions of one placement may have brokers of their own in."""
JUDGED_BY = (*OWN, "adding", "removing", "unreadable", "unchanged_reassignment")
KEY = ("cluster", "like", "place")


def build(
    rows: DataFrame, topics: DataFrame, clusters: DataFrame, prepared: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """What `prepared` makes of what `partitions.build` gives of rows of `partitions`; their own are OWN and which they are."""
    placed = rows.join(F.broadcast(_alike(topics)), ["cluster", "topic"]).withColumns(
        {
            # One that is like no other goes by its topic and number.
            "like": F.when(F.col("placement").isNull(), F.col("topic")).otherwise(F.col("like")),
            "place": F.coalesce("placement", -1 - F.col("partition")),
        }
    )
    one = F.first(F.struct("partition", *JUDGED_BY)).alias("one")
    none = F.lit(None).cast("array<int>")
    ones = placed.groupBy(*KEY).agg(one).select("cluster", F.col("like").alias("topic"), "place", "one.*")
    ones = ones.withColumns({"placement": F.col("place"), "alike": none, "alike_leaders": none})
    judged = prepared(partitions.build(ones, topics, clusters))
    theirs = [c for c in judged.columns if c not in ("partition", "ids", "leaders", "placement", "topic", *OWN)]
    judged = judged.select(F.col("topic").alias("like"), F.col("placement").alias("place"), *theirs)
    own = placed.select(*KEY, "topic", "partition", *partitions.standing(), "placement", *OWN)
    return own.join(F.broadcast(judged), list(KEY)).drop("like", "place")


def _alike(topics: DataFrame) -> DataFrame:
    """cluster, topic -> `like`: the first of the cluster's topics with the same settings."""
    groups = topics.groupBy("cluster", *SETTINGS).agg(
        F.min("topic").alias("like"), F.collect_list("topic").alias("all")
    )
    return groups.select("cluster", "like", F.explode("all").alias("topic"))
