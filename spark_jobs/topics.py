"""Topics with all that the rules measure over their partitions, and what clusters need of their topics.

One aggregation over one scan of the partitions: the unhealthy ones travel along as an array, so that nothing reads the
fleet's partitions twice.
"""

from __future__ import annotations

from types import ModuleType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.controls import (
    acked_durability,
    base,
    elr_guard,
    min_insync_racks_valid,
    partition_health,
    reassignment_leftovers,
    unclean_leader_election,
)


def measured(partitions: DataFrame, topics: DataFrame, controls: list[ModuleType]) -> DataFrame:
    """One row a topic: `topics`, the measures of `controls` over its partitions, and each control's outcome.

    Measures are NULL where a topic has no partitions that could be read.
    """
    measures: dict[str, Column] = {
        "partition_count": F.count(F.lit(1)),
        "reassigning_partitions": F.sum(F.col("reassigning").cast("int")),
        "stuck_partitions": base.partition_ids(reassignment_leftovers.stuck()),
        "unhealthy": F.sort_array(F.collect_list(F.when(~_healthy(), _health_row()))),
    }
    for control in controls:
        measures |= control.measures()
    measures |= elr_guard.measures()
    per_topic = partitions.groupBy("cluster", "topic").agg(*(c.alias(n) for n, c in measures.items()))
    known = F.coalesce(F.col("partitions_known"), F.lit(False))
    joined = topics.join(per_topic, ["cluster", "topic"], "left").withColumn("partitions_known", known)
    if min_insync_racks_valid in controls:
        joined = joined.withColumn(min_insync_racks_valid.PROBLEM, min_insync_racks_valid.problem())
    if acked_durability in controls:
        joined = joined.withColumn(acked_durability.NOW, acked_durability.now())
    outcomes = {f"{base.column(c.CONTROL)}_outcome": c.outcome() for c in controls}
    return joined.withColumns(outcomes)


def _healthy() -> Column:
    flags = [partition_health.flag(c) for c in partition_health.CATEGORIES]
    return F.coalesce(~(flags[0] | flags[1] | flags[2] | flags[3]), F.lit(False))


def _health_row() -> Column:
    categories = [F.when(partition_health.flag(c), c) for c in partition_health.CATEGORIES]
    return F.struct(
        "partition",
        F.array_compact(F.array(*categories)).alias("categories"),
        (F.coalesce("at_min_isr", F.lit(False)) & F.col("isr_whole")).alias("by_configuration"),
        "leader",
        "replicas",
        "isr",
        "elr",
        F.col("min_isr").alias("min_insync_replicas"),
        F.col("effective_min_isr").alias("effective_min_insync_replicas"),
        F.col("rf").alias("replication_factor"),
        F.transform("out_of_sync", lambda b: b["broker"]).alias("out_of_sync"),
        F.array_join("causes", ", ").alias("cause"),
        "cli_differs",
    )


def by_cluster(measured: DataFrame) -> DataFrame:
    """What cluster-level rules need of a cluster's topics; `unclean_undecided` counts those that wait for the controllers."""
    waits = base.outcome_of(unclean_leader_election.CONTROL).isNull().cast("int")
    stuck = F.transform("stuck_partitions", lambda p: base.say("%s-%s", F.col("topic"), p))
    return measured.groupBy("cluster").agg(
        F.sum("reassigning_partitions").alias("reassigning"),
        F.sort_array(F.flatten(F.collect_list(stuck))).alias("stuck"),
        F.sort_array(F.collect_list(F.when(F.size("throttles") > 0, F.struct("topic", "throttles")))).alias(
            "throttled"
        ),
        F.sum((~F.col("throttles_known")).cast("int")).alias("unread_throttles"),
        F.max("min_racks").alias("racks_wanted"),
        F.sum(waits).alias("unclean_undecided"),
        F.bool_or(F.coalesce("elr_partitions_at_risk", F.lit(True))).alias("elr_cluster_at_risk"),
        F.sort_array(F.collect_set("tier")).alias("tiers_used"),
    )


def health_rows(measured: DataFrame) -> DataFrame:
    """The partitions that aren't healthy, and those whose health is unknown."""
    return measured.select("cluster", "topic", F.explode("unhealthy").alias("u")).select("cluster", "topic", "u.*")


def counters(measured: DataFrame) -> DataFrame:
    """Partitions by category: a row a topic with anything to count, and a row a cluster (topic NULL)."""
    sizes = {base.column(c): F.coalesce(F.size(f"{base.column(c)}_ids"), F.lit(0)) for c in partition_health.CATEGORIES}
    rows = measured.select(
        "cluster",
        "topic",
        F.coalesce("partition_count", F.lit(0)).alias("partitions"),
        F.coalesce(F.size("health_unknown"), F.lit(0)).alias("unknown"),
        *(size.alias(name) for name, size in sizes.items()),
        F.coalesce(F.size(F.filter("unhealthy", lambda u: u["by_configuration"])), F.lit(0)).alias(
            "at_min_isr_by_configuration"
        ),
    )
    names = ["partitions", "unknown", *sizes, "at_min_isr_by_configuration"]
    anything = sum((F.col(n) for n in names[2:]), F.col("unknown")) > 0
    per_cluster = rows.groupBy("cluster").agg(*(F.sum(n).alias(n) for n in names))
    return rows.where(anything).unionByName(per_cluster.withColumn("topic", F.lit(None).cast("string")))
