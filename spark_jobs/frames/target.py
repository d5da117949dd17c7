"""The target of a topic: the one replication factor and min.insync.replicas that all its remedies aim at.

So no two findings of a topic ask for different things. The target meets all that the tier requires of copies and headroom, with
the fewest replicas and the smallest change. It lowers min.insync.replicas only where the cluster has too few brokers for more
replicas, or where the value is above the replication factor, and never below the tier's requirement.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, elr_guard
from spark_jobs.frames import racks as rack_counts
from spark_jobs.frames.columns import certain, possible, struct

COLUMNS = ("target_replication_factor", "target_min_insync_replicas", "target_racks", "target_acked_racks", "reassign")
TARGET, SPREAD = "target", "target_spread_replication_factor"
MORE = 8
"""How many replicas more than otherwise needed are tried."""


# What the tier requires. These read `required`.


def _required(key: str) -> Column:
    return F.col("required")[key]


def survives(loss: str | None = None) -> Column:
    """Must the topic survive the loss of a broker or a rack (`loss`), or any loss?"""
    survive = _required("survive")
    return certain(F.size(survive) > 0 if loss is None else F.array_contains(survive, loss))


def copies() -> Column:
    """The smallest min.insync.replicas with which the tier's acknowledged copies and racks are possible."""
    wanted = [_required(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    return F.greatest(F.lit(1), *wanted, F.when(survives(), 2))


def headroom() -> Column:
    """The smallest number of replicas above min.insync.replicas."""
    return F.greatest(F.lit(0), _required("write_headroom"), F.when(survives(), 1))


def racks() -> Column:
    """The number of racks that the replicas must span."""
    wanted = [_required(key) for key in ("replica_racks", "min_insync_racks", "acked_racks")]
    return F.greatest(F.lit(1), *wanted, F.when(survives("rack"), 2))


def default_min_isr(plan: Plan) -> int | None:
    """The min.insync.replicas that the policy wants as the default of clusters: the `copies` of its last tier, if any."""
    last_tier = plan.policy.tiers.get(plan.policy.last_tier or "", {})
    wanted = [last_tier.get(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    return max((n for n in [*wanted, 2 if last_tier.get("survive") else None] if n), default=None)


# Whether the cluster can meet it.


def beside() -> tuple[Column, Column, Column]:
    """Brokers outside the fullest racks: wanted, known, and known at most; see `racks.beside`. Reads `rack_layout`.

    The first is NULL where no racks must be acknowledged.
    """
    wanted = F.when(_required("acked_racks") > 1, headroom() + 1)
    return wanted, *rack_counts.beside(F.col("rack_layout"), _required("acked_racks"))


def few_beside() -> Column:
    """Are the tier's acknowledged racks impossible together with its headroom, wherever replicas are placed?"""
    wanted, _, at_most = beside()
    return certain(F.col("brokers_known") & (wanted > at_most))


def infeasible() -> Column:
    """The cause where the target needs more brokers than the cluster has; NULL elsewhere. policy-feasible fails too then."""
    return F.when(_too_few_brokers(), base.infeasible(F.col("tier")))


def _too_few_brokers() -> Column:
    return certain(F.col("brokers_known") & (F.col("target_replication_factor") > F.col("broker_count")))


def _too_few_racks() -> Column:
    return F.col("target_racks") > F.size("racks") + F.col("unknown_racks")


# The steps to the target.


def _now() -> Column:
    """The replication factor of the topic's worst partition; NULL if unknown."""
    return F.col("replication_factor_worst")


def _needed() -> Column:
    """The replicas that are needed apart from acknowledged racks; at least as many as there are now."""
    # Racks that the cluster doesn't have need no replicas.
    possible_racks = F.least(racks(), F.size("racks") + F.col("unknown_racks"))
    wanted = F.greatest(
        _now(), _required("replication_factor"), possible_racks, copies() + headroom(), _keeps_min_isr()
    )
    return F.when(_now().isNotNull(), wanted)


def _keeps_min_isr() -> Column:
    """The replicas that give the headroom without a lower min.insync.replicas; NULL where the cluster has too few brokers.

    A value above the replication factor guarantees nothing, so it need not be kept.
    """
    configured = F.col("min_insync_replicas_at_worst")["min_isr"]
    replicas = configured + headroom()
    return F.when((configured <= _now()) & F.col("brokers_known") & (replicas <= F.col("broker_count")), replicas)


def _without_moves() -> Column:
    """The min.insync.replicas that guarantees the acknowledged racks with the replicas where they are; NULL where none does and
    leaves headroom."""
    smallest = F.greatest(copies(), "acked_smallest_min_isr")
    stays = (_needed() == _now()) & (smallest + headroom() <= _needed())
    return F.when(F.col("acked_smallest_min_isr").isNotNull() & stays, smallest)


def _evenly(replicas: Column) -> Column:
    """The min.insync.replicas that guarantees copies and acknowledged racks with so many replicas, spread evenly over the racks;
    NULL where fewer brokers have a rack."""
    in_fullest = rack_counts.most_held(F.col("rack_layout"), replicas, _required("acked_racks") - 1)
    return F.when(in_fullest.isNotNull(), F.greatest(copies(), in_fullest + 1))


def _spread_replication_factor() -> Column:
    """The fewest replicas that, spread evenly, guarantee the acknowledged racks with headroom; NULL: none do.

    With few racks these are more than copies and headroom need.
    """
    enough = F.filter(F.sequence(_needed(), _needed() + MORE), lambda n: _evenly(n) + headroom() <= n)
    return F.try_element_at(enough, F.lit(1))


def _acked_racks() -> Column:
    """The acknowledged racks for which replicas must be spread evenly; NULL where they needn't be, or it doesn't help."""
    wanted = _required("acked_racks")
    helps = (F.size("racks") >= wanted) & F.col(SPREAD).isNotNull()
    return F.when((wanted > 1) & _without_moves().isNull() & helps, wanted)


def _replication_factor() -> Column:
    """The minimum for every partition; NULL where the present number of replicas is unknown."""
    return F.when(F.col("target_acked_racks").isNull(), _needed()).otherwise(F.col(SPREAD))


def _min_insync_replicas() -> Column:
    """The configured value, changed only as far as copies and headroom need it; NULL where it is unknown.

    Where the replication factor is unknown, only the copies count.
    """
    configured = F.col("min_insync_replicas_at_worst")["min_isr"]
    replicas = F.col("target_replication_factor")
    spread = F.when(F.col("target_acked_racks").isNotNull(), _evenly(replicas))
    least = F.greatest(copies(), F.when(_required("acked_racks") > 1, _without_moves()), spread)
    return F.when(configured.isNotNull(), F.greatest(least, F.least(configured, replicas - headroom())))


def _grows() -> Column:
    """Do partitions need more replicas?"""
    return certain(F.col("target_replication_factor") > _now())


def _needs_higher_min_isr() -> Column:
    """Would the target's min.insync.replicas be too low for the acknowledged racks if the replicas stay where they are?"""
    return certain(F.col("target_min_insync_replicas") < F.col("acked_smallest_min_isr"))


def _reassign() -> Column:
    """Must replicas be added or moved to other racks, and is that possible? Then there is a reassignment plan."""

    def failed(control: str) -> Column:
        return certain(base.outcome_of(control) == base.FAIL)

    misplaced = failed("replica-rack-spread") | certain(
        failed("isr-rack-spread") & F.col("isr_rack_spread_by_placement")
    )
    uneven = F.col("target_acked_racks").isNotNull() & (failed("acked-durability") | _needs_higher_min_isr())
    moves = certain((misplaced | uneven) & ~_too_few_racks() & (F.size("racks") > 0))
    return (_grows() | moves) & ~_too_few_brokers()


def steps() -> tuple[dict[str, Column], ...]:
    """The target's columns, all of which are in `topic_posture` too. Each step reads those before it, the first the measures.

    `target_replication_factor`, `target_min_insync_replicas`: NULL if unknown. `target_racks`. `target_acked_racks`: the racks
    for which replicas must be spread evenly, else NULL. `reassign`: is a reassignment plan part of the remedy?
    """
    return (
        {
            # The topic's own min.insync.racks may be stricter than its tier (KIP-1290).
            "target_racks": F.greatest(racks(), "min_racks").cast("int"),
            SPREAD: F.when(_required("acked_racks") > 1, _spread_replication_factor()),
        },
        {"target_acked_racks": _acked_racks().cast("int")},
        {"target_replication_factor": _replication_factor().cast("int")},
        {"target_min_insync_replicas": _min_insync_replicas().cast("int")},
        {"reassign": _reassign()},
    )


def spreads() -> Column:
    """Is it enough to spread the same replicas evenly?"""
    return F.col("reassign") & F.col("target_acked_racks").isNotNull() & ~_grows()


def measures() -> dict[str, Column]:
    """`replicas_down`: the brokers with replicas of the topic that are known to be down. `leaders_unknown`: is it unknown of any
    partition whether it has a live leader? `most_replicas`: the replicas of the partition with most of them; NULL if unknown."""
    down = F.flatten(F.collect_list(F.when(F.size("replicas_down") > 0, F.col("replicas_down"))))
    return {
        "replicas_down": F.sort_array(F.array_distinct(down)),
        "leaders_unknown": F.bool_or(F.col("offline").isNull()),
        "most_replicas": F.when(F.bool_and(F.col("replica_count").isNotNull()), F.max("replica_count")),
    }


def with_target(topics: DataFrame, plan: Plan) -> DataFrame:
    """`topics` with TARGET: all that `durability.remedies.target` makes the topic's remedies from.

    Reads the columns of `steps`, `led_isr_least` (the smallest ISR of a partition with a leader), `elr_cluster_at_risk`,
    `inherited_least`, and `cluster_reassigning` (the number of partitions of the cluster with a running reassignment).
    """
    min_isr, within = F.col("min_insync_replicas_at_worst"), F.col("min_isr_within_replication_factor_worst")
    fields = {
        "replication_factor": F.col("target_replication_factor"),
        "min_insync_replicas": F.col("target_min_insync_replicas"),
        "racks": F.col("target_racks"),
        "acked_racks": F.col("target_acked_racks"),
        "reassign": F.col("reassign"),
        "replication_factor_now": _now(),
        "min_insync_replicas_now": min_isr["min_isr"],
        "min_insync_replicas_source": min_isr["min_isr_source"],
        "min_insync_replicas_enforced": min_isr["effective"],
        "default_min_insync_replicas": F.lit(default_min_isr(plan)).cast("int"),
        "smallest_led_isr": F.col("led_isr_least"),
        "most_replicas": F.col("most_replicas"),
        "brokers": F.col("broker_count"),
        "racks_there": F.size("racks"),
        "unracked_brokers": F.when(F.size("racks") == 0, F.col("unracked_brokers")),
        "too_few_brokers": _too_few_brokers(),
        "too_few_racks": _too_few_racks(),
        "leans": _needs_higher_min_isr(),
        "replicas_down": F.col("replicas_down"),
        "highest_min_insync_replicas": within["min_isr"],
        "its_replication_factor": within["rf"],
        "offline": F.when(~possible("leaders_unknown"), F.size("offline_ids")),
        "inherited_least": F.col("inherited_least"),
        "reassigning_in_cluster": F.col("cluster_reassigning"),
        "elr_at_risk": elr_guard.unsafe("elr_partitions_at_risk"),
        "elr_at_risk_in_cluster": elr_guard.unsafe("elr_cluster_at_risk"),
    }
    return topics.withColumn(TARGET, struct(fields))
