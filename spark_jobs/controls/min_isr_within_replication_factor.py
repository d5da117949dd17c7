"""min-isr-within-replication-factor: min.insync.replicas above the replication factor (KIP-579).

Before 3.7 an outage: every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying can't help. Since 3.7 (KAFKA-15583) a
silent downgrade: the leader enforces the number of replicas instead. KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, not
retriable, for acks=all only; no broker does. An unknown release is UNKNOWN, with both readings.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs import target
from spark_jobs.controls import base
from spark_jobs.flagged import Flagged

CONTROL = "min-isr-within-replication-factor"
SEEN = "min_isr_within_replication_factor_worst"
OUTAGE, DOWNGRADE = "outage", "silent-downgrade"

OUTAGE_WORDS = (
    "before Kafka 3.7 every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying is useless"
    " (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR)"
)
DOWNGRADE_WORDS = (
    "since Kafka 3.7 the leader silently enforces the number of replicas instead (those being added included), and acks=all"
    " guarantees no more copies than that (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, and retrying would be useless)"
)
UNKNOWN_WORDS = "the leader's release is unknown: before 3.7 an outage for acks=all, since 3.7 a silent downgrade"
MIXED_WORDS = (
    "; its brokers run releases on both sides of 3.7: the worse reading, an outage, holds when an older one leads"
)


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


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, F.col(SEEN)["min_isr"], F.col(SEEN)["rf"])


def finding() -> Column:
    seen = F.col(SEEN)
    above = seen["min_isr"] > seen["rf"]
    effect = F.when(above, F.when(seen["caps"], DOWNGRADE).when(~seen["caps"], OUTAGE))
    head = base.say(
        "%s: min.insync.replicas=%s is above the replication factor %s; ",
        base.partitions_listed(F.col("min_isr_within_replication_factor_failing")),
        seen["min_isr"],
        seen["rf"],
    )
    tail = F.when(effect == DOWNGRADE, DOWNGRADE_WORDS).when(effect == OUTAGE, OUTAGE_WORDS).otherwise(UNKNOWN_WORDS)
    mixed = F.when(F.col("min_isr_mixed_releases"), MIXED_WORDS).otherwise("")
    either = F.struct(F.lit(OUTAGE).alias("before 3.7"), F.lit(DOWNGRADE).alias("since 3.7"))
    return base.finding(
        CONTROL,
        base.outcome_of(CONTROL),
        category=effect,
        severity=F.when(effect == DOWNGRADE, base.severity_of(CONTROL, DOWNGRADE)).otherwise(
            base.severity_of(CONTROL, OUTAGE)
        ),
        cause=base.min_isr_cause(seen["min_isr_source"]),
        observed=base.as_json(
            min_insync_replicas=seen["min_isr"],
            replication_factor=seen["rf"],
            effect=effect,
            error=F.when(effect == OUTAGE, "NOT_ENOUGH_REPLICAS"),
            proposed_error=F.when(above, "INCONSISTENT_REPLICATION_FACTOR"),
            retriable=F.when(above, F.lit(False)),
            readings=F.when(above & seen["caps"].isNull(), either),
        ),
        required=base.as_json(min_insync_replicas_at_most=seen["rf"]),
        partitions=F.col("min_isr_within_replication_factor_failing"),
        message=F.when(above, F.concat(head, tail, mixed)),
        remediation=target.remedy(),
    )
