"""Every control's outcome on every resource, before waivers and comparison.

A frame has one row per resource with all of its outcomes (`verdicts.with_outcomes`). One row per outcome would be ten times as
many, and a plan for each kind of resource that makes them takes longer to make than to run.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.plan.inventory import Inventory
from durability.plan.plan import Plan
from durability.policy.inventory import INVENTORY
from spark_jobs.assemble import verdicts
from spark_jobs.controls import having, inventory_coverage, rules
from spark_jobs.frames import applications
from spark_jobs.frames.literals import literal

LISTED = ",".join(
    [
        *(f"{name}:boolean" for name in ("audited", "listed", "certain")),
        *("owner:string", "environment:string", "sources:array<string>", "other_names:array<string>"),
    ]
)
"""The columns of a cluster that `inventory-coverage` reads."""


def expressions(resource_type: str, plan: Plan) -> list[Column]:
    """The verdicts of all rules for resources of this type. They refer to columns by name, so no frame is needed yet."""
    name = f"{resource_type}_verdicts"
    return [verdict for rule in having(name) for verdict in getattr(rule, name)(plan)]


def of_topics(topics: DataFrame, expressions: list[Column]) -> DataFrame:
    """Outcomes of topics.

    topics: measured, with their targets, and with readings over time if the lake has earlier snapshots.
    """
    return verdicts.with_outcomes(topics, "topic", F.col("topic"), expressions)


def of_clusters(clusters: DataFrame, expressions: list[Column]) -> DataFrame:
    """Outcomes of clusters. clusters: with readings over time if the lake has earlier snapshots."""
    return verdicts.with_outcomes(clusters, "cluster", F.col("cluster"), expressions)


def of_brokers(clusters: DataFrame, plan: Plan) -> DataFrame:
    """Outcomes of each cluster's `brokers`. clusters: as `facts.with_wants` returns them."""
    brokers = clusters.withColumn("b", F.explode("brokers"))
    return verdicts.with_outcomes(brokers, "broker", F.col("b")["broker"], expressions("broker", plan))


def of_tiers(clusters: DataFrame, requirements: Column, plan: Plan) -> DataFrame:
    """Outcomes of each cluster's `tiers_used`. requirements: a map from a tier's name to its requirements."""
    required = F.try_element_at(requirements, F.col("tier"))
    tiers = clusters.withColumn("tier", F.explode("tiers_used")).withColumn("required", required)
    return verdicts.with_outcomes(tiers, "tier", F.col("tier"), expressions("tier", plan))


def of_applications(resolved: DataFrame, clusters: DataFrame, plan: Plan) -> DataFrame:
    """Outcomes of the clusters' Streams applications. resolved: rows of `resolved_policy`."""
    groups = applications.applications(resolved, clusters)
    return verdicts.with_outcomes(groups, "application", F.col("resource"), expressions("application", plan))


def of_missing(spark: SparkSession, plan: Plan) -> list[DataFrame]:
    """UNKNOWN for each control of clusters without an accepted snapshot, as one frame. Empty list if there are none."""
    missing = [asdict(s) for s in plan.snapshots if not s.judged]
    return [verdicts.not_judged(spark, missing, list(rules()), plan.started_at)] if missing else []


def of_inventory(spark: SparkSession, plan: Plan, inventory: Inventory) -> DataFrame:
    """Outcomes of inventories, and of the clusters in them or in the fleet. Without an inventory there is no row.

    A cluster that isn't audited has no snapshot. Its verdict has the time of the run.
    """
    sources = [
        {"cluster": INVENTORY, "name": s.name, "clusters": s.clusters, "reason": s.reason} for s in inventory.sources
    ]
    of_sources = _of_fleet(spark, plan, sources, "name:string,clusters:int,reason:string")
    clusters = _of_fleet(spark, plan, _clusters(inventory) if sources else [], LISTED)
    unread = {"unread": F.lit(len(inventory.unread))}
    return verdicts.with_outcomes(
        of_sources, "inventory", F.col("name"), list(inventory_coverage.inventory_verdicts(plan))
    ).unionByName(
        verdicts.with_outcomes(
            clusters.withColumns(unread), "cluster", F.col("cluster"), list(inventory_coverage.listed_verdicts(plan))
        )
    )


def _clusters(inventory: Inventory) -> list[dict[str, Any]]:
    """A row for each cluster in an inventory or in the fleet: LISTED. Inventories may list one under several names."""
    found: dict[str, dict[str, Any]] = {}
    for listed in inventory.clusters:
        stated = {**asdict(listed), "cluster": listed.cluster or listed.id, "listed": True}
        row = found.setdefault(stated["cluster"], {**stated, "audited": listed.cluster is not None})
        row["certain"] = row["certain"] or listed.certain
    everywhere = [source.name for source in inventory.sources]
    for name in inventory.unlisted:
        found[name] = {"cluster": name, "audited": True, "listed": False, "certain": True, "sources": everywhere}
    return [found[name] for name in sorted(found)]


def _of_fleet(spark: SparkSession, plan: Plan, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    """`rows` with the columns of a snapshot: that of the cluster in this run, else the time of the run alone."""
    parts = {part.cluster: part for part in plan.snapshots}
    with_snapshot = [
        {
            **row,
            "captured_at": (part.captured_at if part else None) or plan.latest,
            "snapshot_id": part.snapshot_id if part else None,
        }
        for row in rows
        for part in [parts.get(row["cluster"])]
    ]
    members = f"cluster:string,captured_at:timestamp,snapshot_id:string,{schema}"
    frame = spark.range(1).select(F.inline(literal(with_snapshot, f"array<struct<{members}>>")))
    return frame.withColumn("provider", F.lit("self"))
