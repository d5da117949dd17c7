"""min-isr-within-replication-factor: min.insync.replicas above the replication factor (KIP-579).

Before 3.7 an outage: every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying can't help. Since 3.7 (KAFKA-15583) a
silent downgrade: the leader enforces the number of replicas instead. KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, not
retriable, for acks=all only; no broker does. An unknown release is UNKNOWN, with both readings.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "min-isr-within-replication-factor"
SEEN = "min_isr_within_replication_factor_worst"
OUTAGE, DOWNGRADE = "outage", "silent-downgrade"


def measures() -> dict[str, Column | Flagged]:
    gap = F.col("min_isr") - F.col("judged_rf")
    seen = F.struct("min_isr", F.col("judged_rf").alias("rf"), "caps", "min_isr_source")
    # The worst partition: an outage before a downgrade before an unknown release, then the widest gap.
    weight = F.when(gap > 0, F.when(~F.col("caps"), 3).when(F.col("caps"), 2).otherwise(1)).when(gap.isNotNull(), 0)
    order = F.struct(F.coalesce(weight, F.lit(-1)), F.coalesce(gap, F.lit(0)), -F.col("partition"))
    return {
        SEEN: F.max_by(seen, order),
        "min_isr_within_replication_factor_unknown": F.coalesce(F.bool_or(gap.isNull()), F.lit(True)),
        "min_isr_within_replication_factor_failing": base.partition_ids(gap > 0),
        "min_isr_mixed_releases": F.bool_or("mixed_releases"),
    }


def outcome() -> Column:
    seen = F.col(SEEN)
    above = seen["min_isr"] > seen["rf"]
    missing = F.coalesce(F.col("min_isr_within_replication_factor_unknown"), F.lit(True)) | ~F.col("partitions_known")
    return (
        F.when(above & seen["caps"].isNotNull(), base.FAIL)
        .when(above | above.isNull() | missing, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def check() -> Column:
    return base.check(CONTROL, F.col(SEEN)["min_isr"], F.col(SEEN)["rf"])


def topic_verdicts(plan: Plan) -> list[Column]:
    seen = F.col(SEEN)
    above = seen["min_isr"] > seen["rf"]
    effect = F.when(above, F.when(seen["caps"], DOWNGRADE).when(~seen["caps"], OUTAGE))
    either = F.struct(F.lit(OUTAGE).alias("before 3.7"), F.lit(DOWNGRADE).alias("since 3.7"))
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=effect,
        severity=F.when(effect == DOWNGRADE, base.severity_of(CONTROL, DOWNGRADE)).otherwise(
            base.severity_of(CONTROL, OUTAGE)
        ),
        cause=base.min_isr_cause(seen["min_isr_source"]),
        observed={
            "min_insync_replicas": seen["min_isr"],
            "replication_factor": seen["rf"],
            "effect": effect,
            "error": F.when(effect == OUTAGE, "NOT_ENOUGH_REPLICAS"),
            "proposed_error": F.when(above, "INCONSISTENT_REPLICATION_FACTOR"),
            "retriable": F.when(above, F.lit(False)),
            "readings": F.when(above & seen["caps"].isNull(), either),
        },
        required={"min_insync_replicas_at_most": seen["rf"]},
        evidence={"mixed_releases": F.col("min_isr_mixed_releases"), "target": target.evidence()},
        partitions=F.col("min_isr_within_replication_factor_failing"),
    )
    return [verdict]
