"""replica-rack-spread: a partition's replicas span fewer racks than the tier requires (placement in KIP-1290), or not evenly.

A broker without broker.rack adds no rack. A broker whose rack is unknown may add one. So the partition fails only if its racks
are too few even with that rack, and is UNKNOWN otherwise. The same applies to an even spread.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.flagged import Flagged
from spark_jobs.frames.partition_minimum import PartitionMinimum

CONTROL = "replica-rack-spread"
RULE = PartitionMinimum(CONTROL, "replica_racks", key="replica_racks")
UNEVEN = "uneven"
UNEVEN_IDS, DIFFERENCE, UNDECIDED = "replica_rack_uneven", "replica_rack_difference", "replica_rack_undecided"


def balanced() -> Column:
    """Does the tier require an even spread?"""
    return certain(F.col("required")["replica_rack_balance"])


def measures() -> dict[str, Column | Flagged]:
    uneven = F.col("balance")["uneven"]
    differences = Flagged(uneven, lambda flagged: F.array_max(flagged["balance"]["difference"]))
    undecided = F.bool_or(balanced() & uneven.isNull())
    return RULE.measures() | {UNEVEN_IDS: base.partition_ids(uneven), DIFFERENCE: differences, UNDECIDED: undecided}


def _even() -> Column:
    return (
        F.when(~balanced(), base.NOT_APPLICABLE)
        .when(F.size(UNEVEN_IDS) > 0, base.FAIL)
        .when(possible(UNDECIDED) | ~F.col("partitions_known"), base.UNKNOWN)
        .otherwise(base.PASS)
    )


def outcome() -> Column:
    return base.worse(RULE.outcome(), _even())


def check() -> Column:
    """The number of racks only."""
    return base.check(CONTROL, RULE.worst, RULE.required, RULE.outcome())


def placement_cause() -> Column:
    """The missing setting if no broker has a rack, else the placement of the replicas."""
    return F.when(F.size("racks") == 0, "configuration:broker.rack").otherwise("placement")


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    racks_at_most = F.size("racks") + F.col("unknown_racks")
    fails = base.outcome_of(CONTROL) == base.FAIL
    allowed, least = target.allowed_racks(RULE.required), target.least_racks(RULE.required)
    # The cluster can meet the tier, but not with as many replicas as the topic has.
    too_many = F.col("brokers_known") & (allowed > racks_at_most) & (least <= racks_at_most)
    enough_racks_for = F.when(too_many, racks_at_most + target.below_rf("replica_racks"))
    uneven = fails & ~certain(RULE.worst < RULE.required)
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=F.when(uneven, UNEVEN),
        cause=F.coalesce(
            base.not_feasible(least, racks_at_most),
            F.when(enough_racks_for.isNotNull(), "configuration:topic"),
            F.when(uneven & target.too_few_in_a_rack(), base.infeasible(F.col("tier"))),
            placement_cause(),
        ),
        observed={"replica_racks": RULE.worst},
        required={"replica_racks": RULE.required},
        also_observed={DIFFERENCE: F.col(DIFFERENCE)},
        also_required={"replica_rack_balance": F.when(balanced(), F.lit(True))},
        evidence={"target": F.col(target.TARGET), "enough_racks_for": enough_racks_for, **base.unknown_because()},
        partitions=F.when(uneven, F.col(UNEVEN_IDS)).otherwise(RULE.failing),
    )
