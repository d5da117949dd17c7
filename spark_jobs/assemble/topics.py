"""Topics with all that the rules measure over their partitions, and what clusters need of their topics.

One aggregation over one scan of the partitions that are judged: the unhealthy ones travel along as an array. Only where
some stand for others (`durability.lake.alike`) are those others read, for the rows of `partition_health` (`each`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import ModuleType
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.assemble import verdicts
from spark_jobs.controls import partition_health, reassignment_leftovers, unclean_leader_election
from spark_jobs.frames import base, elr_guard, rack_health, target
from spark_jobs.frames.flagged import MASK, Flagged, aggregated, mask
from spark_jobs.history import rack_outage


class Asked(NamedTuple):
    """What is asked of partitions and of topics: columns that name others, put together while Spark reads those.

    measures: over a topic's partitions, by name. of_partitions: what these need of each partition. of_topics: what follows of
    them. Each step of both reads those before it.
    """

    measures: Mapping[str, Column | Flagged]
    of_partitions: list[dict[str, Column]]
    of_topics: list[dict[str, Column]]


def asked(controls: list[ModuleType], *, outages: bool, targets: bool = False) -> Asked:
    """What `controls` ask; outages: with what `rack_outage` does; targets: with each topic's target (`target.steps`)."""
    found = _measures(controls, outages=outages, targets=targets)
    of_partitions = [{MASK: mask(found), "healthy": _healthy(), "health": _health()}]
    if own := _joined(controls, "of_partition"):
        of_partitions.insert(0, own)
    follows = _joined(controls, "follows")
    of_topics = [*([follows] if follows else ()), {f"{base.column(c.CONTROL)}_outcome": c.outcome() for c in controls}]
    return Asked(found, of_partitions, [*of_topics, *(target.steps() if targets else ())])


def _joined(modules: list[ModuleType], function: str) -> dict[str, Any]:
    """What `function` gives of those modules that have it.

    ValueError where two of them give one name: the one would be taken for the other.
    """
    found: dict[str, Any] = {}
    for module in modules:
        more = getattr(module, function)() if hasattr(module, function) else {}
        if twice := found.keys() & more.keys():
            raise ValueError(f"{module.__name__} measures {sorted(twice)}, which another does already")
        found |= more
    return found


def _measures(controls: list[ModuleType], *, outages: bool, targets: bool) -> dict[str, Column | Flagged]:
    """What `controls` measure over a topic's partitions, by name."""
    found: dict[str, Column | Flagged] = {
        "partition_count": F.sum(F.size("ids")),
        "reassigning_partitions": F.sum(F.col("reassigning").cast("int")),
        "led_isr_least": F.min(F.when(~F.col("offline"), F.col("isr_count"))),
        "stuck_partitions": base.partition_ids(reassignment_leftovers.stuck()),
        "unhealthy": F.sort_array(F.collect_list(F.when(~F.col("healthy"), _health_row()))),
        "room_listed": F.max(F.when(~F.col("healthy") & (F.size("ids") > 1), _room())),
    }
    modules = [*controls, elr_guard, *([rack_outage] if outages else ()), *([target] if targets else ())]
    of_modules = _joined(modules, "measures")
    if twice := found.keys() & of_modules.keys():
        raise ValueError(f"a control measures {sorted(twice)}, which all topics have")
    return found | of_modules


def _room() -> Column:
    """Of a row of partitions, up to which `room` the others that it stands for may have."""
    return F.greatest(F.coalesce("room", F.lit(0)), F.lit(0))


def prepared(partitions: DataFrame, asked: Asked) -> DataFrame:
    """Judged partitions with what is asked of each, computed before they are counted by topic."""
    return reduce(DataFrame.withColumns, asked.of_partitions, partitions)


def measured(partitions: DataFrame, topics: DataFrame, asked: Asked) -> DataFrame:
    """One row a topic: `topics`, what is measured over their `prepared` partitions, and what follows of it: each control's
    outcome, and its target.

    Measures are NULL where a topic has no partitions that could be read.
    """
    per_topic = aggregated(partitions, asked.measures)
    known = F.coalesce(F.col("partitions_known"), F.lit(False))
    joined = topics.withColumn("partitions_known", known).join(per_topic, ["cluster", "topic"], "left")
    return reduce(DataFrame.withColumns, asked.of_topics, joined)


def _healthy() -> Column:
    """None of KIP-427's categories, and none of KIP-1290's where racks can be told at all."""
    flags = [partition_health.flag(c) for c in partition_health.CATEGORIES]
    in_racks = (F.col("rack_category") == rack_health.NEITHER) | F.col("racks_hidden")
    return F.coalesce(~(flags[0] | flags[1] | flags[2] | flags[3]) & in_racks, F.lit(False))


