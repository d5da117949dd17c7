"""What a loss of brokers and controllers does to each partition of one cluster: the rows of `loss_outcomes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import facts, loss_views, losses, partitions, quorum
from spark_jobs.frames.columns import certain
from spark_jobs.frames.literals import literal, requirements
from spark_jobs.frames.rack_health import NO_ERROR, NO_LEADER
from spark_jobs.lake_tables import Reader
from spark_jobs.scale import groups

KEY = ("cluster", "topic", "partition")
Lose = Mapping[str, Mapping[str, Sequence[int]]]
KINDS = ("brokers", "controllers")
LOSE = "map<string,struct<brokers:array<int>,controllers:array<int>>>"


def outcomes(read: Reader, plan: Plan, lose: Lose) -> DataFrame:
    """The rows of `loss_outcomes`, without the run's keys: equal partitions of a topic are one row.

    lose: by cluster the ids of what is lost, under `brokers` and `controllers`. A node that is both is lost as both. Those under
    `unplaced_brokers` and `unplaced_controllers` may be lost too, because they may be in a lost rack. If nothing is lost
    anywhere, `before` is what the snapshot shows, also of partitions whose leader waits for a broker that is down.
    """
    base, clusters = of_snapshots(read, plan)
    most = {cluster: _with_unplaced(of_cluster) for cluster, of_cluster in lose.items()}
    found = _predicted(base, clusters, lose, unknown_quorum=True)
    unknown = quorum.before().isNull() | _quorum_after(lose)["kept"].isNull()
    if not clusters.where(unknown).isEmpty():
        found = _in_both(found, _predicted(base, clusters, lose, unknown_quorum=False), same_nodes=True)
    if any(most[cluster] != {kind: tuple(of[kind]) for kind in KINDS} for cluster, of in lose.items()):
        found = _in_both(found, _predicted(base, clusters, most, unknown_quorum=False), same_nodes=False)
    return _rows(found)


def of_snapshots(read: Reader, plan: Plan) -> tuple[DataFrame, DataFrame]:
    """`partitions.facts` of the plan's snapshots with columns of their topics, a row per partition; and the clusters' facts."""
    topics, clusters = facts_of(read, plan)
    attempts = [str(s.attempt_id) for s in plan.judged]
    rows = groups.representatives(read, attempts, []).withColumn("unchanged_reassignment", F.lit(False))
    of_topics = topics.select("cluster", "topic", "elects_unclean", "tier", "internal", "captured_at", "snapshot_id")
    joined = partitions.facts(rows, topics, clusters).join(F.broadcast(of_topics), ["cluster", "topic"])
    return joined.localCheckpoint(), clusters


def facts_of(read: Reader, plan: Plan) -> tuple[DataFrame, DataFrame]:
    """`facts.topics` and `facts.clusters` of the plan's snapshots."""
    tiers = literal(plan.policy.required, f"map<string,{requirements()}>")
    attempts = [str(s.attempt_id) for s in plan.judged]

    def of_snapshot(name: str) -> DataFrame:
        return read(name).where(F.col("attempt_id").isin(attempts))

    clusters = facts.clusters(of_snapshot).localCheckpoint()
    resolved = read("resolved_policy").where(F.col("result_id") == plan.result_id)
    return facts.topics(of_snapshot, resolved, clusters, tiers).localCheckpoint(), clusters


