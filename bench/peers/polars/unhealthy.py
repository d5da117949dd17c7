"""Partitions with a category of KIP-427 or KIP-1290, the causes, and what follows for their topics."""

from __future__ import annotations

import polars as pl

from bench.peers.verdicts import CATEGORIES, CLI_DIFFERS

KEY = ["topic_no", "partition"]
OWN = ("partition", "leader", "replicas", "isr", "elr", "offset")
KEPT = (
    *("topic_no", "row", "rf", "isr_count", "min_isr", "effective", "isr_racks", "racked", "min_insync_racks"),
    *("at_racks", "kip_span", "whole", "categories", "rack_category", "acks_all_error", "with_racks", *CATEGORIES),
)
ONLY_SHOWN = ("categories", "rack_category", "acks_all_error", "with_racks", "replicas", "isr", "elr")
"""What no verdict needs once the row of `partition_health` is written."""
RACK_CATEGORIES = {0: "none", 1: "at-min-rack-isr", 2: "under-min-rack-isr"}
c = pl.col


def listed(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """The unhealthy partitions among `rows`, one by one, with `causes` and what they miss."""
    sick = c("offline") | c("under") | c("at_min") | c("under_replicated") | (c("racked") > 0)
    each = _categorised(groups.filter(sick)).select(KEPT).explode("row")
    some = each.with_columns(rows.select(OWN)[each["row"]]).drop("row")
    why = _why(some, brokers)
    return (
        some.drop("offset")
        .join(why, on=KEY, how="left")
        .with_columns(
            (c("offline") | (c("isr_count") == 0) | (c("elr").list.len() > 0)).alias("at_risk"),
            pl.when(c("downs").list.len() > 0)
            .then("downs")
            .when(c("lags").list.len() > 0)
            .then("lags")
            .when("offline")
            .then(pl.lit(["no-leader"], pl.List(pl.String)))
            .otherwise(pl.lit([], pl.List(pl.String)))
            .alias("causes"),
        )
        .drop("downs", "lags")
    )


def _why(some: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Replicas out of sync by partition, the lost racks they are in, and what is down or lagging."""
    each = (
        some.filter((c("isr_count") < c("rf")) | c("offline"))
        .select(*KEY, "offline", "offset", "isr", c("replicas").alias("id"))
        .explode("id")
        .with_columns(c("isr").list.contains(c("id")).alias("synced"), (c("id") + c("offset")).alias("at"))
        .filter(~c("synced") | c("offline"))
        .with_columns(pl.lit(brokers[name]).gather("at").alias(name) for name in ("down", "lag", "lost"))
    )
    return each.group_by(KEY, maintain_order=True).agg(
        c("id").filter(~c("synced")).alias("out_of_sync"),
        c("down").drop_nulls().unique(maintain_order=True).alias("downs"),
        c("lag").filter(~c("synced")).alias("lags"),
        c("lost").drop_nulls().unique(maintain_order=True).alias("missing_racks"),
    )


def _categorised(groups: pl.DataFrame) -> pl.DataFrame:
    """Columns that are equal for all partitions of a group."""
    error = pl.when("offline").then(pl.lit("LEADER_NOT_AVAILABLE")).when("under").then(pl.lit("NOT_ENOUGH_REPLICAS"))
    racks = pl.when(c("racked") == 2).then(pl.lit("NOT_ENOUGH_RACKS")).otherwise(pl.lit("NONE"))
    category = pl.when("offline").then(0).otherwise("racked").replace_strict(RACK_CATEGORIES, return_dtype=pl.String)
    names = pl.concat_list([pl.when(flag).then(pl.lit(name)) for flag, name in CATEGORIES.items()])
    return groups.with_columns(
        (c("isr_count") >= c("rf")).alias("whole"),
        names.list.drop_nulls().alias("categories"),
        category.alias("rack_category"),
        error.otherwise(pl.lit("NONE")).alias("acks_all_error"),
        error.otherwise(racks).alias("with_racks"),
    )


def health(sick: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """The rows of `partition_health`."""
    keys = ("cluster", "captured_at", "snapshot_id", "topic")
    return sick.join(topics.select("topic_no", *keys), on="topic_no").select(
        *(*keys, "partition", "categories"),
        (c("at_min") & c("whole")).alias("by_configuration"),
        *("leader", "replicas", "isr", "elr"),
        c("min_isr").alias("min_insync_replicas"),
        c("effective").alias("effective_min_insync_replicas"),
        c("rf").alias("replication_factor"),
        c("out_of_sync").fill_null([]),
        c("causes").list.join(", ").alias("cause"),
        pl.sql_expr(CLI_DIFFERS).alias("cli_differs"),
        pl.lit(True).alias("categories_known"),
        *("isr_racks", "min_insync_racks", "rack_category"),
        ((c("rack_category") == "at-min-rack-isr") & ~c("at_racks")).alias("rack_by_placement"),
        "acks_all_error",
        c("with_racks").alias("acks_all_kip_1290_error"),
    )


def of_topics(sick: pl.DataFrame) -> pl.DataFrame:
    """By topic_no: whether a change of min.insync.replicas could cost a leader, and why its ISRs are on too few racks."""
    under, misplaced = c("racked") == 2, c("kip_span") < c("min_insync_racks")
    by_placement = (under & misplaced).any() & ~(under & ~misplaced & (c("causes").list.len() > 0)).any()
    measures = sick.group_by("topic_no").agg(
        c("at_risk").any().alias("elr_at_risk"), by_placement.alias("isr_misplaced")
    )
    few = sick.lazy().filter((under & ~misplaced) | c("at_racks"))
    causes = dominant(few).rename({"causes": "rack_causes"}).collect()
    return measures.join(causes, on="topic_no", how="left")


def dominant(some: pl.LazyFrame) -> pl.LazyFrame:
    """By topic_no `causes`: what is down, or else all causes of its partitions, as one text."""
    each = (
        some.filter(c("causes").list.len() > 0)
        .select("topic_no", "causes")
        .explode("causes")
        .unique()
        .with_columns(c("causes").str.ends_with(" down").alias("is_down"))
        .with_columns(c("is_down").any().over("topic_no").alias("any_down"))
    )
    chosen = each.filter(c("is_down") | ~c("any_down")).sort("topic_no", "causes")
    return chosen.group_by("topic_no").agg(c("causes").str.join(", "))


def by_category(sick: pl.LazyFrame, flag: str) -> pl.LazyFrame:
    """By topic_no of the partitions in one category: `shrunk`, `whole`, `causes`, and `h_isr`, `h_rf` of the smallest ISR."""
    some, least = sick.filter(flag), c("isr_count").cast(pl.Int64) * 256 + c("rf")
    measures = some.group_by("topic_no").agg(
        (~c("whole").all()).alias("shrunk"),
        c("whole").all(),
        (least.min() // 256).cast(pl.Int32).alias("h_isr"),
        (least.min() % 256).cast(pl.Int32).alias("h_rf"),
    )
    return measures.join(dominant(some), on="topic_no", how="left")


def outages(sick: pl.DataFrame) -> pl.DataFrame:
    """By topic_no: lost racks with replicas of the topic, and its partitions that are below a threshold for them."""
    touched = sick.filter(c("missing_racks").list.len() > 0)
    few, narrow = c("under"), ~c("offline") & (c("racked") == 2)
    racks = touched.select("topic_no", c("missing_racks").alias("racks_lost")).explode("racks_lost").unique()
    return (
        touched.group_by("topic_no")
        .agg(
            few.sum().cast(pl.Int32).alias("hurt_replicas"),
            c("isr_count").filter(few).min().alias("least_replicas"),
            narrow.sum().cast(pl.Int32).alias("hurt_racks"),
            c("isr_racks").filter(narrow).min().alias("least_racks"),
        )
        .join(racks.sort("racks_lost").group_by("topic_no", maintain_order=True).agg("racks_lost"), on="topic_no")
    )
