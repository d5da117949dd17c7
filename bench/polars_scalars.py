"""The findings of topics whose controls compare one number, worded, as `bench.in_polars` writes them."""

from __future__ import annotations

import polars as pl

from bench.polars_rows import by_min_isr, infeasible, placement, worded
from bench.polars_target import place
from bench.polars_words import INFEASIBLE, cluster_config, in_quotes, json_object, partitions, quoted, topic_config
from durability.policy.catalogue import severity_of

OUTAGE = (
    "before Kafka 3.7 every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying is useless"
    " (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR)"
)
DOWNGRADE = (
    "since Kafka 3.7 the leader silently enforces the number of replicas instead (those being added included), and acks=all"
    " guarantees no more copies than that (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, and retrying would be useless)"
)
UNCLEAN = (
    "unclean leader election is on (from {}): a replica out of sync may become leader, and what acks=all acknowledged"
    " is lost"
)
c = pl.col


def replication_factor(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    return worded(
        topics,
        "replication-factor",
        "o_rf",
        observed=json_object({"replication_factor": c("rf_worst")}),
        required=json_object({"replication_factor": c("replication_factor")}),
        cause=pl.coalesce(infeasible(), pl.lit("configuration:topic")),
        ids=c("few_replicas"),
        message=pl.format(
            "{}: replication factor {}, {} required by tier {}",
            *(partitions("few_replicas"), "rf_worst", "replication_factor", "tier"),
        ),
        remediation=c("remedy"),
    )


def min_insync_replicas(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    limited = pl.when(c("min_isr") >= c("min_insync_replicas")).then(pl.lit("configuration:topic"))
    return worded(
        topics,
        "min-insync-replicas",
        "o_min_isr",
        observed=json_object(
            {
                "min_insync_replicas": c("min_isr"),
                "effective_min_insync_replicas": c("effective"),
                "source": in_quotes(c("min_isr_source")),
            }
        ),
        required=json_object({"min_insync_replicas": c("min_insync_replicas")}),
        cause=pl.coalesce(infeasible(), limited, by_min_isr()),
        ids=c("few_in_sync"),
        message=pl.format(
            "{}: effective min.insync.replicas {}, {} required by tier {} (configured {}, from {})",
            *(partitions("few_in_sync"), "effective", "min_insync_replicas", "tier", "min_isr", "min_isr_source"),
        ),
        remediation=c("remedy"),
    )


def min_isr_within_replication_factor(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    control, above = "min-isr-within-replication-factor", c("min_isr") > c("rf_worst")
    outage = above & ~c("caps")

    def either(of_outage: str, of_downgrade: str) -> pl.Expr:
        return pl.when("caps").then(pl.lit(of_downgrade)).otherwise(pl.lit(of_outage))

    effect = either("outage", "silent-downgrade")
    return worded(
        topics,
        control,
        "o_gap",
        observed=json_object(
            {
                "min_insync_replicas": c("min_isr"),
                "replication_factor": c("rf_worst"),
                "effect": pl.when(above).then(in_quotes(effect)),
                "error": pl.when(outage).then(quoted("NOT_ENOUGH_REPLICAS")),
                "proposed_error": pl.when(above).then(quoted("INCONSISTENT_REPLICATION_FACTOR")),
                "retriable": pl.when(above).then(pl.lit("false")),
                "readings": pl.lit("null"),
            }
        ),
        required=json_object({"min_insync_replicas_at_most": c("rf_worst")}),
        category=effect,
        severity=either(severity_of(control, "outage"), severity_of(control, "silent-downgrade")),
        cause=by_min_isr(),
        ids=c("above"),
        message=pl.format(
            "{}: min.insync.replicas={} is above the replication factor {}; {}",
            *(partitions("above"), "min_isr", "rf_worst", either(OUTAGE, DOWNGRADE)),
        ),
        remediation=c("remedy"),
    )


def write_headroom(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    above = pl.when(c("min_isr") > c("room_rf")).then(by_min_isr())
    return worded(
        topics,
        "write-headroom",
        "o_room",
        observed=json_object({"write_headroom": c("headroom")}),
        required=json_object({"write_headroom": c("write_headroom")}),
        cause=pl.coalesce(infeasible(), above, pl.lit("configuration:topic")),
        ids=c("no_room"),
        message=pl.format(
            "{}: broker losses with acks=all writes still accepted: {}, {} required"
            " (replication factor {}, effective min.insync.replicas {})",
            *(partitions("no_room"), "headroom", "write_headroom", "room_rf", "room_effective"),
        ),
        remediation=c("remedy"),
    )


def unclean_leader_election(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    setting, source = "unclean.leader.election.enable", c("unclean_source").fill_null("controller")
    own = source == "topic"
    by_default = pl.lit("configuration:cluster-default")
    return worded(
        topics,
        "unclean-leader-election",
        "o_unclean",
        observed=json_object({"unclean_leader_election": c("unclean"), "source": in_quotes(source)}),
        required=json_object({"unclean_leader_election": pl.when("forbids").then(pl.lit("false"))}),
        cause=pl.when(own).then(pl.lit("configuration:topic")).otherwise(by_default),
        message=pl.format(UNCLEAN, source),
        remediation=pl.when(own).then(topic_config(setting, "false")).otherwise(cluster_config(setting, "false")),
    )


def replica_rack_spread(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    return worded(
        topics,
        "replica-rack-spread",
        "o_racks",
        observed=json_object({"replica_racks": pl.when(c("replica_racks").is_not_null()).then("span")}),
        required=json_object({"replica_racks": c("replica_racks")}),
        cause=pl.when(c("replica_racks") > c("racks")).then(INFEASIBLE).otherwise(placement()),
        ids=c("few_racks"),
        message=pl.format(
            "{}: replicas span {} of the {} racks that tier {} requires",
            *(partitions("few_racks"), "span", "replica_racks", "tier"),
        ),
        remediation=place(),
    )


ALL = (
    *(replication_factor, min_insync_replicas, min_isr_within_replication_factor, write_headroom),
    *(unclean_leader_election, replica_rack_spread),
)
