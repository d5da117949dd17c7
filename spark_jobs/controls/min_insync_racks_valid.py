"""min-insync-racks-valid: a min.insync.racks that makes no sense (KIP-1290's validations).

Judged for the value an operator wants: the stricter of the setting and the tier's min_insync_racks. The first problem
that applies is named, the worst of all sets the severity. On a broker: it has no broker.rack although a value above 1
is wanted somewhere.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "min-insync-racks-valid"
BELOW_ONE, ABOVE_KNOWN, ABOVE_RF, ABOVE_REPLICAS, UNRACKED = (
    "below-one",
    "above-known-racks",
    "above-replication-factor",
    "above-replica-racks",
    "broker-without-rack",
)
PROBLEMS = "min_insync_racks_problems"


def measures() -> dict[str, Column | Flagged]:
    wanted = F.col("min_racks")
    most, least = F.col("replica_span")["most"], F.col("replica_span")["least"]
    open_span = (most.isNull() | (least < wanted)) & ~F.coalesce(most < wanted, F.lit(False))
    return {
        "valid_racks_rf": F.min("judged_rf"),
        "valid_racks_unknown": F.coalesce(F.bool_or(F.col("judged_rf").isNull() | open_span), F.lit(True)),
        "valid_racks_above_rf": base.partition_ids(F.col("judged_rf") < wanted),
        "valid_racks_above_span": base.partition_ids(most < wanted),
    }


def problems() -> Column:
    """All that apply, in the order in which they are named. All brokers without broker.rack share one unnamed rack."""
    wanted = F.col("min_racks")
    unnamed = F.least(F.size("unracked_brokers"), F.lit(1))
    return F.array_compact(
        F.array(
            F.when(F.col("min_racks_configured") < 1, BELOW_ONE),
            F.when(wanted > F.size("racks") + F.col("unknown_racks") + unnamed, ABOVE_KNOWN),
            F.when(F.size("valid_racks_above_rf") > 0, ABOVE_RF),
            F.when(F.size("valid_racks_above_span") > 0, ABOVE_REPLICAS),
            F.when((wanted > 1) & (unnamed > 0), UNRACKED),
        )
    )


def follows() -> dict[str, Column]:
    """Of a topic, beside its measures."""
    return {PROBLEMS: problems()}


def first_problem() -> Column:
    """The one that names the finding; NULL: none. Reads PROBLEMS, computed beside the outcome."""
    return F.try_element_at(F.col(PROBLEMS), F.lit(1))


def outcome() -> Column:
    """Reads PROBLEMS."""
    unknown = (F.col("min_racks") > 1) & (
        F.coalesce(F.col("valid_racks_unknown"), F.lit(True))
        | (F.col("unknown_racks") > 0)
        | ~F.col("partitions_known")
    )
    return (
        F.when(first_problem().isNotNull(), base.FAIL)
        .when(~F.col("min_racks_known"), base.UNKNOWN)
        .when(F.col("min_racks").isNull(), base.NOT_APPLICABLE)
        .when(unknown, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def topic_verdicts(plan: Plan) -> list[Column]:
    what = first_problem()
    wanted = F.when(what == BELOW_ONE, F.col("min_racks_configured")).otherwise(F.col("min_racks"))
    ids = F.when(what == ABOVE_RF, F.col("valid_racks_above_rf")).when(
        what == ABOVE_REPLICAS, F.col("valid_racks_above_span")
    )
    by_policy = F.coalesce(F.col("min_racks_configured"), F.lit(0)) < F.coalesce(F.col("min_racks"), F.lit(0))
    of_value = what.isin(BELOW_ONE, ABOVE_KNOWN)
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        # KIP-1290 only warns of more racks than there are, since racks may be added; any other problem refuses writes.
        severity=F.when(
            F.forall(PROBLEMS, lambda p: p == ABOVE_KNOWN), base.severity_of(CONTROL, ABOVE_KNOWN)
        ).otherwise(base.severity_of(CONTROL, ABOVE_RF)),
        cause=F.when(what == UNRACKED, "configuration:broker.rack")
        .when((what == ABOVE_KNOWN) & by_policy, base.infeasible(F.col("tier")))
        .when(of_value & F.col("own_min_racks").isNotNull(), "configuration:topic")
        .when(of_value, "configuration:cluster-default")
        .otherwise("placement"),
        observed={"problem": what, "min_insync_racks": wanted, "problems": F.col(PROBLEMS)},
        required={"min_insync_racks": F.col("required")["min_insync_racks"]},
        evidence={
            "racks": F.size("racks"),
            "replication_factor": F.col("valid_racks_rf"),
            "unracked_brokers": F.col("unracked_brokers"),
            "by_policy": by_policy,
            "target": target.evidence(),
        },
        partitions=ids,
    )
    return [verdict]


def broker_verdicts(plan: Plan) -> list[Column]:
    """On a broker: reads `b`, the broker, and `racks_wanted`, the largest value wanted in its cluster.

    Above 1 without a broker.rack of its own, KIP-1290's broker refuses to start, or refuses the dynamic change; above
    the known racks it only warns.
    """
    broker, state = F.col("b"), F.coalesce(F.col("b")["rack_state"], F.lit("unknown"))
    own = broker["min_racks"]
    wanted = F.coalesce(F.greatest(own, "racks_wanted"), F.lit(1))
    known_racks = F.size("racks") + F.col("unknown_racks") + F.least(F.size("unracked_brokers"), F.lit(1))
    what = (
        F.when(own < 1, BELOW_ONE).when(own > known_racks, ABOVE_KNOWN).when((wanted > 1) & (state == "none"), UNRACKED)
    )
    of_value = F.coalesce(what.isin(BELOW_ONE, ABOVE_KNOWN), F.lit(False))
    refused = F.coalesce((own > 1) & (state == "none"), F.lit(False))
    unread = ~broker["min_racks_known"]
    outcome = (
        F.when(what.isNotNull(), base.FAIL)
        .when(unread | ((wanted > 1) & (state == "unknown")), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    stated_at = F.when(broker["min_racks_source"] == "cluster-default", "configuration:cluster-default").otherwise(
        "configuration:broker"
    )
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=F.when(of_value, stated_at)
        .when((state == "unknown") | unread, F.coalesce(broker["down"], F.lit("unreadable")))
        .otherwise("configuration:broker.rack"),
        severity=F.when((what == ABOVE_KNOWN) & ~refused, base.severity_of(CONTROL, ABOVE_KNOWN)).otherwise(
            base.severity_of(CONTROL, UNRACKED)
        ),
        observed={"problem": what, "min_insync_racks": F.when(of_value, own).otherwise(wanted)},
        required={"problem": F.lit(None).cast("string")},
        evidence={
            "racks": F.size("racks"),
            "rack_state": state,
            "setting_unread": unread,
            "refused": refused,
            "unracked_brokers": F.col("unracked_brokers"),
        },
    )
    return [verdict]
