"""Streams applications, one row each, as the policy's line for them was judged when the plan was made."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.match import matches
from spark_jobs.frames import base

PLACEMENT = (
    "struct<type:string,standby_replicas:int,rack_aware_tags:array<string>,unknown:string,unread:string,clients:int,tasks:int,"
    "standbys:int,short_tasks:int,short:array<struct<task:string,standbys:int>>,not_whole:string,below_achievable:int,below_ideal:int,"
    "spread:array<struct<task:string,category:string,tags:array<string>,clients:array<string>,achievable:array<string>,"
    "more_achievable:int,better:array<string>>>,undecided:string,limits:array<string>,"
    "losses:array<struct<tag:string,value:string,count:int,tasks:array<string>>>>"
)
"""A judgement of `durability.streams.judgement`; a member that it leaves out is NULL."""


def applications(resolved: DataFrame, clusters: DataFrame) -> DataFrame:
    """The cluster's snapshot, provider, tier, resource (group id) and `p`, its placement, of every Streams application.

    resolved: rows of `resolved_policy`; clusters: the judged ones.
    """
    rows = resolved.where((F.col("resource_type") == "application") & F.col("placement").isNotNull())
    return rows.select("cluster", "resource", "tier", F.from_json("placement", PLACEMENT).alias("p")).join(
        F.broadcast(clusters.select("cluster", "captured_at", "snapshot_id", "provider")), "cluster"
    )


def speaks_of(plan: Plan) -> list[str]:
    """The judged clusters that a line of the policy's `applications` may be about."""
    lines = [a["cluster"] for a in plan.policy.applications]
    return [s.cluster for s in plan.judged if any(c is None or matches(c, s.cluster) for c in lines)]


def unlisted(control: str, plan: Plan) -> list[Column]:
    """UNKNOWN for a cluster whose groups could not all be read, where the policy speaks of its applications.

    Reads `streams_known` of a cluster.
    """
    clusters = speaks_of(plan)
    if not clusters:
        return []
    blind = F.col("cluster").isin(*clusters) & ~F.col("streams_known")
    reason = {base.REASON: F.lit("groups-unlisted")}
    return [base.verdict(control, F.when(blind, base.UNKNOWN), cause="unreadable", evidence=reason)]


def outcome(judged: Column, required: Column) -> Column:
    """The outcome of a Streams control: `judged` where there is something to judge. Reads `p`.

    judged: the outcome of a readable application; required: is anything required of it.
    """
    p = F.col("p")
    return (
        F.when(p["rack_aware_tags"].isNull() | ~required, base.NOT_APPLICABLE)
        .when(p["unknown"].isNotNull(), base.UNKNOWN)
        .when(p["tasks"] == 0, base.NOT_APPLICABLE)
        .otherwise(judged)
    )


def evidence() -> dict[str, Column]:
    """What words need of every application: what was unread of it, and why nothing may be required. Reads `p`."""
    p = F.col("p")
    return {
        "unread": p["unread"],
        "listed": p["rack_aware_tags"].isNotNull(),
        "stateless": F.coalesce(p["tasks"] == 0, F.lit(False)),
    }
