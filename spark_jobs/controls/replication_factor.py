"""replication-factor: a partition has fewer replicas than its tier requires.

While a reassignment runs the worse of replicas minus adding and replicas minus removing counts.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs import target
from spark_jobs.controls import base
from spark_jobs.flagged import Flagged

CONTROL = "replication-factor"


def required() -> Column:
    return F.col("required")["replication_factor"]


def measures() -> dict[str, Column | Flagged]:
    return base.measure(CONTROL, F.col("judged_rf"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, F.col("replication_factor_worst"), required())


def finding() -> Column:
    worst, failing = F.col("replication_factor_worst"), F.col("replication_factor_failing")
    return base.finding(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(target.infeasible(), F.lit("configuration:topic")),
        observed=base.as_json(replication_factor=worst),
        required=base.as_json(replication_factor=required()),
        partitions=failing,
        message=base.say(
            "%s: replication factor %s, %s required by tier %s",
            base.partitions_listed(failing),
            worst,
            required(),
            F.col("tier"),
        ),
        remediation=target.remedy(),
    )
