"""Partitions that are one failure away from harm, in the rows of `health_counters`: per topic, per cluster, and per tier."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from durability.lake.tables import ONE_FAILURE, TIER_COUNTS

TIERS = f"array<struct<tier:string,{','.join(f'{name}:bigint' for name in TIER_COUNTS)}>>"


def with_distance(topics: DataFrame, distances: DataFrame | None) -> DataFrame:
    """`topics` with the columns of ONE_FAILURE.

    topics: a row per topic, with cluster and topic.
    distances: cluster, topic and the columns of ONE_FAILURE. A topic without a row has 0 of each. None: nothing was
        computed, so all are NULL.
    """
    if distances is None:
        return topics.withColumns({name: F.lit(None).cast("bigint") for name in ONE_FAILURE})
    joined = topics.join(distances.select("cluster", "topic", *ONE_FAILURE), ["cluster", "topic"], "left")
    return joined.withColumns({name: F.coalesce(F.col(name), F.lit(0)).cast("bigint") for name in ONE_FAILURE})


def with_tier(topics: DataFrame, tiers: DataFrame | None) -> DataFrame:
    """`topics` with `tier` and `tier_known`: does the cluster's policy, as last resolved, know the topic?

    tiers: cluster, topic and tier, as an earlier run resolved them. None: `topics` has this run's tiers.
    """
    if tiers is None:
        return topics.withColumn("tier_known", F.lit(True))
    resolved = tiers.select("cluster", "topic", "tier", F.lit(True).alias("tier_known"))
    return topics.drop("tier").join(resolved, ["cluster", "topic"], "left")


def by_tier(topics: DataFrame) -> DataFrame:
    """Columns cluster and `tiers`: the numbers of ONE_FAILURE and all partitions, per tier. Tier NULL: topics without one.

    `tiers` is NULL if no topic's tier is known: no run has resolved the cluster's policy yet.

    topics: a row per topic with cluster, partitions, and the columns of `with_distance` and `with_tier`. A topic whose partitions
        could not be listed counts as one partition.
    """
    size = F.greatest(F.col("partitions"), F.col("one_failure_unknown")).cast("bigint")
    sums = [F.sum(size if name == "partitions" else name).alias(name) for name in TIER_COUNTS]
    known = F.bool_or(F.coalesce("tier_known", F.lit(False))).alias("known")
    per_tier = topics.groupBy("cluster", "tier").agg(known, *sums)
    listed = F.sort_array(F.collect_list(F.struct("tier", *TIER_COUNTS))).cast(TIERS)
    return per_tier.groupBy("cluster").agg(F.when(F.bool_or("known"), listed).alias("tiers"))
