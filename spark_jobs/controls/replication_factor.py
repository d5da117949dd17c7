"""replication-factor: a partition has fewer replicas than its tier requires.

While a reassignment runs the worse of replicas minus adding and replicas minus removing counts.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "replication-factor"


def required() -> Column:
    return F.col("required")["replication_factor"]


def measures() -> dict[str, Column]:
    return base.measure(CONTROL, F.col("judged_rf"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, outcome(), F.col("replication_factor_worst"), required())


def finding() -> Column:
    worst, failing = F.col("replication_factor_worst"), F.col("replication_factor_failing")
    message = base.say(
        base.partitions_listed(failing), ": ", worst, " replica(s), ", required(), " required by tier ", F.col("tier")
    )
    more = base.say(
        "Give each of these partitions ",
        required(),
        " replicas on different racks: write their new replica lists into ",
        F.col("topic"),
        '.json, then kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --execute --reassignment-json-file ',
        F.col("topic"),
        ".json",
    )
    # The new replica counts towards the effective min ISR before it is in sync (seen on 4.3.1).
    lower_first = F.when(
        F.col("min_isr_within_replication_factor_worst")["min_isr"] > worst,
        " (until the new replicas are in sync acks=all writes are refused, since min.insync.replicas is above the ISR)",
    ).otherwise("")
    return base.finding(
        CONTROL,
        outcome(),
        cause=F.coalesce(base.not_feasible(required(), F.col("broker_count")), F.lit("configuration:topic")),
        observed=base.as_json(replication_factor=worst),
        required=base.as_json(replication_factor=required()),
        partitions=failing,
        message=F.when(outcome() == base.FAIL, message)
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("a replication factor")),
        remediation=F.concat(more, lower_first),
    )
