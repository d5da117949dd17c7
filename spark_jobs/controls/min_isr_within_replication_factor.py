"""min-isr-within-replication-factor: min.insync.replicas above the replication factor (KIP-579).

Before 3.7 an outage: every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying can't help. Since 3.7 (KAFKA-15583)
a silent downgrade: the leader enforces the number of replicas instead. KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR,
not retriable, for acks=all only; no broker does.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base, elr_guard

CONTROL = "min-isr-within-replication-factor"
SEEN = "min_isr_within_replication_factor_worst"


def measures() -> dict[str, Column]:
    gap = F.col("min_isr") - F.col("judged_rf")
    seen = F.struct("min_isr", F.col("judged_rf").alias("rf"), "caps", "min_isr_source")
    return {
        SEEN: F.coalesce(F.max_by(seen, gap), F.first(seen)),
        "min_isr_within_replication_factor_unknown": F.coalesce(F.bool_or(gap.isNull()), F.lit(True)),
        "min_isr_within_replication_factor_failing": partition_ids_above(gap),
        "min_isr_mixed_releases": F.bool_or(
            F.exists("brokers", lambda b: b["caps"]) & F.exists("brokers", lambda b: ~b["caps"])
        ),
    }


def partition_ids_above(gap: Column) -> Column:
    return base.partition_ids(gap > 0)


def outcome() -> Column:
    seen = F.col(SEEN)
    above = seen["min_isr"] > seen["rf"]
    return (
        F.when(above & seen["caps"].isNotNull(), base.FAIL)
        .when(
            above
            | above.isNull()
            | F.coalesce(F.col("min_isr_within_replication_factor_unknown"), F.lit(True))
            | ~F.col("partitions_known"),
            base.UNKNOWN,
        )
        .otherwise(base.PASS)
    )


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, outcome(), F.col(SEEN)["min_isr"], F.col(SEEN)["rf"])


def _message(seen: Column) -> Column:
    head = base.say(
        base.partitions_listed(F.col("min_isr_within_replication_factor_failing")),
        ": min.insync.replicas=",
        seen["min_isr"],
        " is above the replication factor ",
        seen["rf"],
    )
    outage = (
        "; before Kafka 3.7 every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying is useless"
        " (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR)"
    )
    downgrade = base.say(
        "; since Kafka 3.7 the leader silently enforces ",
        seen["rf"],
        " instead, so acks=all guarantees ",
        seen["rf"],
        " copy(ies) (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, and retrying would be useless)",
    )
    unknown = "; the leader's release is unknown: before 3.7 an outage for acks=all, since 3.7 a silent downgrade"
    mixed = F.when(
        F.col("min_isr_mixed_releases"),
        "; its brokers run releases on both sides of 3.7, so the worse reading, an outage, holds once an older one leads",
    ).otherwise("")
    return F.concat(head, F.when(seen["caps"], downgrade).when(~seen["caps"], outage).otherwise(unknown), mixed)


def finding() -> Column:
    seen = F.col(SEEN)
    above = seen["min_isr"] > seen["rf"]
    effect = F.when(above & seen["caps"], "silent-downgrade").when(above & ~seen["caps"], "outage")
    own = seen["min_isr_source"] == "topic"
    return base.finding(
        CONTROL,
        outcome(),
        category=effect,
        severity=F.when(seen["caps"], base.severity_of(CONTROL, "silent-downgrade")).otherwise(
            base.severity_of(CONTROL, "outage")
        ),
        cause=F.when(own, "configuration:topic").otherwise("configuration:cluster-default"),
        observed=base.as_json(
            min_insync_replicas=seen["min_isr"],
            replication_factor=seen["rf"],
            effect=effect,
            error=F.when(effect == "outage", "NOT_ENOUGH_REPLICAS"),
            proposed_error=F.when(above, "INCONSISTENT_REPLICATION_FACTOR"),
            retriable=F.when(above, F.lit(False)),
        ),
        required=base.as_json(min_insync_replicas_at_most=seen["rf"]),
        partitions=F.col("min_isr_within_replication_factor_failing"),
        message=F.when(above, _message(seen)).when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL)),
        remediation=elr_guard.guarded(
            base.say(
                "Raise the replication factor to min.insync.replicas + 1, or lower the setting: ",
                base.topic_config("min.insync.replicas", F.greatest(seen["rf"] - 1, F.lit(1))),
            )
        ),
    )