def _with_unplaced(lose: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    return {kind: tuple({*lose[kind], *lose.get(f"unplaced_{kind}", ())}) for kind in KINDS}


def _predicted(base: DataFrame, clusters: DataFrame, lose: Lose, unknown_quorum: bool) -> DataFrame:
    """One row per partition, with what it answers in each view. base: `partitions.facts` with the columns of topics.

    unknown_quorum: have the controllers a majority where that is unknown?
    """
    after = _quorum_after(lose)
    nothing = not any(ids for of in lose.values() for ids in of.values())
    before = F.lit(False) if nothing else F.coalesce(quorum.before(), F.lit(unknown_quorum))
    kept = F.coalesce(after["kept"], F.lit(unknown_quorum))
    of_clusters = clusters.select(
        "cluster",
        _lost(lose)["brokers"].alias("lost"),
        after.alias("quorum"),
        before.alias("quorum_before"),
        kept.alias("quorum_kept"),
        (quorum.kept_once_up(_nodes(lose)) | kept).alias("quorum_kept_if_up"),
    )
    with_loss = losses.before(base.join(F.broadcast(of_clusters), "cluster")).localCheckpoint()
    answered = loss_views.in_views(with_loss, KEY).withColumn("structural", loss_views.structural_answer())
    return answered.join(with_loss.select(*KEY, *_of_base()), [*KEY])


def _lost(lose: Lose) -> Column:
    """What is lost of a cluster, as struct<brokers, controllers>."""
    stated = {cluster: {kind: list(of[kind]) for kind in KINDS} for cluster, of in lose.items()}
    return F.try_element_at(literal(stated, LOSE), F.col("cluster"))


def _quorum_after(lose: Lose) -> Column:
    return quorum.left(_nodes(lose))


def _nodes(lose: Lose) -> Column:
    return F.concat(_lost(lose)["brokers"], _lost(lose)["controllers"])


def _in_both(least: DataFrame, most: DataFrame, same_nodes: bool) -> DataFrame:
    """`least` with what also holds if more is lost (`most`): what breaks without the more breaks, what holds with it holds.

    same_nodes: is no more lost than the controllers' majority? It may have been lost before, and saves records from an unclean
        leader. Then a partition goes offline only if it does in both.
    """
    answers = ("now_answer", "structural")
    flags = ("at_risk", "all_lost", "data_worst")
    if_equal = ("leader_now", "before_answer", "leader_before")
    compared = {*answers, *flags, *if_equal, "deleted", "deletable", "any_lost", "quorum"}
    joined = least.join(most.select(*KEY, *(F.col(name).alias(f"most_{name}") for name in compared)), [*KEY])

    def answer(name: str) -> Column:
        answer, most = F.col(name), F.col(f"most_{name}")
        breaks = answer != NO_ERROR
        if same_nodes:
            breaks = breaks & ((answer == NO_LEADER) | (most != NO_LEADER))
        return F.when(breaks, answer).when(most == NO_ERROR, answer)

    def flag(name: str) -> Column:
        return F.when(F.col(name), True).when(~F.col(f"most_{name}"), False)

    def same(of: Column, other: Column) -> Column:
        return F.when(of == other, of)

    kept, most_kept = F.col("quorum")["kept"], F.col("most_quorum")["kept"]
    # Controllers elect an unclean leader only with a majority, which the more may cost them.
    deletes = F.when(F.col("deletable") & kept & most_kept, True).when(~F.col("most_deletable") | ~kept, False)
    kept = same(kept, most_kept)
    columns = {
        **{name: answer(name) for name in answers},
        **{name: flag(name) for name in flags},
        **{name: same(F.col(name), F.col(f"most_{name}")) for name in if_equal},
        "deleted": same(F.col("deleted"), F.col("most_deleted")) if same_nodes else deletes,
        "any_lost": F.col("most_any_lost"),
        "quorum": F.col("quorum").withField("kept", kept),
    }
    return joined.withColumns(columns).drop(*(f"most_{name}" for name in compared))


def _of_base() -> list[Column | str]:
    """Columns of a partition that don't depend on the view."""
    return [
        *("captured_at", "snapshot_id", "tier", "internal", "quorum", "elects_unclean", "elr_on"),
        *(column.alias(name) for name, column in losses.data().items()),
        losses.deletable().alias("deletable"),
        (F.size(F.array_intersect("listed_isr", "lost")) > 0).alias("stalls"),
        F.array_contains("lost", F.col("leader")).alias("leader_lost"),
        # A leader that may be up stays, so it is unknown who leads.
        (F.col("leader_known") & (F.col("leader").isNull() | F.col("leading")["live"].isNotNull())).alias(
            "leader_certain"
        ),
        F.arrays_overlap("replicas", "lost").alias("any_lost"),
        losses.sure("listed_isr").alias("sure"),
    ]


def _rows(partition: DataFrame) -> DataFrame:
    """Equal partitions of a topic in one row."""
    worst = F.when(~F.col("any_lost"), False).otherwise(F.col("data_worst"))
    columns = {
        "before": F.col("before_answer"),
        "now": F.col("now_answer"),
        "structural": F.col("structural"),
        "leader_before": F.col("leader_before"),
        "leader_after": F.when(F.col("leader_certain") | (F.col("now_answer") == NO_LEADER), F.col("leader_now")),
        "at_risk": F.col("at_risk"),
        "deleted": F.col("deleted"),
        "at_risk_structural": F.col("all_lost"),
        "data_worst": worst,
        "availability_worst": worst & ~F.col("elects_unclean"),
        "stalls": F.col("stalls"),
        "leader_lost": certain(F.col("leader_lost")),
        "back_with": F.when(F.col("now_answer") == NO_LEADER, F.col("sure")),
        "back_with_any": F.when(F.col("now_answer") == NO_LEADER, F.col("elr_on")),
        "quorum": F.col("quorum"),
    }
    keys = ("cluster", "captured_at", "snapshot_id", "topic", "tier", "internal")
    named = partition.select(*keys, "partition", *(column.alias(name) for name, column in columns.items()))
    partitions = F.sort_array(F.collect_list("partition")).alias("partitions")
    return named.groupBy(*keys, *columns).agg(partitions)
