"""A cluster's partition health before the judged moment: what runs have counted of it, and what this one has to count first.

The latter are a folder's history, or a night whose run broke off: the same rules over the same facts. Several snapshots of
one cluster are judged side by side by letting each stand as a cluster of its own until its counters are known.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.run.plan import Plan
from spark_jobs import facts, partitions, readings, topics
from spark_jobs.controls import partition_health
from spark_jobs.findings import literal

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


def counters(plan: Plan, read: Callable[[str], DataFrame], requirements: str) -> DataFrame:
    """Rows of `health_counters` for `plan.look_back.uncounted`, with cluster, captured_at and snapshot_id.

    read: gives a lake table's rows; requirements: the type of a tier's requirements, of which partition health has none.
    """
    earlier = {e.attempt_id: e for e in plan.look_back.uncounted}

    def by_attempt(name: str) -> DataFrame:
        rows = read(name).where(F.col("attempt_id").isin(list(earlier)))
        return rows.withColumn("cluster", F.col("attempt_id"))

    nobody = read("resolved_policy").where(F.lit(False))
    clusters = facts.clusters(by_attempt).localCheckpoint(eager=True)
    no_tiers = literal({}, f"map<string,{requirements}>")
    of_topics = facts.topics(by_attempt, nobody, clusters, no_tiers).localCheckpoint(eager=True)
    rows = partitions.build(by_attempt("partitions").where(facts.standing()), of_topics, clusters)
    rows = rows.withColumn("unchanged_reassignment", F.lit(False))
    found = topics.counters(topics.measured(rows, of_topics, [partition_health]), clusters)
    moments = {
        a: {"cluster": e.cluster, "captured_at": e.captured_at, "snapshot_id": e.snapshot_id}
        for a, e in earlier.items()
    }
    key = F.try_element_at(literal(moments, KEYS), F.col("cluster"))
    counts = [name for name in found.columns if name != "cluster"]
    return found.select(key.alias("key"), *counts).select("key.*", *counts)


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


def over_time(
    plan: Plan, read: Callable[[str], DataFrame], now: DataFrame, earlier: DataFrame | None, captured: Column
) -> tuple[DataFrame, DataFrame]:
    """`readings.clusters` and `readings.readings` of the judged clusters.

    now, earlier: rows of `health_counters` that this run counted, of the judged snapshots and of earlier ones.
    """
    names = ("cluster", "topic", "captured_at", *COUNTERS)
    before = counted(plan, read, captured).select(*names, "source", "finished_at")
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
