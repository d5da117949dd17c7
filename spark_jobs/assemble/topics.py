"""Topics with all measures of the rules over their partitions, and the columns about topics that rules for clusters read.

Partitions are read once and aggregated once. A topic's row lists its unhealthy partitions in the array `unhealthy`. An entry may
represent a group of equal partitions (`ids`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import ModuleType
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.lake import tables
from durability.plan.plan import Plan
from spark_jobs.assemble import distance, verdicts
from spark_jobs.controls import partition_health, reassignment_leftovers, unclean_leader_election
from spark_jobs.frames import base, elr_guard, inherited, rack_health, reassignment, target
from spark_jobs.frames.flagged import MASK, Flagged, aggregated, mask
from spark_jobs.history import rack_outage
from spark_jobs.scale.planned import Planned


class Expressions(NamedTuple):
    """Expressions over partitions and topics, by column name, built while Spark reads the frames.

    measures: over a topic's partitions.
    of_partitions: steps that add columns to a partition, for the measures.
    of_topics: steps that add columns to a topic, from the measures.

    A step may read the columns of earlier steps.
    """

    measures: Mapping[str, Column | Flagged]
    of_partitions: list[dict[str, Column]]
    of_topics: list[dict[str, Column]]


def expressions(controls: list[ModuleType], *, outages: bool, targets: bool = False) -> Expressions:
    """The expressions of `controls`. outages: add those of `rack_outage`. targets: add each topic's target (`target.steps`)."""
    measures = _measures(controls, outages=outages, targets=targets)
    of_partitions = [{MASK: mask(measures), "healthy": _healthy(), "health": _health()}]
    if own := _merged(controls, "of_partition"):
        of_partitions.insert(0, own)
    follows = _merged(controls, "follows")
    of_topics = [*([follows] if follows else ()), {f"{base.column(c.CONTROL)}_outcome": c.outcome() for c in controls}]
    if targets:
        *steps, last = target.steps()
        of_topics += [*steps, last | {"checks": F.array(*(c.check() for c in controls if hasattr(c, "check")))}]
    return Expressions(measures, of_partitions, of_topics)


def _merged(modules: list[ModuleType], function: str) -> dict[str, Any]:
    """The merged results of `function` of all modules that have it.

    Raises ValueError if two modules use the same column name.
    """
    columns: dict[str, Any] = {}
    for module in modules:
        more = getattr(module, function)() if hasattr(module, function) else {}
        if twice := columns.keys() & more.keys():
            raise ValueError(f"{module.__name__} measures {sorted(twice)}, which another module measures too")
        columns |= more
    return columns


def _measures(controls: list[ModuleType], *, outages: bool, targets: bool) -> dict[str, Column | Flagged]:
    """What `controls` measure over a topic's partitions, by name."""
    common: dict[str, Column | Flagged] = {
        "partition_count": F.sum(F.size("ids")),
        "reassigning_partitions": F.sum(F.col("reassigning").cast("int")),
        "led_isr_least": F.min(F.when(~F.col("offline"), F.col("isr_count"))),
        "stuck_partitions": base.partition_ids(reassignment_leftovers.stuck()),
        "awaited_brokers": reassignment_leftovers.awaited("awaited_dead"),
        "awaited_failed_disks": reassignment_leftovers.awaited("awaited_failed"),
        "cancel_harms": base.partition_ids(reassignment.cancel_harms()),
        "below_minimum": base.partition_ids(reassignment.falls_below_minimum()),
        "moves_unread": base.moves_unread(),
        "unhealthy": F.sort_array(F.collect_list(F.when(~F.col("healthy"), _health_row()))),
    }
    modules = [*controls, elr_guard]
    if outages:
        modules.append(rack_outage)
    if targets:
        modules.append(target)
    of_modules = _merged(modules, "measures")
    if twice := common.keys() & of_modules.keys():
        raise ValueError(f"a control measures {sorted(twice)}, which all topics have")
    return common | of_modules


def prepared(partitions: DataFrame, expressions: Expressions, planned: Planned) -> DataFrame:
    """Evaluated partitions with the columns that the measures read."""
    return planned(reduce(DataFrame.withColumns, expressions.of_partitions, planned(partitions)))


