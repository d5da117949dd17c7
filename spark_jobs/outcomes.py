"""Every control's outcome on every resource, before waivers and comparison: here stands which control is asked of what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.run.plan import Plan
from spark_jobs import applications, findings, target
from spark_jobs.controls import (
    acked_durability,
    at_min_isr_over_time,
    broker_defaults,
    broker_rack,
    controller_quorum,
    eligible_leader_replicas,
    isr_rack_spread,
    log_dirs,
    min_insync_racks_valid,
    min_insync_replicas,
    min_isr_within_replication_factor,
    partition_health,
    policy_feasible,
    reassignment_leftovers,
    replica_rack_spread,
    replication_factor,
    standby_replicas,
    standby_spread,
    unclean_leader_election,
    write_headroom,
)

TOPIC_CONTROLS = [
    replication_factor,
    min_insync_replicas,
    min_isr_within_replication_factor,
    write_headroom,
    unclean_leader_election,
    replica_rack_spread,
    isr_rack_spread,
]
CONTROLS = [
    *(c.CONTROL for c in TOPIC_CONTROLS),
    acked_durability.CONTROL,
    min_insync_racks_valid.CONTROL,
    partition_health.CONTROL,
    at_min_isr_over_time.CONTROL,
    broker_rack.CONTROL,
    broker_defaults.CONTROL,
    controller_quorum.CONTROL,
    eligible_leader_replicas.CONTROL,
    log_dirs.CONTROL,
    policy_feasible.CONTROL,
    reassignment_leftovers.CONTROL,
    standby_replicas.CONTROL,
    standby_spread.CONTROL,
]
"""Judged per cluster; waiver-expired comes of them."""


def topic_findings(plan: Plan) -> list[Column]:
    """What `of_topics` asks. Names columns alone, so that it can be put together before there are any."""
    health = [*partition_health.findings(), *at_min_isr_over_time.topic_findings(plan)]
    return [*(c.finding() for c in (*TOPIC_CONTROLS, acked_durability, min_insync_racks_valid)), *health]


class Asked(NamedTuple):
    """What is asked of topics and of clusters."""

    topics: list[Column]
    clusters: list[Column]


def asked(plan: Plan) -> Asked:
    return Asked(topic_findings(plan), cluster_findings(plan))


def of_topics(topics: DataFrame, asked: list[Column]) -> DataFrame:
    """Of a row a topic: measured, with its remedy, and with its readings over time where there is anything to look back on.

    Gathered: there are ten of each topic.
    """
    return findings.gathered(topics, "topic", F.col("topic"), asked)


def cluster_findings(plan: Plan) -> list[Column]:
    """What `of_clusters` asks, likewise."""
    last_tier = last_tier_of(plan)
    streams = applications.speaks_of(plan)
    return [
        unclean_leader_election.cluster_finding(),
        partition_health.cluster_finding(),
        *at_min_isr_over_time.cluster_findings(plan),
        controller_quorum.finding(),
        eligible_leader_replicas.finding(target.default_min_isr(last_tier)),
        broker_defaults.finding(last_tier),
        reassignment_leftovers.finding(),
        *(applications.unlisted(c.CONTROL, streams) for c in (standby_replicas, standby_spread) if streams),
    ]


def of_clusters(clusters: DataFrame, asked: list[Column]) -> DataFrame:
    """Of a row a cluster, with its readings over time likewise."""
    return findings.exploded(clusters, "cluster", F.col("cluster"), asked)


def of_brokers(clusters: DataFrame, plan: Plan) -> DataFrame:
    """Of each of the clusters' `brokers`; clusters: with what topics want of them."""
    speaks_of_racks = any(
        t.get("replica_racks") or t.get("min_insync_racks") or t.get("acked_racks") or "rack" in t.get("survive", ())
        for t in plan.policy.tiers.values()
    )
    outcomes = [broker_rack.finding(speaks_of_racks), log_dirs.finding(), min_insync_racks_valid.broker_finding()]
    brokers = clusters.withColumn("b", F.explode("brokers"))
    return findings.exploded(brokers, "broker", F.col("b")["broker"], outcomes)


def of_tiers(clusters: DataFrame, requirements: Column) -> DataFrame:
    """Of each of the clusters' `tiers_used`; requirements: what each tier requires, by its name."""
    required = F.try_element_at(requirements, F.col("tier"))
    tiers = clusters.withColumn("tier", F.explode("tiers_used")).withColumn("required", required)
    return findings.exploded(tiers, "tier", F.col("tier"), [policy_feasible.finding()])


def of_applications(resolved: DataFrame, clusters: DataFrame) -> DataFrame:
    """Of the clusters' Streams applications, rows of `resolved_policy`."""
    groups = applications.applications(resolved, clusters)
    outcomes = [standby_replicas.finding(), standby_spread.finding()]
    return findings.exploded(groups, "application", F.col("resource"), outcomes)


def of_missing(spark: SparkSession, plan: Plan) -> list[DataFrame]:
    """Of the clusters that could not be judged; none if all could."""
    missing = [asdict(s) for s in plan.snapshots if not s.judged]
    return [findings.not_judged(spark, missing, CONTROLS, plan.started_at)] if missing else []


def last_tier_of(plan: Plan) -> dict[str, Any]:
    """What the policy's last tier requires: what holds of a topic that nothing else is said about."""
    return plan.policy.tiers.get(plan.policy.last_tier or "", {})
