"""write-headroom: how many brokers a partition can lose with acks=all writes still accepted (KIP-427).

Replication factor minus effective min ISR: what the configuration leaves, whatever is down right now.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base, elr_guard

CONTROL = "write-headroom"


def required() -> Column:
    return F.col("required")["write_headroom"]


def measures() -> dict[str, Column]:
    headroom = F.col("write_headroom")
    seen = F.struct(F.col("judged_rf").alias("rf"), F.col("effective_min_isr").alias("effective"))
    return {**base.measure(CONTROL, headroom, required()), "write_headroom_seen": F.min_by(seen, headroom)}


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, outcome(), F.col("write_headroom_worst"), required())


def finding() -> Column:
    worst, seen = F.col("write_headroom_worst"), F.col("write_headroom_seen")
    failing = F.col("write_headroom_failing")
    wanted_min = F.col("required")["min_insync_replicas"]
    lower = seen["rf"] - required()
    message = base.say(
        base.partitions_listed(failing),
        ": ",
        worst,
        " broker(s) can be lost with acks=all still accepted, ",
        required(),
        " required (replication factor ",
        seen["rf"],
        ", effective min.insync.replicas ",
        seen["effective"],
        ")",
    )
    can_lower = (lower >= 1) & (lower >= F.coalesce(wanted_min, F.lit(1)))
    return base.finding(
        CONTROL,
        outcome(),
        cause="configuration:topic",
        observed=base.as_json(write_headroom=worst),
        required=base.as_json(write_headroom=required()),
        partitions=failing,
        message=F.when(outcome() == base.FAIL, message)
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("write headroom")),
        remediation=F.when(can_lower, elr_guard.guarded(base.topic_config("min.insync.replicas", lower))).otherwise(
            base.say("Raise the replication factor to ", seen["effective"] + required())
        ),
    )