def measured(partitions: DataFrame, topics: DataFrame, expressions: Expressions, planned: Planned) -> DataFrame:
    """One row per topic: the columns of `topics`, the measures, each control's outcome and, if `expressions` has it, the target.

    partitions: as `prepared` returns them. Measures are NULL if none of a topic's partitions could be read.
    """
    per_topic = aggregated(partitions, expressions.measures)
    known = F.coalesce(F.col("partitions_known"), F.lit(False))
    joined = topics.withColumn("partitions_known", known).join(
        per_topic.hint("shuffle_hash"), ["cluster", "topic"], "left"
    )
    return reduce(DataFrame.withColumns, expressions.of_topics, planned(joined))


def _healthy() -> Column:
    """Is the partition in none of KIP-427's categories and, unless its provider hides racks, in none of KIP-1290's?"""
    flags = [partition_health.flag(c) for c in partition_health.CATEGORIES]
    in_racks = (F.col("rack_category") == rack_health.NEITHER) | F.col("racks_hidden")
    return F.coalesce(~(flags[0] | flags[1] | flags[2] | flags[3]) & in_racks, F.lit(False))


def _health() -> Column:
    """The columns of `partition_health` that are equal for all partitions of a group; NULL for healthy partitions."""
    categories = [F.when(partition_health.flag(c), c) for c in partition_health.CATEGORIES]
    fields = {
        "categories": F.array_compact(F.array(*categories)),
        "by_configuration": F.coalesce("at_min_isr", F.lit(False)) & F.col("isr_whole"),
        "min_insync_replicas": F.col("min_isr"),
        "effective_min_insync_replicas": F.col("effective_min_isr"),
        "replication_factor": F.col("rf"),
        "out_of_sync": F.transform("out_of_sync", lambda b: b["broker"]),
        "cause": F.array_join("causes", ", "),
        "cli_differs": F.col("cli_differs"),
        "categories_known": partition_health.known(),
        "isr_racks": F.col("isr_rack_count"),
        "min_insync_racks": F.col("min_racks"),
        "rack_category": F.col("rack_category"),
        "rack_unknown": F.col("rack_category").isNull() & ~F.col("racks_hidden"),
        "rack_by_placement": F.coalesce(F.col("rack_category") == rack_health.AT, F.lit(False))
        & ~F.col("at_min_racks"),
        "acks_all_error": F.col("acks_all_error"),
        "acks_all_kip_1290_error": F.col("acks_all_kip_1290_error"),
        # min.insync.replicas is above the number of replicas, and no replica that is being added explains that.
        "under_by_configuration": F.coalesce(
            F.col("under_min_isr") & F.col("isr_whole") & ~F.col("reassigning"), F.lit(False)
        ),
    }
    return F.when(~_healthy(), F.struct(*(column.alias(name) for name, column in fields.items())))


def _health_row() -> Column:
    """`health` with the partitions that it represents, their leaders, and the first one's replicas."""
    own = ("ids", "leaders", "replicas")
    return F.struct(*own, "health.*")


def by_cluster(measured: DataFrame, plan: Plan) -> DataFrame:
    """What rules for clusters read of a cluster's topics, one row per cluster.

    `awaited`, `awaited_failed`: the dead brokers, and those with a failed disk, that stuck reassignments wait for.
    `unclean_undecided`: the number of topics whose unclean-leader-election depends on the controllers' settings.
    `cancel_harms`: partitions, by name, that would lose their leader or writes if their reassignment were cancelled.
    `below_minimum`: partitions, by name, whose reassignment leaves them fewer replicas than min.insync.replicas.
    """
    undecided = (base.outcome_of(unclean_leader_election.CONTROL).isNull() & ~F.col("diskless")).cast("int")
    stuck, cancel_harms = _named_partitions("stuck_partitions"), _named_partitions("cancel_harms")
    below_minimum = _named_partitions("below_minimum")
    return measured.groupBy("cluster").agg(
        F.sum("reassigning_partitions").alias("reassigning"),
        F.sort_array(F.flatten(F.collect_list(stuck))).alias("stuck"),
        *(
            F.sort_array(F.array_distinct(F.flatten(F.collect_list(brokers)))).alias(name)
            for name, brokers in (("awaited", "awaited_brokers"), ("awaited_failed", "awaited_failed_disks"))
        ),
        F.sort_array(F.flatten(F.collect_list(cancel_harms))).alias("cancel_harms"),
        F.sort_array(F.flatten(F.collect_list(below_minimum))).alias("below_minimum"),
        *inherited.by_cluster(plan),
        F.sort_array(F.collect_list(F.when(F.size("throttles") > 0, F.struct("topic", "throttles")))).alias(
            "throttled"
        ),
        F.sum((~F.col("throttles_known")).cast("int")).alias("unread_throttles"),
        F.sum(undecided).alias("unclean_undecided"),
        F.bool_or(target.survives("rack")).alias("survives_rack"),
        F.bool_or(F.coalesce("elr_partitions_at_risk", F.lit(True))).alias("elr_cluster_at_risk"),
        F.bool_or(
            F.coalesce(F.size("unhealthy") > F.size(_by_configuration()), F.lit(True)) | ~F.col("partitions_known")
        ).alias("degraded"),
    )


