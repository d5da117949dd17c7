"""A cluster's partition health before the judged moment: what runs have counted of it, and what this one counts first.

The latter are a folder's history, or a night whose run broke off: the same rules over the same facts. Several snapshots of
one cluster are judged side by side by letting each stand as a cluster of its own until its counters are known.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.assemble import topics
from spark_jobs.assemble.verdicts import SNAPSHOT
from spark_jobs.controls import min_insync_replicas, partition_health
from spark_jobs.frames import facts, partitions
from spark_jobs.frames.literals import literal
from spark_jobs.history import rack_outage, readings
from spark_jobs.scale import groups

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
    """`plan.look_back.uncounted`, judged for partition health, and of a nightly run for rack outages.

    Each snapshot stands as a cluster of its own, named by its attempt.
    """

    def __init__(self, plan: Plan, read: Callable[[str], DataFrame], resolved: DataFrame, tiers: Column):
        """read: gives a lake table's rows; resolved, tiers: as `facts.topics` has them, of the judged snapshots."""
        earlier = plan.look_back.uncounted
        attempts: dict[str, list[str]] = {}
        for e in earlier:
            attempts.setdefault(e.cluster, []).append(e.attempt_id)

        def by_attempt(name: str) -> DataFrame:
            rows = read(name).where(F.col("attempt_id").isin([e.attempt_id for e in earlier]))
            return rows.withColumn("cluster", F.col("attempt_id"))

        # A topic had the tier then that it has now: no other one is resolved.
        of_cluster = F.try_element_at(literal(attempts, "map<string,array<string>>"), F.col("cluster"))
        tier_then = resolved.where(F.col("resource_type") == "topic").withColumn("cluster", F.explode(of_cluster))
        self._clusters = facts.clusters(by_attempt).localCheckpoint(eager=True)
        of_topics = facts.topics(by_attempt, tier_then, self._clusters, tiers).localCheckpoint(eager=True)
        rows = groups.representatives(read, [e.attempt_id for e in earlier], plan.grouped)
        to_judge = rows.withColumns({"cluster": F.col("attempt_id"), "unchanged_reassignment": F.lit(False)})
        rows = partitions.build(to_judge, of_topics, self._clusters)
        # The steps of an outage read what min-insync-replicas measures, beside their own.
        controls = [partition_health] if plan.pulse else [min_insync_replicas, partition_health]
        asked = topics.asked(controls, outages=not plan.pulse)
        measured = topics.measured(topics.prepared(rows, asked), of_topics, asked)
        self._topics = measured.localCheckpoint(eager=True)
        self._moments = {
            e.attempt_id: {"cluster": e.cluster, "captured_at": e.captured_at, "snapshot_id": e.snapshot_id}
            for e in earlier
        }

    def _key(self) -> Column:
        """The real cluster, captured_at and snapshot_id of a row."""
        return F.try_element_at(literal(self._moments, KEYS), F.col("cluster"))

    def counters(self) -> DataFrame:
        """Rows of `health_counters`, with cluster, captured_at and snapshot_id."""
        found = topics.counters(self._topics, self._clusters)
        counts = [name for name in found.columns if name not in SNAPSHOT]
        return found.select(self._key().alias("key"), *counts).select("key.*", *counts)

    def outages(self) -> DataFrame:
        """cluster, topic, and `past`: what `rack_outage.seen` saw of it, as an array."""
        keyed = self._topics.withColumn("key", self._key())
        seen = rack_outage.seen(F.col("key")["captured_at"])
        rows = keyed.select(F.col("key")["cluster"].alias("cluster"), "topic", seen.alias("seen"))
        return rows.groupBy("cluster", "topic").agg(F.collect_list("seen").alias("past"))


def counted(plan: Plan, read: Callable[[str], DataFrame], captured: Column) -> DataFrame:
    """Rows of `health_counters` that runs have counted of the judged clusters, in the look-back before each one's moment.

    captured: when the row's cluster was captured; NULL for one that isn't judged. A result counts once its row in `runs` is
    there; of a moment counted twice, the result that was finished last does.
    """
    since, until = plan.look_back.since, max(s.captured_at for s in plan.judged)
    recent = (F.col("captured_at") >= F.lit(since).cast("timestamp")) & (
        F.col("captured_at") <= F.lit(until).cast("timestamp")
    )
    runs = read("runs").where(F.col("captured_at") >= F.lit(since).cast("timestamp"))
    runs = runs.groupBy("result_id").agg(F.max("finished_at").alias("finished_at"))
    mine = (F.col("captured_at") < captured) & (F.col("captured_at") >= captured - _look_back(plan))
    rows = read("health_counters").where(recent & mine)
    return rows.join(F.broadcast(runs), "result_id").withColumn("source", F.concat_ws("\n", "result_id", "snapshot_id"))


def _look_back(plan: Plan) -> Column:
    return F.make_dt_interval(secs=F.lit(plan.policy.readings["look_back"]))


def over_time(plan: Plan, before: DataFrame, now: DataFrame, earlier: DataFrame | None) -> tuple[DataFrame, DataFrame]:
    """`readings.clusters` and `readings.readings` of the judged clusters.

    before: `counted`. now, earlier: rows of `health_counters` that this run counted, of the judged snapshots and of
    earlier ones.
    """
    names = ("cluster", "topic", "captured_at", *COUNTERS)
    before = before.select(*names, "source", "finished_at")
    if earlier is not None:
        fresh = earlier.withColumns({"source": F.col("snapshot_id"), "finished_at": F.current_timestamp()})
        before = before.unionByName(fresh.select(*names, "source", "finished_at"))
    here = now.where(F.col("topic").isNull()).select("cluster").distinct()
    chosen = (
        before.where(F.col("topic").isNull())
        .groupBy("cluster", "captured_at")
        .agg(F.max_by("source", F.struct("finished_at", "source")).alias("source"))
        .join(F.broadcast(here), "cluster", "left_semi")
    )
    before = before.join(F.broadcast(chosen), ["cluster", "captured_at", "source"]).select(*names)
    rows = before.unionByName(now.select(*names))
    shown = readings.level()
    rows = rows.where(F.col("topic").isNull() | shown.isNull() | (shown > 0)).localCheckpoint(eager=True)
    wanted = plan.policy.readings
    policy = F.struct(*(F.lit(wanted[n]).alias(n) for n in POLICY))
    windows = {
        s.cluster: [{"from": w[0].timestamp(), "to": w[1].timestamp()} for w in plan.policy.windows(s.cluster)]
        for s in plan.judged
    }
    of_cluster = F.try_element_at(literal(windows, WINDOWS), F.col("cluster"))
    moments = readings.moments(rows, policy, of_cluster).localCheckpoint(eager=True)
    found = readings.readings(readings.series(rows, moments)).localCheckpoint(eager=True)
    return readings.clusters(moments).localCheckpoint(eager=True), found
