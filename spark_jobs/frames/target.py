"""The target of a topic: the one replication factor and min.insync.replicas that all its remedies lead to.

So two findings of a topic never recommend different values. The target meets the tier's requirements for copies and headroom with
the fewest replicas and the smallest change. It lowers min.insync.replicas only if the cluster has too few brokers for more
replicas, or if the value is above the replication factor. It is never below the tier's requirement.
"""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import AT_MOST, BELOW_RF
from spark_jobs.frames import base, elr_guard
from spark_jobs.frames import racks as rack_counts
from spark_jobs.frames.acks import NEVER
from spark_jobs.frames.columns import certain, possible, struct

COLUMNS = (
    *("target_replication_factor", "target_min_insync_replicas", "target_racks", "target_acked_racks", "reassign"),
    *("target_own_racks", "target_rack_balance"),
)
TARGET, SPREAD = "target", "target_spread_replication_factor"
SURVIVING_RACKS = 3
"""The fewest racks with which a topic survives the loss of any one.

Acknowledged records survive if no rack has min.insync.replicas replicas. Writes go on if the other racks have that many. With two
racks, both can't be true.
"""
MORE = 8
"""How many replicas beyond those needed otherwise are tried."""


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
    """The number of racks that the replicas must span, without a requirement relative to the replication factor."""
    wanted = [_required(key) for key in ("replica_racks", "min_insync_racks", "acked_racks")]
    return F.greatest(F.lit(1), *wanted, F.when(survives("rack"), 2))


def least_replicas() -> Column:
    """The fewest replicas with which a topic can meet its tier, apart from acknowledged racks."""
    return F.greatest(F.lit(1), _required("replication_factor"), racks(), copies() + headroom())


def below_rf(key: str) -> Column:
    """How far the minimum under `key` is below the replication factor; NULL if it isn't relative to it."""
    return _required(key + BELOW_RF)


def at_most() -> Column:
    """The most replicas that the tier allows; NULL for any number."""
    return _required(f"replication_factor{AT_MOST}")


def _allowed(replicas: Column) -> Column:
    """`replicas`, but no more than the tier allows, so that relative requirements don't count replicas that must go."""
    return F.least(replicas, at_most())


def allowed_racks(required: Column) -> Column:
    """The racks that the tier requires of a topic with no more replicas than it allows."""
    return F.when(below_rf("replica_racks").isNull(), required).otherwise(_allowed(required))


def least_racks(required: Column) -> Column:
    """The racks that the tier requires of a topic with no more replicas than it must have. policy-feasible counts these."""
    below = below_rf("replica_racks")
    return F.when(below.isNull(), required).otherwise(F.least(required, least_replicas() - below))


