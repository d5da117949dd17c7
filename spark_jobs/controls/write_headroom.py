"""write-headroom: how many brokers a partition can lose before acks=all writes are rejected (KIP-427).

It is the replication factor minus the effective min ISR. It describes the configuration, whatever is down at the moment.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, headroom, target
from spark_jobs.frames.flagged import Flagged
from spark_jobs.frames.partition_minimum import PartitionMinimum

CONTROL = "write-headroom"
RULE = PartitionMinimum(CONTROL, "write_headroom", key="write_headroom")
outcome, check = RULE.outcome, RULE.check


def measures() -> dict[str, Column | Flagged]:
    effective = F.col("effective_min_isr").alias("effective")
    fields = F.struct(F.col("judged_rf").alias("rf"), effective, "min_isr", "min_isr_source")
    return RULE.measures() | {"write_headroom_at_worst": base.at_worst_partition(fields, F.col("write_headroom"))}


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    worst = F.col("write_headroom_at_worst")
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(target.infeasible(), headroom.cause()),
        observed={"write_headroom": RULE.worst},
        required={"write_headroom": RULE.required},
        evidence={
            "replication_factor": worst["rf"],
            "effective_min_insync_replicas": worst["effective"],
            "target": F.col(target.TARGET),
            **base.unknown_because(),
        },
        partitions=RULE.failing,
    )
