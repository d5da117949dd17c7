"""min-insync-replicas: the min ISR that a leader enforces, whichever broker leads, is below what the tier requires.

Since Kafka 3.7 a leader enforces min(min.insync.replicas, replicas); see `spark_jobs.frames.effective_min_isr`.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged
from spark_jobs.frames.partition_minimum import PartitionMinimum

CONTROL = "min-insync-replicas"
RULE = PartitionMinimum(CONTROL, "acked_effective_min_isr", key="min_insync_replicas")
outcome, check = RULE.outcome, RULE.check


def measures() -> dict[str, Column | Flagged]:
    effective = F.col(RULE.value)
    fields = F.struct(F.col("acked_min_isr").alias("min_isr"), "min_isr_source", effective.alias("effective"))
    missing = effective - F.coalesce(RULE.of_partition, F.lit(0))
    return RULE.measures() | {
        "min_insync_replicas_at_worst": base.at_worst_partition(fields, missing, or_unknown=True),
    }


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    worst = F.col("min_insync_replicas_at_worst")
    # The setting is high enough, but the number of replicas limits it.
    limited = worst["min_isr"] >= RULE.required
    cause = F.when(limited, "configuration:topic").otherwise(base.min_isr_cause(worst["min_isr_source"]))
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(target.infeasible(), cause),
        observed={
            "min_insync_replicas": worst["min_isr"],
            "effective_min_insync_replicas": worst["effective"],
            "source": worst["min_isr_source"],
        },
        required={"min_insync_replicas": RULE.required},
        evidence={"target": F.col(target.TARGET), **base.unknown_apart_from_observers()},
        partitions=RULE.failing,
    )