def default_min_isr(plan: Plan) -> Column:
    """The min.insync.replicas that the policy requires as a cluster's default: `copies` of its last tier; NULL for any."""
    required = last_tier(plan)
    wanted = [required.get(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    plain = max((n for n in [*wanted, 2 if required.get("survive") else None] if n), default=None)
    return F.greatest(F.lit(plain).cast("int"), relative_min_isr(plan))


def relative_min_isr(plan: Plan) -> Column:
    """The same, if it is relative to the replication factor of new topics; else NULL.

    It is relative once that gives no less than the last tier requires. Reads `default_rf`, the largest
    default.replication.factor.
    """
    required = last_tier(plan)
    below = required.get(f"min_insync_replicas{BELOW_RF}")
    if below is None:
        return F.lit(None).cast("int")
    replicas = F.greatest(F.lit(required.get("replication_factor", 1)), "default_rf")
    most = required.get(f"replication_factor{AT_MOST}")
    replicas = replicas if most is None else F.least(replicas, F.lit(most))
    return F.greatest(F.lit(1), replicas - F.lit(below)).cast("int")


def last_tier(plan: Plan) -> dict[str, Any]:
    """The requirements of the policy's last tier, which new topics are in."""
    return plan.policy.required.get(plan.policy.last_tier or "", {})


# Whether the cluster can meet it.


def beside() -> tuple[Column, Column, Column]:
    """Brokers outside the fullest racks: wanted, known, and known at most; see `racks.beside`. Reads `rack_layout`.

    The first is NULL if no racks must be acknowledged.
    """
    wanted = F.when(_required("acked_racks") > 1, headroom() + 1)
    return wanted, *rack_counts.beside(F.col("rack_layout"), _required("acked_racks"))


def few_beside() -> Column:
    """Are the tier's acknowledged racks impossible together with its headroom, wherever replicas are placed?"""
    wanted, _, at_most = beside()
    return certain(F.col("brokers_known") & (wanted > at_most))


def infeasible() -> Column:
    """The cause if the target needs more brokers than the cluster has or more replicas than the tier allows; else NULL.

    policy-feasible fails then, too.
    """
    return F.when(_too_few_brokers() | _too_few_allowed(), base.infeasible(F.col("tier")))


def _too_few_allowed() -> Column:
    """Does the target need more replicas than the tier allows? Existing replicas stay."""
    needed = F.col("target_replication_factor")
    return certain((needed > at_most()) & (needed > _now()))


def too_few_in_a_rack() -> Column:
    """Does a rack have too few brokers for an even spread of the topic's replicas?"""
    known = F.col("brokers_known") & (F.col("unknown_racks") == 0) & (F.size("racks") > 0)
    return certain(known & ~rack_counts.evenly_possible(F.col("rack_layout"), _now()))


def _too_few_brokers() -> Column:
    return certain(F.col("brokers_known") & (F.col("target_replication_factor") > F.col("broker_count")))


def _too_few_racks() -> Column:
    return F.col("target_racks") > F.size("racks") + F.col("unknown_racks")


# The steps to the target.


def _now() -> Column:
    """The replication factor of the topic's worst partition; NULL if unknown."""
    return F.col("replication_factor_worst")


def _needed() -> Column:
    """The replicas needed for all but acknowledged racks, at least as many as there are now."""
    # Racks that the cluster doesn't have need no replicas.
    possible_racks = F.least(racks(), F.size("racks") + F.col("unknown_racks"))
    wanted = F.greatest(
        _now(), _required("replication_factor"), possible_racks, copies() + headroom(), _keeps_min_isr()
    )
    return F.when(_now().isNotNull(), wanted)


def _keeps_min_isr() -> Column:
    """The replicas that give the headroom without a lower min.insync.replicas; NULL if that is impossible.

    It is impossible if the cluster has too few brokers or racks, or if the tier allows fewer replicas. A value above the
    replication factor guarantees nothing, so it may be lowered.
    """
    configured = F.col("min_insync_replicas_at_worst")["min_isr"]
    replicas = configured + headroom()
    in_own_racks = F.size("racks") + F.col("unknown_racks") + below_rf("replica_racks")
    most = F.least(F.col("broker_count"), at_most(), in_own_racks)
    return F.when((configured <= _now()) & F.col("brokers_known") & (replicas <= most), replicas)


def _without_moves() -> Column:
    """The min.insync.replicas that guarantees the acknowledged racks without moving replicas; NULL if none leaves headroom."""
    smallest = F.greatest(copies(), "acked_smallest_min_isr")
    stays = (_needed() == _now()) & (smallest + headroom() <= _needed())
    return F.when(F.col("acked_smallest_min_isr").isNotNull() & stays, smallest)


def _evenly(replicas: Column) -> Column:
    """The min.insync.replicas that guarantees copies and acknowledged racks with `replicas` spread evenly over the racks.

    NULL if fewer brokers have a rack.
    """
    in_fullest = rack_counts.most_held(F.col("rack_layout"), replicas, _required("acked_racks") - 1)
    return F.when(in_fullest.isNotNull(), F.greatest(copies(), in_fullest + 1))


def _spread_replication_factor() -> Column:
    """The fewest replicas that, spread evenly, guarantee the acknowledged racks with headroom; NULL if none do.

    With few racks, these are more than copies and headroom need.
    """
    allowed = F.coalesce(at_most(), F.lit(NEVER))
    enough = F.filter(
        F.sequence(_needed(), _needed() + MORE), lambda n: (_evenly(n) + headroom() <= n) & (n <= allowed)
    )
    return F.try_element_at(enough, F.lit(1))


def _acked_racks() -> Column:
    """The acknowledged racks for which replicas must be spread evenly; NULL if that isn't needed or doesn't help."""
    wanted = _required("acked_racks")
    helps = (F.size("racks") >= wanted) & F.col(SPREAD).isNotNull()
    return F.when((wanted > 1) & _without_moves().isNull() & helps, wanted)


def _replication_factor() -> Column:
    """The minimum for every partition; NULL if the present number of replicas is unknown."""
    return F.when(F.col("target_acked_racks").isNull(), _needed()).otherwise(F.col(SPREAD))


def _min_insync_replicas() -> Column:
    """The configured value, changed only as far as copies and headroom require; NULL if it is unknown.

    If the replication factor is unknown, only the copies count.
    """
    configured = F.col("min_insync_replicas_at_worst")["min_isr"]
    replicas = F.col("target_replication_factor")
    spread = F.when(F.col("target_acked_racks").isNotNull(), _evenly(replicas))
    relative = _allowed(replicas) - below_rf("min_insync_replicas")
    least = F.greatest(copies(), F.when(_required("acked_racks") > 1, _without_moves()), spread, relative)
    return F.when(configured.isNotNull(), F.greatest(least, F.least(configured, replicas - headroom())))


def _racks() -> Column:
    """The racks that the replicas must span. The topic's own min.insync.racks may be stricter than its tier (KIP-1290)."""
    relative = _allowed(F.col("target_replication_factor")) - below_rf("replica_racks")
    return F.greatest(racks(), "min_racks", relative).cast("int")


def _grows() -> Column:
    """Do partitions need more replicas?"""
    return certain(F.col("target_replication_factor") > _now())


def _needs_higher_min_isr() -> Column:
    """Would the target's min.insync.replicas be too low for the acknowledged racks if the replicas stay where they are?"""
    return certain(F.col("target_min_insync_replicas") < F.col("acked_smallest_min_isr"))


def _reassign() -> Column:
    """Is a reassignment plan needed and possible? Replicas must be added or moved to other racks."""

    def failed(control: str) -> Column:
        return certain(base.outcome_of(control) == base.FAIL)

    misplaced = failed("replica-rack-spread") | certain(
        failed("isr-rack-spread") & F.col("isr_rack_spread_by_placement")
    )
    uneven = F.col("target_acked_racks").isNotNull() & (failed("acked-durability") | _needs_higher_min_isr())
    moves = certain((misplaced | uneven) & ~_too_few_racks() & (F.size("racks") > 0))
    # If the number of replicas is unknown (observers may be among them), a plan would guess which replicas count.
    moves = moves & F.col("target_replication_factor").isNotNull()
    return (_grows() | moves) & ~_too_few_brokers() & ~_too_few_allowed() & ~F.col("diskless")


def steps() -> tuple[dict[str, Column], ...]:
    """The target's columns, which are also in `topic_posture`. Each step reads the columns before it, the first the measures.

    - `target_replication_factor`, `target_min_insync_replicas`: NULL if unknown.
    - `target_racks`: the racks that replicas must span.
    - `target_acked_racks`: the racks for which replicas must be spread evenly; NULL for none.
    - `reassign`: is a reassignment plan part of the remedy?
    - `target_own_racks`: must each replica be in its own rack? NULL if not.
    - `target_rack_balance`: must replicas be spread evenly over all racks? NULL if not.
    """
    return (
        {SPREAD: F.when(_required("acked_racks") > 1, _spread_replication_factor())},
        {"target_acked_racks": _acked_racks().cast("int")},
        {"target_replication_factor": _replication_factor().cast("int")},
        {
            "target_min_insync_replicas": _min_insync_replicas().cast("int"),
            "target_racks": _racks(),
            "target_own_racks": F.when(below_rf("replica_racks") == 0, True),
            "target_rack_balance": F.when(_required("replica_rack_balance"), True),
        },
        {"reassign": _reassign()},
    )


def spreads() -> Column:
    """Is it enough to spread the same replicas evenly?"""
    return F.col("reassign") & F.col("target_acked_racks").isNotNull() & ~_grows()


def measures() -> dict[str, Column]:
    """Measures over a topic's partitions.

    - `replicas_down`: the dead brokers that have replicas of the topic.
    - `leaders_unknown`: is it unknown for any partition whether it has a live leader?
    - `minimum_unknown`: is min.insync.replicas unknown for a partition whose leader counts replicas that are being added? Since
      3.7 it counts them (KAFKA-15583). Before, the minimum doesn't depend on replicas.
    - `most_replicas`: the largest number of replicas of a partition; NULL if unknown.
    - `shrinks`: does a running reassignment leave a partition fewer replicas than it had?
    - `losses_of_placed`: what the loss of each rack leaves of each partition's replicas, as they are placed (`racks.losses`).
    """
    # During a reassignment, the last layout is the one once it is complete.
    placed = F.when(~F.col("has_observers"), F.try_element_at("ends", F.lit(-1)))
    down = F.flatten(F.collect_list(F.when(F.size("replicas_down") > 0, F.col("replicas_down"))))
    return {
        "replicas_down": F.sort_array(F.array_distinct(down)),
        "leaders_unknown": F.bool_or(F.col("offline").isNull()),
        "minimum_unknown": F.bool_or(F.col("min_isr").isNull() & possible("caps")),
        "most_replicas": F.when(F.bool_and(F.col("replica_count").isNotNull()), F.max("replica_count")),
        "shrinks": F.bool_or(certain(F.size("removing") > F.size("adding"))),
        "losses_of_placed": F.sort_array(F.array_distinct(F.flatten(F.collect_set(rack_counts.losses(placed))))),
    }


def _rack_losses() -> Column:
    """What the loss of each rack leaves at the target, if the target raises min.insync.replicas; else NULL.

    A plan that adds or moves replicas is assumed to spread them evenly.
    """
    raises = F.col("target_min_insync_replicas") > F.col("min_insync_replicas_at_worst")["min_isr"]
    evenly = rack_counts.losses_if_even(F.col("rack_layout"), F.col("target_replication_factor"))
    return F.when(raises, F.when(F.col("reassign"), evenly).otherwise(F.col("losses_of_placed")))


def _unracked() -> Column:
    """The brokers without broker.rack, if the cluster has too few racks; else NULL."""
    few = (F.size("racks") == 0) | certain(_too_few_racks()) | few_beside()
    return F.when(few, F.col("unracked_brokers"))


def with_target(topics: DataFrame, plan: Plan) -> DataFrame:
    """`topics` with TARGET, from which `durability.remedies.target` makes the topic's remedies.

    Reads the columns of `steps`, `led_isr_least` (the smallest ISR of a partition with a leader), `elr_cluster_at_risk`,
    `inherited_least`, and `cluster_reassigning` (the number of the cluster's running reassignments; NULL if unknown).
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
        "default_min_insync_replicas": default_min_isr(plan),
        "smallest_led_isr": F.col("led_isr_least"),
        "minimum_unknown": F.col("minimum_unknown"),
        "most_replicas": F.col("most_replicas"),
        "brokers": F.col("broker_count"),
        "racks_there": F.size("racks"),
        "unracked_brokers": _unracked(),
        "too_few_brokers": _too_few_brokers(),
        "too_few_racks": _too_few_racks(),
        "at_most": F.when(_too_few_allowed(), at_most()),
        "above_maximum": F.when(F.col("most_replicas") > at_most(), at_most()),
        "leans": _needs_higher_min_isr(),
        "rejects": certain(~within["caps"] & (within["min_isr"] > within["rf"])),
        "replicas_down": F.col("replicas_down"),
        "highest_min_insync_replicas": within["min_isr"],
        "its_replication_factor": within["rf"],
        "below_replication_factor": below_rf("min_insync_replicas"),
        "rack_losses": _rack_losses(),
        "offline": F.when(~possible("leaders_unknown"), F.size("offline_ids")),
        "inherited_least": F.col("inherited_least"),
        "reassigning_in_cluster": F.col("cluster_reassigning"),
        "shrinks": F.col("shrinks"),
        "cancel_harms": F.size("cancel_harms") > 0,
        "elr_at_risk": elr_guard.unsafe("elr_partitions_at_risk"),
        "elr_at_risk_in_cluster": elr_guard.unsafe("elr_cluster_at_risk"),
    }
    return topics.withColumn(TARGET, struct(fields))