def _health() -> Column:
    """Of a partition that isn't healthy what its row of `partition_health` says, the same for all of its placement."""
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
        # Above the ISR by configuration, while nothing is being added that would account for it.
        "under_by_configuration": F.coalesce(
            F.col("under_min_isr") & F.col("isr_whole") & ~F.col("reassigning"), F.lit(False)
        ),
    }
    return F.when(~_healthy(), F.struct(*(column.alias(name) for name, column in fields.items())))


def _health_row() -> Column:
    """`health` with the partition's own brokers, and which partitions it is of."""
    own = ("partition", "leader", "replicas", "isr", "elr", "ids", "leaders", "placement")
    return F.struct(*own, "health.*")


def by_cluster(measured: DataFrame) -> DataFrame:
    """What cluster-level rules need of a cluster's topics; `unclean_undecided` counts those that wait for the controllers."""
    waits = base.outcome_of(unclean_leader_election.CONTROL).isNull().cast("int")
    stuck = F.transform("stuck_partitions", lambda p: F.concat_ws("-", "topic", p.cast("string")))
    return measured.groupBy("cluster").agg(
        F.sum("reassigning_partitions").alias("reassigning"),
        F.sort_array(F.flatten(F.collect_list(stuck))).alias("stuck"),
        F.sort_array(F.collect_list(F.when(F.size("throttles") > 0, F.struct("topic", "throttles")))).alias(
            "throttled"
        ),
        F.sum((~F.col("throttles_known")).cast("int")).alias("unread_throttles"),
        F.sum(waits).alias("unclean_undecided"),
        F.max("room_listed").alias("room_listed"),
        F.bool_or(F.coalesce("elr_partitions_at_risk", F.lit(True))).alias("elr_cluster_at_risk"),
        F.bool_or(F.coalesce(F.size("unhealthy") > F.size(_whole()), F.lit(True)) | ~F.col("partitions_known")).alias(
            "degraded"
        ),
    )


def _whole() -> Column:
    """Of the unhealthy partitions those that are at min ISR by configuration alone: nothing of them is out of sync."""
    return F.filter("unhealthy", lambda u: u["by_configuration"] & (F.size(u["categories"]) == 1))


def elr_cluster_at_risk() -> Column:
    """Could a change of min.insync.replicas for the whole cluster cost a partition its leader? Reads a cluster beside
    `by_cluster`: a topic that the auditor can't see, or may not see, may have an ELR too."""
    hidden = ~F.col("topics_known") | F.coalesce(F.col("hidden_partitions") > 0, F.lit(True))
    return F.coalesce("elr_cluster_at_risk", F.lit(False)) | hidden


def health_rows(measured: DataFrame) -> DataFrame:
    """The judged partitions that aren't healthy, and those whose health is unknown; each may stand for others."""
    of = (*verdicts.SNAPSHOT, "topic")
    return measured.select(*of, F.explode("unhealthy").alias("u")).select(*of, "u.*")


def worth_reading(partitions: DataFrame, rooms: Mapping[str, int]) -> DataFrame:
    """`partitions` without those that no row of `health_rows` stands for, as far as their clusters and `room` tell: that is most
    of most clusters' rows, in row groups of their own. rooms: by cluster its topics' greatest `room_listed`."""
    by_room: dict[int, list[str]] = {}
    for cluster, room in rooms.items():
        by_room.setdefault(room, []).append(cluster)
    within = [
        F.col("cluster").isin(clusters) & (F.col("room").isNull() | (F.col("room") <= room))
        for room, clusters in by_room.items()
    ]
    return partitions.where(reduce(Column.__or__, within, F.lit(False)))


def each(listed: DataFrame, partitions: DataFrame) -> DataFrame:
    """A row for each partition that rows of `health_rows` stand for; partitions: the rows of all of them.

    Those that are alike have brokers of their own, and in common those that are out of sync.
    """
    alone = F.size("ids") == 1
    own = ("partition", "leader", "replicas", "isr")
    several = listed.where(~alone).drop(*own)
    those = partitions.where(F.col("stands_for").isNotNull()).select("cluster", "topic", "placement", *own)
    joined = those.join(F.broadcast(several), ["cluster", "topic", "placement"])
    # First what is of the partitions' own session.
    return joined.unionByName(listed.where(alone))


RACK_COUNTS = ("under_min_rack_isr", "at_min_rack_isr", "at_min_rack_isr_by_placement", "rack_unknown")


