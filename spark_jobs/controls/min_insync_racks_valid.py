"""min-insync-racks-valid: a min.insync.racks that the cluster or the topic can't satisfy (KIP-1290's validations).

The value is the stricter of the setting and the tier's min_insync_racks. The finding names the first problem, and the worst
problem sets the severity. A broker fails if it has no broker.rack and a value above 1 is wanted, or if its own value is invalid.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, rack_health, target
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.flagged import Flagged

CONTROL = "min-insync-racks-valid"
BELOW_ONE, ABOVE_KNOWN, UNRACKED = "below-one", "above-known-racks", "broker-without-rack"
ABOVE_RF, ABOVE_REPLICAS = "above-replication-factor", "above-replica-racks"
PROBLEMS = "min_insync_racks_problems"
UNPLACED = "unplaced"
"""The reason of an UNKNOWN: brokers that name no rack, or whose rack is unknown, may be in further racks."""


def measures() -> dict[str, Column | Flagged]:
    wanted = F.col("min_racks")
    most, least = F.col("replica_span")["most"], F.col("replica_span")["least"]
    undecided = (most.isNull() | (least < wanted)) & ~certain(most < wanted)
    return {
        "valid_racks_rf": F.min("judged_rf"),
        "valid_racks_unknown": possible(F.bool_or(F.col("judged_rf").isNull() | undecided)),
        "valid_racks_above_rf": base.partition_ids(F.col("judged_rf") < wanted),
        "valid_racks_above_span": base.partition_ids(most < wanted),
    }


def _unnamed_rack() -> Column:
    """1 if brokers have no broker.rack, because together they count as one rack."""
    return F.least(F.size("unracked_brokers"), F.lit(1))


def follows() -> dict[str, Column]:
    """PROBLEMS of a topic, the one to name first."""
    wanted = F.col("min_racks")
    problems = (
        F.when(F.col("min_racks_configured") < 1, BELOW_ONE),
        F.when(wanted > F.size("racks") + F.col("unknown_racks") + _unnamed_rack(), ABOVE_KNOWN),
        F.when(F.size("valid_racks_above_rf") > 0, ABOVE_RF),
        F.when(F.size("valid_racks_above_span") > 0, ABOVE_REPLICAS),
        F.when((wanted > 1) & (_unnamed_rack() > 0), UNRACKED),
    )
    return {PROBLEMS: F.array_compact(F.array(*problems))}


def outcome() -> Column:
    unknown = possible("valid_racks_unknown") | (F.col("unknown_racks") > 0) | ~F.col("partitions_known")
    return (
        F.when(F.size(PROBLEMS) > 0, base.FAIL)
        .when(~F.col("min_racks_known"), base.UNKNOWN)
        .when(F.col("min_racks").isNull(), base.NOT_APPLICABLE)
        .when((F.col("min_racks") > 1) & unknown, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    problem = F.try_element_at(F.col(PROBLEMS), F.lit(1))
    configured, wanted = F.col("min_racks_configured"), F.col("min_racks")
    by_policy = rack_health.min_racks_by_tier()
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        # KIP-1290 only warns of a value above the known racks, since racks may be added. Other problems reject writes.
        severity_of=F.when(F.forall(PROBLEMS, lambda p: p == ABOVE_KNOWN), ABOVE_KNOWN),
        cause=F.when(problem == UNRACKED, "configuration:broker.rack")
        .when((problem == ABOVE_KNOWN) & by_policy, base.infeasible(F.col("tier")))
        .when(problem.isin(BELOW_ONE, ABOVE_KNOWN), rack_health.min_racks_cause())
        .otherwise("placement"),
        observed={
            "problem": problem,
            "min_insync_racks": F.when(problem == BELOW_ONE, configured).otherwise(wanted),
            "problems": F.col(PROBLEMS),
        },
        required={"min_insync_racks": F.col("required")["min_insync_racks"]},
        evidence={
            "racks": F.size("racks"),
            "replication_factor": F.col("valid_racks_rf"),
            "unracked_brokers": F.col("unracked_brokers"),
            "by_policy": by_policy,
            "target": F.col(target.TARGET),
            **base.unknown_because(),
        },
        partitions=F.when(problem == ABOVE_RF, F.col("valid_racks_above_rf")).when(
            problem == ABOVE_REPLICAS, F.col("valid_racks_above_span")
        ),
    )


def broker_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `b`, the broker, and `racks_wanted`, the largest value wanted in its cluster.

    A broker of KIP-1290 with a value above 1 and no broker.rack refuses to start, or refuses the dynamic change. For a value
    above the known racks it only logs a warning. Brokers without a rack may be in any, so a value is compared with the
    racks without them, and with a rack of its own for each.
    """
    broker = F.col("b")
    own, state = broker["min_racks"], F.coalesce(broker["rack_state"], F.lit("unknown"))
    wanted = F.coalesce(F.greatest(own, "racks_wanted"), F.lit(1))
    racks_at_most = F.size("racks") + F.col("unknown_racks") + F.size("unracked_brokers")
    problem = (
        F.when(own < 1, BELOW_ONE)
        .when(own > racks_at_most, ABOVE_KNOWN)
        .when((wanted > 1) & (state == "none"), UNRACKED)
    )
    of_value = certain(problem.isin(BELOW_ONE, ABOVE_KNOWN))
    refused = certain((own > 1) & (state == "none"))
    unread = ~broker["min_racks_known"]
    unplaced = problem.isNull() & certain((own > 1) & (own > F.size("racks"))) & (state != "unknown") & ~unread
    by_cluster = broker["min_racks_source"] == "cluster-default"
    yield base.verdict(
        CONTROL,
        F.when(problem.isNotNull(), base.FAIL)
        .when(unread | unplaced | ((wanted > 1) & (state == "unknown")), base.UNKNOWN)
        .otherwise(base.PASS),
        cause=F.when(of_value & by_cluster, "configuration:cluster-default")
        .when(of_value, "configuration:broker")
        .when((state == "unknown") | unread, F.coalesce(broker["down"], F.lit("unreadable")))
        .otherwise("configuration:broker.rack"),
        severity_of=F.when(~refused, problem),
        observed={"problem": problem, "min_insync_racks": F.when(of_value | unplaced, own).otherwise(wanted)},
        required={"problem": F.lit(None).cast("string")},
        evidence={
            base.REASON: F.when(unplaced, UNPLACED),
            "racks": F.size("racks"),
            "rack_state": state,
            "setting_unread": unread,
            "refused": refused,
            "unracked_brokers": F.col("unracked_brokers"),
        },
    )
