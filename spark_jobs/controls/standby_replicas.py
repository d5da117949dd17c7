"""standby-replicas: a stateful task of a Streams application has fewer standbys than required (num.standby.replicas).

A standby on the process of the active task is no second copy. With too few instances, Kafka places as many standbys as there are
other instances, which is still too few. If a task has no active task, or several, its standbys may not be second copies: the
outcome is UNKNOWN.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import applications, base
from spark_jobs.frames.columns import certain

CONTROL = "standby-replicas"


def application_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `p`, an application's placement."""
    p = F.col("p")
    required = p["standby_replicas"]
    outcome = applications.outcome(
        F.when(p["short_tasks"] > 0, base.FAIL).when(p["not_whole"].isNotNull(), base.UNKNOWN).otherwise(base.PASS),
        required=certain(required >= 0),
    )
    too_few_clients = p["clients"] <= required
    yield base.verdict(
        CONTROL,
        outcome,
        cause=F.when(outcome == base.UNKNOWN, "streams-unsettled")
        .when(too_few_clients, "streams-instances")
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
            "too_few_clients": too_few_clients,
            "type": p["type"],
            "unknown": F.coalesce(p["unknown"], p["not_whole"]),
        },
        evidence_of=base.NOT_PASSED,
    )


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    return applications.unlisted(CONTROL, plan)
