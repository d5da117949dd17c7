"""replication-factor: a partition has fewer replicas than its tier requires.

While a reassignment runs the worse of replicas minus adding and replicas minus removing counts.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "replication-factor"


def required() -> Column:
    return F.col("required")["replication_factor"]


def measures() -> dict[str, Column | Flagged]:
    return base.measure(CONTROL, F.col("judged_rf"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def check() -> Column:
    return base.check(CONTROL, F.col("replication_factor_worst"), required())


def topic_verdicts(plan: Plan) -> list[Column]:
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(target.infeasible(), F.lit("configuration:topic")),
        observed={"replication_factor": F.col("replication_factor_worst")},
        required={"replication_factor": required()},
        evidence={"target": target.evidence()},
        partitions=F.col("replication_factor_failing"),
    )
    return [verdict]
