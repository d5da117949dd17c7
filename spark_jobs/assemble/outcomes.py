"""Every control's outcome on every resource, before waivers and comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.assemble import verdicts
from spark_jobs.controls import having, rules
from spark_jobs.frames import applications


class Asked(NamedTuple):
    """What is asked of topics and of clusters: columns that name others, put together before there are any."""

    topics: list[Column]
    clusters: list[Column]


def asked(plan: Plan) -> Asked:
    return Asked(_of("topic", plan), _of("cluster", plan))


def _of(resource_type: str, plan: Plan) -> list[Column]:
    """What all rules that judge such resources ask of one."""
    name = f"{resource_type}_verdicts"
    return [verdict for rule in having(name) for verdict in getattr(rule, name)(plan)]


def of_topics(topics: DataFrame, asked: list[Column]) -> DataFrame:
    """Of a row a topic: measured, with its target, and with its readings over time where there is anything to look back on.

    Gathered: there are ten of each topic.
    """
    return verdicts.gathered(topics, "topic", F.col("topic"), asked)


def of_clusters(clusters: DataFrame, asked: list[Column]) -> DataFrame:
    """Of a row a cluster, with its readings over time likewise."""
    return verdicts.exploded(clusters, "cluster", F.col("cluster"), asked)


def of_brokers(clusters: DataFrame, plan: Plan) -> DataFrame:
    """Of each of the clusters' `brokers`; clusters: with what topics want of them."""
    brokers = clusters.withColumn("b", F.explode("brokers"))
    return verdicts.exploded(brokers, "broker", F.col("b")["broker"], _of("broker", plan))


def of_tiers(clusters: DataFrame, requirements: Column, plan: Plan) -> DataFrame:
    """Of each of the clusters' `tiers_used`; requirements: what each tier requires, by its name."""
    required = F.try_element_at(requirements, F.col("tier"))
    tiers = clusters.withColumn("tier", F.explode("tiers_used")).withColumn("required", required)
    return verdicts.exploded(tiers, "tier", F.col("tier"), _of("tier", plan))


def of_applications(resolved: DataFrame, clusters: DataFrame, plan: Plan) -> DataFrame:
    """Of the clusters' Streams applications, rows of `resolved_policy`."""
    groups = applications.applications(resolved, clusters)
    return verdicts.exploded(groups, "application", F.col("resource"), _of("application", plan))


def of_missing(spark: SparkSession, plan: Plan) -> list[DataFrame]:
    """Of the clusters that could not be judged; none if all could."""
    missing = [asdict(s) for s in plan.snapshots if not s.judged]
    return [verdicts.not_judged(spark, missing, list(rules()), plan.started_at)] if missing else []
