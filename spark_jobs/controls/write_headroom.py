"""write-headroom: how many brokers a partition can lose with acks=all writes still accepted (KIP-427).

Replication factor minus effective min ISR: what the configuration leaves, whatever is down right now.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "write-headroom"


def required() -> Column:
    return F.col("required")["write_headroom"]


def measures() -> dict[str, Column | Flagged]:
    headroom = F.col("write_headroom")
    effective = F.col("effective_min_isr").alias("effective")
    seen = F.struct(F.col("judged_rf").alias("rf"), effective, "min_isr", "min_isr_source")
    return {**base.measure(CONTROL, headroom, required()), "write_headroom_seen": base.of_the_least(seen, headroom)}


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def check() -> Column:
    return base.check(CONTROL, F.col("write_headroom_worst"), required())


def topic_verdicts(plan: Plan) -> list[Column]:
    seen = F.col("write_headroom_seen")
    cause = F.coalesce(
        target.infeasible(),
        F.when(seen["min_isr"] > seen["rf"], base.min_isr_cause(seen["min_isr_source"])),
        F.lit("configuration:topic"),
    )
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=cause,
        observed={"write_headroom": F.col("write_headroom_worst")},
        required={"write_headroom": required()},
        evidence={
            "replication_factor": seen["rf"],
            "effective_min_insync_replicas": seen["effective"],
            "target": target.evidence(),
        },
        partitions=F.col("write_headroom_failing"),
    )
    return [verdict]
