"""Every control's outcome on every resource, before waivers and comparison.

A frame has one row per resource with all of its outcomes (`verdicts.with_outcomes`). One row per outcome would be ten times as
many, and a plan for each kind of resource that makes them takes longer to make than to run.
"""

from __future__ import annotations

from dataclasses import asdict

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.assemble import verdicts
from spark_jobs.controls import having, rules
from spark_jobs.frames import applications


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