def counters(measured: DataFrame, clusters: DataFrame) -> DataFrame:
    """Partitions by category: a row a topic with anything to count, and a row a cluster (topic NULL) with its brokers'.

    `out_of_sync`: brokers whose replicas are missing. An offline partition misses all of its own: each is out of sync or,
    being in the ISR and not leading, down. Partitions that could not be listed count as one that is unknown.
    """
    sizes = {base.column(c): F.coalesce(F.size(f"{base.column(c)}_ids"), F.lit(0)) for c in partition_health.CATEGORIES}
    by_configuration = _how_many(lambda u: u["by_configuration"])
    under_by_configuration = _how_many(lambda u: u["under_by_configuration"])
    counted = {
        "unknown": F.when(F.col("partitions_known"), F.coalesce(F.size("health_unknown"), F.lit(0))).otherwise(1),
        **sizes,
        **_rack_sizes(),
        "at_min_isr_by_configuration": F.coalesce(by_configuration, F.lit(0)),
        "under_min_isr_by_configuration": F.coalesce(under_by_configuration, F.lit(0)),
    }
    missing = F.coalesce(F.transform("unhealthy", _missing), F.array().cast("array<array<int>>"))
    rows = measured.select(
        *verdicts.SNAPSHOT,
        "topic",
        F.coalesce("partition_count", F.lit(0)).alias("partitions"),
        *(size.alias(name) for name, size in counted.items()),
        F.array_distinct(F.flatten(missing)).alias("out_of_sync"),
    )
    anything = sum(F.col(n) for n in counted) > 0
    per_cluster = rows.groupBy(*verdicts.SNAPSHOT).agg(
        *(F.sum(n).alias(n) for n in ("partitions", *counted)),
        F.sort_array(F.array_distinct(F.flatten(F.collect_list("out_of_sync")))).alias("out_of_sync"),
    )
    lost = clusters.select("cluster", F.when(F.size("lost_racks") > 0, F.col("lost_racks")).alias("lost_racks"))
    for more in (_by_leader(measured, clusters), lost):
        per_cluster = per_cluster.join(F.broadcast(more), "cluster", "left")
    return rows.where(anything).unionByName(per_cluster, allowMissingColumns=True)


def _how_many(test: Callable[[Column], Column]) -> Column:
    """Of a topic's unhealthy partitions, those that rows for which `test` holds stand for."""
    return F.size(F.flatten(F.transform(F.filter("unhealthy", test), lambda u: u["ids"])))


def _rack_sizes() -> dict[str, Column]:
    """RACK_COUNTS of a topic, from what is listed of it."""
    tests = (
        lambda u: u["rack_category"] == rack_health.UNDER,
        lambda u: u["rack_category"] == rack_health.AT,
        lambda u: u["rack_by_placement"],
        lambda u: u["rack_unknown"],
    )
    sizes = [F.coalesce(_how_many(test), F.lit(0)) for test in tests]
    return dict(zip(RACK_COUNTS, sizes, strict=True))


LED = ("leaders", "categories", "categories_known", "rack_category", "rack_unknown")
"""What of a listed partition its leader's counts are made of."""


def _led_counts() -> dict[str, Column]:
    """Per count of a broker, whether the partition `u` is in it."""
    categories, rack = F.col("u.categories"), F.col("u.rack_category")
    flags = {
        "under_min_isr": F.array_contains(categories, "under-min-isr"),
        "at_min_isr": F.array_contains(categories, "at-min-isr"),
        "under_replicated": F.array_contains(categories, "under-replicated"),
        "under_min_rack_isr": rack == rack_health.UNDER,
        "at_min_rack_isr": rack == rack_health.AT,
        "unknown": ~F.col("u.categories_known") | F.col("u.rack_unknown"),
    }
    return {name: F.sum(F.coalesce(flag, F.lit(False)).cast("int")) for name, flag in flags.items()}


def _by_leader(measured: DataFrame, clusters: DataFrame) -> DataFrame:
    """cluster -> `brokers`: what each broker's own metrics count over the partitions it leads; one not named counts none.

    ReplicaManager's UnderMinIsrPartitionCount, AtMinIsrPartitionCount and UnderReplicatedPartitions (KIP-427), and
    KIP-1290's UnderMinRackIsrPartitionCount and AtMinRackIsrPartitionCount. An offline partition has no leader and is in
    none of them. `unknown`: led partitions some of whose categories can't be told.
    """
    narrow = F.transform("unhealthy", lambda u: F.struct(*(u[n] for n in LED)))
    rows = measured.select("cluster", F.explode(narrow).alias("u"))
    led = rows.select("cluster", "u", F.explode("u.leaders").alias("id")).where(F.col("id").isNotNull())
    sums = _led_counts()
    counts = led.groupBy("cluster", "id").agg(*(c.alias(name) for name, c in sums.items()))
    known = clusters.select("cluster", F.col("broker").alias("of"))
    broker = F.try_element_at("of", F.col("id"))
    entry = F.struct(F.col("id").alias("broker"), broker["rack"].alias("rack"), broker["live"].alias("live"), *sums)
    anything = sum(F.col(name) for name in sums) > 0
    joined = counts.where(anything).join(F.broadcast(known), "cluster")
    return joined.groupBy("cluster").agg(F.sort_array(F.collect_list(entry)).alias("brokers"))


def _missing(partition: Column) -> Column:
    """The brokers that an unhealthy partition is without; none where its ISR could not be read: it is counted unknown."""
    absent = F.when(F.array_contains(partition["categories"], "offline"), partition["replicas"]).otherwise(
        partition["out_of_sync"]
    )
    return F.coalesce(absent, F.array().cast("array<int>"))
