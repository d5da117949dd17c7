"""min-isr-within-replication-factor: min.insync.replicas is above the replication factor (KIP-579).

Before Kafka 3.7 that is an outage: every acks=all write fails with NOT_ENOUGH_REPLICAS, and retries fail, too. Since 3.7
(KAFKA-15583) it is a silent downgrade: the leader enforces the number of replicas instead. KIP-579 proposes to answer acks=all
writes with INCONSISTENT_REPLICATION_FACTOR, which isn't retriable. No broker does that yet. If the release is unknown, the
outcome is UNKNOWN, with both readings.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import possible
from spark_jobs.frames.flagged import Flagged

CONTROL = "min-isr-within-replication-factor"
WORST = "min_isr_within_replication_factor_worst"
OUTAGE, DOWNGRADE = "outage", "silent-downgrade"


def measures() -> dict[str, Column | Flagged]:
    # Another leader may have another value.
    excess = F.when(F.col("acked_min_isr").isNotNull(), F.col("min_isr") - F.col("judged_rf"))
    fields = F.struct("min_isr", F.col("judged_rf").alias("rf"), "caps", "min_isr_source")
    # The worst partition: an outage, then a downgrade, then an unknown release, each by the largest excess.
    above = F.when(~F.col("caps"), 3).when(F.col("caps"), 2).otherwise(1)
    weight = F.when(excess > 0, above).when(excess.isNotNull(), 0)
    order = F.struct(F.coalesce(weight, F.lit(-1)), F.coalesce(excess, F.lit(0)), -F.col("partition"))
    return {
        WORST: F.max_by(fields, order),
        "min_isr_within_replication_factor_unknown": possible(F.bool_or(excess.isNull())),
        "min_isr_within_replication_factor_failing": base.partition_ids(excess > 0),
        "min_isr_mixed_releases": F.bool_or("mixed_releases"),
    }


def outcome() -> Column:
    worst = F.col(WORST)
    above = worst["min_isr"] > worst["rf"]
    unknown = possible("min_isr_within_replication_factor_unknown") | ~F.col("partitions_known")
    return (
        F.when(above & worst["caps"].isNotNull(), base.FAIL)
        .when(above | above.isNull() | unknown, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def check() -> Column:
    return base.check(CONTROL, F.col(WORST)["min_isr"], F.col(WORST)["rf"])


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    worst = F.col(WORST)
    above = worst["min_isr"] > worst["rf"]
    effect = F.when(above, F.when(worst["caps"], DOWNGRADE).when(~worst["caps"], OUTAGE))
    either = F.struct(F.lit(OUTAGE).alias("before 3.7"), F.lit(DOWNGRADE).alias("since 3.7"))
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=effect,
        cause=base.min_isr_cause(worst["min_isr_source"]),
        observed={
            "min_insync_replicas": worst["min_isr"],
            "replication_factor": worst["rf"],
            "effect": effect,
            "error": F.when(effect == OUTAGE, "NOT_ENOUGH_REPLICAS"),
            "proposed_error": F.when(above, "INCONSISTENT_REPLICATION_FACTOR"),
            "retriable": F.when(above, F.lit(False)),
            "readings": F.when(above & worst["caps"].isNull(), either),
        },
        required={"min_insync_replicas_at_most": worst["rf"]},
        evidence={
            "mixed_releases": F.col("min_isr_mixed_releases"),
            "target": F.col(target.TARGET),
            **base.unknown_because(),
        },
        partitions=F.col("min_isr_within_replication_factor_failing"),
    )
