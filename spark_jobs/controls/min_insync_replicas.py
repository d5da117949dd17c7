"""min-insync-replicas: the min ISR that the leader really enforces is below what the tier requires.

Effective since 3.7: min(min.insync.replicas, replicas); see `spark_jobs.frames.effective_min_isr`.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "min-insync-replicas"


def required() -> Column:
    return F.col("required")["min_insync_replicas"]


def measures() -> dict[str, Column | Flagged]:
    effective = F.col("effective_min_isr")
    seen = F.struct("min_isr", "min_isr_source", effective.alias("effective"))
    return {
        **base.measure(CONTROL, effective, required()),
        "min_insync_replicas_seen": base.of_the_least(seen, effective, or_unknown=True),
    }


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def check() -> Column:
    return base.check(CONTROL, F.col("min_insync_replicas_worst"), required())


def topic_verdicts(plan: Plan) -> list[Column]:
    seen = F.col("min_insync_replicas_seen")
    limited = seen["min_isr"] >= required()
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(
            target.infeasible(),
            F.when(limited, "configuration:topic").otherwise(base.min_isr_cause(seen["min_isr_source"])),
        ),
        observed={
            "min_insync_replicas": seen["min_isr"],
            "effective_min_insync_replicas": seen["effective"],
            "source": seen["min_isr_source"],
        },
        required={"min_insync_replicas": required()},
        evidence={"target": target.evidence()},
        partitions=F.col("min_insync_replicas_failing"),
    )
    return [verdict]