def _named_partitions(ids: str) -> Column:
    """Partitions of a topic as `topic-0`. ids: the column of their ids."""
    return F.transform(ids, lambda p: F.concat_ws("-", "topic", p.cast("string")))


def _by_configuration() -> Column:
    """The unhealthy partitions that are only at min ISR, by configuration. All of their replicas are in sync."""
    return F.filter("unhealthy", lambda u: u["by_configuration"] & (F.size(u["categories"]) == 1))


def elr_cluster_at_risk() -> Column:
    """Can a change of the cluster's min.insync.replicas leave a partition without a leader? Unknown counts as yes.

    Reads a cluster's row joined with `by_cluster`. A topic that the auditor may not list can have an ELR too.
    """
    return F.coalesce("elr_cluster_at_risk", F.lit(False)) | ~base.all_topics_shown()


def inherited_least() -> Column:
    """`inherited_least` of a cluster's row joined with `by_cluster`; 0 if a hidden topic may have a smaller value."""
    return F.when(base.all_topics_shown(), F.col("inherited_least")).otherwise(0)


def health_rows(measured: DataFrame) -> DataFrame:
    """The rows of `partition_health`: partitions that are unhealthy or of unknown health. Equal ones share a row."""
    keys = (*verdicts.SNAPSHOT, "topic")
    rows = measured.select(*keys, F.explode("unhealthy").alias("u")).select(*keys, "u.*")
    return rows.withColumnRenamed("ids", "partitions").drop("leaders", "replicas")


def counters(
    measured: DataFrame, clusters: DataFrame, distances: DataFrame | None = None, tiers: DataFrame | None = None
) -> DataFrame:
    """The rows of `health_counters`: partitions by category, one row per topic, and one per cluster (topic NULL).

    distances, tiers: see `distance.with_distance` and `distance.with_tier`.

    Topics without a number above 0 have no row.

    - `out_of_sync`: the brokers whose replicas are missing. For an offline partition these are all its brokers: one that is in
      the ISR but doesn't lead is down.
    - `unknown`: 1 if a topic's partitions could not be listed.
    """
    sizes = {base.column(c): F.coalesce(F.size(f"{base.column(c)}_ids"), F.lit(0)) for c in partition_health.CATEGORIES}
    counted = {
        "unknown": F.when(F.col("partitions_known"), F.coalesce(F.size("health_unknown"), F.lit(0))).otherwise(1),
        **sizes,
        "under_min_rack_isr": _how_many(lambda u: u["rack_category"] == rack_health.UNDER),
        "at_min_rack_isr": _how_many(lambda u: u["rack_category"] == rack_health.AT),
        "at_min_rack_isr_by_placement": _how_many(lambda u: u["rack_by_placement"]),
        "rack_unknown": _how_many(lambda u: u["rack_unknown"]),
        "at_min_isr_by_configuration": _how_many(lambda u: u["by_configuration"]),
        "under_min_isr_by_configuration": _how_many(lambda u: u["under_by_configuration"]),
    }
    missing = F.coalesce(F.transform("unhealthy", _missing), F.array().cast("array<array<int>>"))
    rows = measured.select(
        *verdicts.SNAPSHOT,
        "topic",
        "tier",
        F.coalesce("partition_count", F.lit(0)).alias("partitions"),
        *(size.alias(name) for name, size in counted.items()),
        F.array_distinct(F.flatten(missing)).alias("out_of_sync"),
    )
    rows = distance.with_tier(distance.with_distance(rows, distances), tiers)
    anything = sum((F.coalesce(F.col(n), F.lit(0)) for n in (*counted, *tables.ONE_FAILURE)), F.lit(0)) > 0
    per_cluster = rows.groupBy(*verdicts.SNAPSHOT).agg(
        *(F.sum(n).alias(n) for n in ("partitions", *counted, *tables.ONE_FAILURE)),
        F.sort_array(F.array_distinct(F.flatten(F.collect_list("out_of_sync")))).alias("out_of_sync"),
    )
    lost = clusters.select("cluster", F.when(F.size("lost_racks") > 0, F.col("lost_racks")).alias("lost_racks"))
    if distances is not None:
        per_cluster = per_cluster.join(F.broadcast(distance.by_tier(rows)), "cluster", "left")
    per_cluster = per_cluster.unionByName(_without_topics(clusters, per_cluster))
    for more in (_by_leader(measured, clusters), lost):
        per_cluster = per_cluster.join(F.broadcast(more), "cluster", "left")
    of_topics = rows.where(anything).drop("tier", "tier_known")
    return of_topics.unionByName(per_cluster, allowMissingColumns=True)


