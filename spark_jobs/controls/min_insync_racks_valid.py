"""min-insync-racks-valid: a min.insync.racks that makes no sense (KIP-1290's validations).

Judged for the value an operator wants: the stricter of the setting and the tier's min_insync_racks. The first problem
that applies is named. On a broker: it has no broker.rack although a value above 1 is wanted somewhere.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "min-insync-racks-valid"
PROBLEMS = (
    "below-one",
    "above-known-racks",
    "above-replication-factor",
    "above-replica-racks",
    "broker-without-rack",
)


def measures() -> dict[str, Column]:
    wanted = F.col("min_racks")
    most, least = F.col("replica_span")["most"], F.col("replica_span")["least"]
    return {
        "valid_racks_rf": F.min("judged_rf"),
        "valid_racks_rf_unknown": F.coalesce(F.bool_or(F.col("judged_rf").isNull()), F.lit(True)),
        "valid_racks_above_rf": base.partition_ids(F.col("judged_rf") < wanted),
        "valid_racks_above_span": base.partition_ids(most < wanted),
        "valid_racks_span_unknown": F.coalesce(
            F.bool_or((most.isNull() | (least < wanted)) & ~F.coalesce(most < wanted, F.lit(False))), F.lit(True)
        ),
    }


def problem() -> Column:
    """The first that applies, or NULL."""
    wanted = F.col("min_racks")
    below = F.coalesce(F.col("min_racks_configured") < 1, F.lit(False))
    return (
        F.when(below, PROBLEMS[0])
        .when(wanted > F.size("racks") + F.col("unknown_racks") + _unnamed(), PROBLEMS[1])
        .when(F.size("valid_racks_above_rf") > 0, PROBLEMS[2])
        .when(F.size("valid_racks_above_span") > 0, PROBLEMS[3])
        .when((wanted > 1) & (F.size("unracked_brokers") > 0), PROBLEMS[4])
    )


def _unnamed() -> Column:
    return F.when(F.size("unracked_brokers") > 0, F.lit(1)).otherwise(0)


def outcome() -> Column:
    unknown = (F.col("min_racks") > 1) & (
        F.coalesce(F.col("valid_racks_rf_unknown") | F.col("valid_racks_span_unknown"), F.lit(True))
        | (F.col("unknown_racks") > 0)
        | ~F.col("partitions_known")
    )
    return (
        F.when(F.col("min_racks").isNull(), base.NOT_APPLICABLE)
        .when(problem().isNotNull(), base.FAIL)
        .when(unknown, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def finding() -> Column:
    wanted, what = (
        F.coalesce(F.when(F.col("min_racks_configured") < 1, F.col("min_racks_configured")), "min_racks"),
        problem(),
    )
    ids = F.when(what == PROBLEMS[2], F.col("valid_racks_above_rf")).when(
        what == PROBLEMS[3], F.col("valid_racks_above_span")
    )
    message = (
        F.when(what == PROBLEMS[0], base.say("min.insync.racks=", wanted, " is below 1, brokers would refuse it"))
        .when(what == PROBLEMS[1], base.say("min.insync.racks=", wanted, ", the cluster has ", F.size("racks"), " rack(s)"))
        .when(
            what == PROBLEMS[2],
            base.say(
                base.partitions_listed(ids), ": ", wanted, " racks wanted of ", F.col("valid_racks_rf"),
                " replica(s); no acks=all write could be accepted",
            ),
        )
        .when(
            what == PROBLEMS[3],
            base.say(base.partitions_listed(ids), ": the replicas can't span the ", wanted, " racks wanted"),
        )
        .when(
            what == PROBLEMS[4],
            base.say(wanted, " racks wanted while ", base.listed(F.col("unracked_brokers"), "broker "), " has no broker.rack"),
        )
    )  # fmt: skip
    from_config = F.col("min_racks_configured") >= F.coalesce(F.col("required")["min_insync_racks"], F.lit(1))
    return base.finding(
        CONTROL,
        outcome(),
        severity=F.when(what == PROBLEMS[1], base.severity_of(CONTROL, PROBLEMS[1])).otherwise(
            base.severity_of(CONTROL, PROBLEMS[0])
        ),
        cause=F.when(what == PROBLEMS[4], "configuration:broker.rack")
        .when(what == PROBLEMS[1], F.when(from_config, "configuration:topic").otherwise(
            base.say("policy:", F.col("tier"), " can't be met here")))
        .when(what == PROBLEMS[0], "configuration:topic")
        .otherwise("placement"),
        observed=base.as_json(problem=what, min_insync_racks=wanted),
        required=base.as_json(problem=F.lit(None).cast("string"), min_insync_racks=F.col("required")["min_insync_racks"]),
        partitions=ids,
        message=F.when(outcome() == base.FAIL, message)
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("racks of the ISR")),
        remediation=F.when(what == PROBLEMS[4], "Set broker.rack in that broker's server.properties and restart it")
        .when(what.isin(PROBLEMS[0], PROBLEMS[1]), "State a value from 1 to the number of racks, or add racks")
        .otherwise("Spread the replicas over that many racks (kafka-reassign-partitions), or want fewer racks of this topic"),
    )  # fmt: skip


def broker_finding() -> Column:
    """On a broker: reads `b`, the broker, and `racks_wanted`, the largest value wanted in its cluster."""
    state = F.coalesce(F.col("b")["rack_state"], F.lit("unknown"))
    wanted = F.coalesce(F.greatest(F.col("b")["min_racks"], "racks_wanted"), F.lit(1))
    result = (
        F.when(F.col("b")["min_racks"] < 1, base.FAIL)
        .when((wanted > 1) & (state == "none"), base.FAIL)
        .when((wanted > 1) & (state == "unknown"), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    below = F.col("b")["min_racks"] < 1
    what = F.when(below, PROBLEMS[0]).when(result == base.FAIL, PROBLEMS[4])
    return base.finding(
        CONTROL,
        result,
        cause=F.when(state == "unknown", F.coalesce(F.col("b")["down"], F.lit("unreadable"))).otherwise(
            "configuration:broker.rack"
        ),
        observed=base.as_json(problem=what, min_insync_racks=F.when(below, F.col("b")["min_racks"]).otherwise(wanted)),
        required=base.as_json(problem=F.lit(None).cast("string")),
        message=F.when(below, "min.insync.racks is below 1")
        .when(
            result == base.FAIL,
            base.say("no broker.rack, while min.insync.racks=", wanted, " is wanted: KIP-1290 wouldn't let it start"),
        )
        .when(result == base.UNKNOWN, "its rack is unknown"),
        remediation=F.when(state == "unknown", "Let the auditor read the broker").otherwise(
            "Set broker.rack in this broker's server.properties and restart it"
        ),
    )
