"""replica-rack-spread: a partition's replicas span fewer racks than the tier requires (KIP-1290's placement side).

A broker without broker.rack adds no rack, an unknown rack may be any: too few is certain, or UNKNOWN.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "replica-rack-spread"


def required() -> Column:
    return F.col("required")["replica_racks"]


def measures() -> dict[str, Column]:
    return base.measure(CONTROL, F.col("replica_racks"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, outcome(), F.col("replica_rack_spread_worst"), required())


def placement_cause() -> Column:
    """Nobody has a rack: one setting. Else where the replicas were put."""
    return F.when(F.size("racks") == 0, "configuration:broker.rack").otherwise("placement")


def finding() -> Column:
    worst, failing = F.col("replica_rack_spread_worst"), F.col("replica_rack_spread_failing")
    racks_known = F.size("racks") + F.col("unknown_racks")
    message = base.say(
        base.partitions_listed(failing),
        ": replicas span ",
        worst,
        " rack(s), ",
        required(),
        " required by tier ",
        F.col("tier"),
    )
    return base.finding(
        CONTROL,
        outcome(),
        cause=F.coalesce(base.not_feasible(required(), racks_known), placement_cause()),
        observed=base.as_json(replica_racks=worst),
        required=base.as_json(replica_racks=required()),
        partitions=failing,
        message=F.when(outcome() == base.FAIL, message)
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("a spread over racks")),
        remediation=F.when(
            F.size("racks") == 0,
            "Set broker.rack in every broker's server.properties, then spread the replicas over racks",
        ).otherwise(
            base.say(
                "Move replicas of these partitions to brokers in other racks (",
                F.array_join("racks", ", "),
                '): kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --execute --reassignment-json-file ',
                F.col("topic"),
                ".json",
            )
        ),
    )
