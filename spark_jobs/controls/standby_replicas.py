"""standby-replicas: every stateful task of a Streams application has as many standbys as required (num.standby.replicas).

A standby on the process that has the active is no second copy. Where an application has too few instances for what is
required Kafka places as many standbys as there are other instances, and that is still too few. Enough standbys of a task
without an active, or with several, prove nothing: such a placement isn't whole, and nothing is known.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import applications, base

CONTROL = "standby-replicas"


def application_verdicts(plan: Plan) -> list[Column]:
    """Reads `p`, an application's placement."""
    p = F.col("p")
    required = p["standby_replicas"]
    outcome = applications.outcome(
        F.when(p["short_tasks"] > 0, base.FAIL).when(p["not_whole"].isNotNull(), base.UNKNOWN).otherwise(base.PASS),
        F.coalesce(required >= 0, F.lit(False)),
    )
    too_few = p["clients"] <= required
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=F.when(outcome == base.UNKNOWN, "streams-unsettled")
        .when(too_few, "streams-instances")
        .otherwise("configuration:num.standby.replicas"),
        observed={
            "standby_replicas": p["standbys"],
            "stateful_tasks": p["tasks"],
            "clients": p["clients"],
            "tasks": p["short"],
            "more_tasks": p["short_tasks"] - F.size("p.short"),
        },
        required={"standby_replicas": required},
        evidence={
            **applications.evidence(),
            "short_tasks": p["short_tasks"],
            "too_few_clients": too_few,
            "type": p["type"],
            "unknown": F.coalesce(p["unknown"], p["not_whole"]),
        },
    )
    return [verdict]


def cluster_verdicts(plan: Plan) -> list[Column]:
    return applications.unlisted(CONTROL, plan)