def _without_topics(clusters: DataFrame, counted: DataFrame) -> DataFrame:
    """Rows for clusters without topics. Without such a row, the cluster would look unread."""
    empty = clusters.where("topics_known").join(F.broadcast(counted.select("cluster")), "cluster", "left_anti")
    lists = {"out_of_sync": "array<int>", "tiers": distance.TIERS}
    values = {n: F.array().cast(lists[n]) if n in lists else F.lit(0).cast("long") for n in counted.columns}
    return empty.select(*verdicts.SNAPSHOT, *(v.alias(n) for n, v in values.items() if n not in verdicts.SNAPSHOT))


def _how_many(test: Callable[[Column], Column]) -> Column:
    """The number of a topic's unhealthy partitions for which `test` holds."""
    return F.coalesce(F.size(F.flatten(F.transform(F.filter("unhealthy", test), lambda u: u["ids"]))), F.lit(0))


def _led_counts(unhealthy: Column) -> dict[str, Column]:
    """tables.LED_COUNTS of one unhealthy partition, each 1 or 0."""
    categories, rack = unhealthy["categories"], unhealthy["rack_category"]
    flags = {
        "under_min_isr": F.array_contains(categories, "under-min-isr"),
        "at_min_isr": F.array_contains(categories, "at-min-isr"),
        "under_replicated": F.array_contains(categories, "under-replicated"),
        "under_min_rack_isr": rack == rack_health.UNDER,
        "at_min_rack_isr": rack == rack_health.AT,
        "unknown": ~unhealthy["categories_known"] | unhealthy["rack_unknown"],
    }
    return {name: F.coalesce(flags[name].cast("int"), F.lit(0)) for name in tables.LED_COUNTS}


def _by_leader(measured: DataFrame, clusters: DataFrame) -> DataFrame:
    """Columns cluster and `brokers`: the unhealthy partitions that each broker leads, counted as the broker's own metrics do.

    The metrics are ReplicaManager's UnderMinIsrPartitionCount, AtMinIsrPartitionCount and UnderReplicatedPartitions (KIP-427),
    and KIP-1290's UnderMinRackIsrPartitionCount and AtMinRackIsrPartitionCount. `unknown` counts led partitions with an unknown
    category. An offline partition has no leader, so no broker counts it. Brokers whose counts are all 0 are left out.
    """
    narrow = F.transform(
        "unhealthy", lambda u: F.struct(u["leaders"].alias("leaders"), *(c.alias(n) for n, c in _led_counts(u).items()))
    )
    rows = measured.select("cluster", F.inline(narrow))
    led = rows.select("cluster", F.explode("leaders").alias("id"), *tables.LED_COUNTS)
    led = led.where(F.col("id").isNotNull())
    counts = led.groupBy("cluster", "id").agg(*(F.sum(n).alias(n) for n in tables.LED_COUNTS))
    known = clusters.select("cluster", F.col("broker").alias("of"))
    broker = F.try_element_at("of", F.col("id"))
    entry = F.struct(
        F.col("id").alias("broker"), broker["rack"].alias("rack"), broker["live"].alias("live"), *tables.LED_COUNTS
    )
    anything = sum((F.col(name) for name in tables.LED_COUNTS), F.lit(0)) > 0
    joined = counts.where(anything).join(F.broadcast(known), "cluster")
    return joined.groupBy("cluster").agg(F.sort_array(F.collect_list(entry)).alias("brokers"))


def _missing(partition: Column) -> Column:
    """The brokers whose replicas an unhealthy partition misses. Empty if its ISR could not be read, which counts as unknown."""
    absent = F.when(F.array_contains(partition["categories"], "offline"), partition["replicas"]).otherwise(
        partition["out_of_sync"]
    )
    return F.coalesce(absent, F.array().cast("array<int>"))
