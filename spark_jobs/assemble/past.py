"""Partition health of earlier snapshots: counters from previous runs, and snapshots that this run counts first.

A folder's older documents and the snapshots of an aborted run have no counters yet. The same rules evaluate them. Until its
counters are known, each such snapshot is treated as a separate cluster. So several of one cluster can be evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Earlier, LookBack, Plan
from spark_jobs.assemble import topics
from spark_jobs.assemble.verdicts import SNAPSHOT
from spark_jobs.controls import min_insync_replicas, partition_health
from spark_jobs.frames import facts, partitions
from spark_jobs.frames.literals import literal
from spark_jobs.history import rack_outage, readings
from spark_jobs.scale import groups
from spark_jobs.scale.planned import planned

COUNTERS = (
    "unknown",
    "offline",
    "under_min_isr",
    "at_min_isr",
    "at_min_isr_by_configuration",
    "under_min_isr_by_configuration",
    "out_of_sync",
)
POLICY = ("prolonged_after", "shortest_delay", "bouncing_within", "bouncing_changes")
WINDOWS = "map<string,array<struct<from:double,to:double>>>"
KEYS = "map<string,struct<cluster:string,captured_at:timestamp,snapshot_id:string>>"


class Past:
    """Earlier snapshots that no run has counted: their partition health and, in a nightly run, their rack outages.

    In these frames `cluster` is the id of the staged snapshot, `attempt_id`.
    """

    def __init__(
        self,
        plan: Plan,
        earlier: Sequence[Earlier],
        read: Callable[[str], DataFrame],
        resolved: DataFrame,
        tiers: Column,
    ):
        """read: returns a lake table's rows. resolved, tiers: the arguments of `facts.topics` for the evaluated snapshots."""
        attempts: dict[str, list[str]] = {}
        for e in earlier:
            attempts.setdefault(e.cluster, []).append(e.attempt_id)

        def by_attempt(name: str) -> DataFrame:
            rows = read(name).where(F.col("attempt_id").isin([e.attempt_id for e in earlier]))
            return rows.withColumn("cluster", F.col("attempt_id"))

        # Tiers are resolved for the evaluated snapshots only. A topic's present tier is used for its earlier snapshots.
        of_cluster = F.try_element_at(literal(attempts, "map<string,array<string>>"), F.col("cluster"))
        tier_then = resolved.where(F.col("resource_type") == "topic").withColumn("cluster", F.explode(of_cluster))
        self._clusters = facts.clusters(by_attempt).localCheckpoint(eager=True)
        of_topics = facts.topics(by_attempt, tier_then, self._clusters, tiers).localCheckpoint(eager=True)
        rows = groups.representatives(read, [e.attempt_id for e in earlier], plan.grouped)
        rows = rows.withColumns({"cluster": F.col("attempt_id"), "unchanged_reassignment": F.lit(False)})
        rows = partitions.build(rows, of_topics, self._clusters)
        # The steps of a rack outage also read what min-insync-replicas measures.
        controls = [partition_health] if plan.pulse else [min_insync_replicas, partition_health]
        expressions = topics.expressions(controls, outages=not plan.pulse)
        in_parts = partial(planned, small=plan.small)
        measured = topics.measured(topics.prepared(rows, expressions, in_parts), of_topics, expressions, in_parts)
        self._topics = measured.localCheckpoint(eager=True)
        self._snapshots = {
            e.attempt_id: {"cluster": e.cluster, "captured_at": e.captured_at, "snapshot_id": e.snapshot_id}
            for e in earlier
        }

    def _key(self) -> Column:
        """The real cluster, captured_at and snapshot_id of a row."""
        return F.try_element_at(literal(self._snapshots, KEYS), F.col("cluster"))

    def counters(self) -> DataFrame:
        """Rows of `health_counters`, with cluster, captured_at and snapshot_id."""
        rows = topics.counters(self._topics, self._clusters)
        counts = [name for name in rows.columns if name not in SNAPSHOT]
        return rows.select(self._key().alias("key"), *counts).select("key.*", *counts)

    def outages(self) -> DataFrame:
        """Columns cluster, topic, and `past`: an array of `rack_outage.seen`, one per snapshot."""
        keyed = self._topics.withColumn("key", self._key())
        state = rack_outage.seen(F.col("key")["captured_at"])
        rows = keyed.select(F.col("key")["cluster"].alias("cluster"), "topic", state.alias("state"))
        return rows.groupBy("cluster", "topic").agg(F.collect_list("state").alias("past"))


