"""Streams applications, one row each. `durability.streams.judgement` evaluates their placement while the plan is made."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.match import matches
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain

PLACEMENT = (
    "struct<type:string,standby_replicas:int,rack_aware_tags:array<string>,unknown:string,unread:string,clients:int,tasks:int,"
    "standbys:int,short_tasks:int,short:array<struct<task:string,standbys:int>>,not_whole:string,below_achievable:int,below_ideal:int,"
    "spread:array<struct<task:string,category:string,tags:array<string>,clients:array<string>,achievable:array<string>,"
    "more_achievable:int,better:array<string>>>,undecided:string,limits:array<string>,"
    "losses:array<struct<tag:string,value:string,count:int,tasks:array<string>>>>"
)
"""A result of `durability.streams.judgement`. Members that it omits are NULL."""


def applications(resolved: DataFrame, clusters: DataFrame) -> DataFrame:
    """One row per Streams application: its cluster's snapshot and provider, tier, resource (group id), and placement `p`.

    resolved: rows of `resolved_policy`.
    clusters: the evaluated ones.
    """
    rows = resolved.where((F.col("resource_type") == "application") & F.col("placement").isNotNull())
    return rows.select("cluster", "resource", "tier", F.from_json("placement", PLACEMENT).alias("p")).join(
        F.broadcast(clusters.select(*base.SNAPSHOT, "provider")), "cluster"
    )


def unlisted(control: str, plan: Plan) -> list[Column]:
    """UNKNOWN for a cluster whose groups could not all be read, if a line of the policy's `applications` may apply to it.

    Reads `streams_known` of a cluster.
    """
    lines = [a["cluster"] for a in plan.policy.applications]
    clusters = [s.cluster for s in plan.judged if any(c is None or matches(c, s.cluster) for c in lines)]
    if not clusters:
        return []
    outcome = F.when(F.col("cluster").isin(*clusters) & ~F.col("streams_known"), base.UNKNOWN)
    return [base.verdict(control, outcome, cause="unreadable", evidence={base.REASON: F.lit("groups-unlisted")})]


def outcome(judged: Column, required: Column) -> Column:
    """The outcome of a Streams control. Reads `p`.

    judged: the outcome of a readable application with stateful tasks.
    required: does the policy require anything of it?
    """
    p = F.col("p")
    return (
        F.when(p["rack_aware_tags"].isNull() | ~required, base.NOT_APPLICABLE)
        .when(p["unknown"].isNotNull(), base.UNKNOWN)
        .when(p["tasks"] == 0, base.NOT_APPLICABLE)
        .otherwise(judged)
    )


def evidence() -> dict[str, Column]:
    """What could not be read of an application, and why nothing may be required of it. Reads `p`."""
    p = F.col("p")
    return {
        "unread": p["unread"],
        "listed": p["rack_aware_tags"].isNotNull(),
        "stateless": certain(p["tasks"] == 0),
    }