def counted(plan: Plan, look_back: LookBack, read: Callable[[str], DataFrame], captured: Column) -> DataFrame:
    """Rows of `health_counters` from previous runs, for the evaluated clusters, within the look-back before `captured`.

    Results without a row in `runs` are left out. `source` and `finished_at` identify the result of a row.

    captured: the capture time of the evaluated snapshot of the row's cluster; NULL for other clusters.
    """
    since, until = look_back.since, max(s.captured_at for s in plan.judged if s.captured_at is not None)
    recent = (F.col("captured_at") >= F.lit(since).cast("timestamp")) & (
        F.col("captured_at") <= F.lit(until).cast("timestamp")
    )
    runs = read("runs").where(F.col("captured_at") >= F.lit(since).cast("timestamp"))
    runs = runs.groupBy("result_id").agg(F.max("finished_at").alias("finished_at"))
    interval = F.make_dt_interval(secs=F.lit(plan.policy.readings["look_back"]))
    within = (F.col("captured_at") < captured) & (F.col("captured_at") >= captured - interval)
    rows = read("health_counters").where(recent & within)
    return rows.join(F.broadcast(runs), "result_id").withColumn("source", F.concat_ws("\n", "result_id", "snapshot_id"))


def over_time(plan: Plan, before: DataFrame, now: DataFrame, earlier: DataFrame | None) -> tuple[DataFrame, DataFrame]:
    """`readings.clusters` and `readings.readings` of the evaluated clusters.

    If two results counted the same snapshot, the result that finished last is used.

    before: as `counted` returns it.
    now: rows of `health_counters` of the evaluated snapshots.
    earlier: rows of `Past.counters`, if this run counted any.
    """
    names = ("cluster", "topic", "captured_at", *COUNTERS)
    before = before.select(*names, "source", "finished_at")
    if earlier is not None:
        counted_here = earlier.withColumns({"source": F.col("snapshot_id"), "finished_at": F.current_timestamp()})
        before = before.unionByName(counted_here.select(*names, "source", "finished_at"))
    clusters = now.where(F.col("topic").isNull()).select("cluster").distinct()
    latest = (
        before.where(F.col("topic").isNull())
        .groupBy("cluster", "captured_at")
        .agg(F.max_by("source", F.struct("finished_at", "source")).alias("source"))
        .join(F.broadcast(clusters), "cluster", "left_semi")
    )
    before = before.join(F.broadcast(latest), ["cluster", "captured_at", "source"]).select(*names)
    rows = before.unionByName(now.select(*names))
    level = readings.level()
    rows = rows.where(F.col("topic").isNull() | level.isNull() | (level > 0)).localCheckpoint(eager=True)
    policy = F.struct(*(F.lit(plan.policy.readings[n]).alias(n) for n in POLICY))
    windows = {
        s.cluster: [{"from": w[0].timestamp(), "to": w[1].timestamp()} for w in plan.policy.windows(s.cluster)]
        for s in plan.judged
    }
    of_cluster = F.try_element_at(literal(windows, WINDOWS), F.col("cluster"))
    moments = readings.moments(rows, policy, of_cluster).localCheckpoint(eager=True)
    of_resources = readings.readings(readings.series(rows, moments)).localCheckpoint(eager=True)
    return readings.clusters(moments).localCheckpoint(eager=True), of_resources
