"""Partitions with a category of KIP-427's or KIP-1290's, why, and what is said of their topics."""

from __future__ import annotations

from functools import reduce

import polars as pl

KEY = ["topic_no", "partition"]
FLAGS = {
    "offline": "offline",
    "under": "under-min-isr",
    "at_min": "at-min-isr",
    "under_replicated": "under-replicated",
}
OWN = ("partition", "leader", "replicas", "isr", "elr", "offset")
KEPT = (
    *("topic_no", "row", *FLAGS, "rf", "isr_count", "min_isr", "effective", "isr_racks", "racked", "min_insync_racks"),
    *("at_racks", "kip_span", "whole", "cli_differs", "categories", "rack_category", "acks_all_error", "with_racks"),
)
TOLD = ("categories", "rack_category", "acks_all_error", "with_racks", "replicas", "isr", "elr")
"""What nobody asks of a sick partition once its row is written."""
RACK_CATEGORIES = {0: "none", 1: "at-min-rack-isr", 2: "under-min-rack-isr"}
c = pl.col


def listed(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """The sick partitions among `rows`, one by one, with `causes` and what they miss."""
    sick = c("offline") | c("under") | c("at_min") | c("under_replicated") | (c("racked") > 0)
    each = _worded(groups.filter(sick)).select(KEPT).explode("row")
    some = each.with_columns(rows.select(OWN)[each["row"]]).drop("row")
    why = _why(some, brokers)
    return (
        some.drop("offset")
        .join(why, on=KEY, how="left")
        .join(_isr_names(some, brokers), on=KEY, how="left")
        .with_columns(
            (c("offline") | (c("isr_count") == 0) | (c("elr").list.len() > 0)).alias("at_risk"),
            pl.when(c("downs").list.len() > 0)
            .then("downs")
            .when(c("lags").list.len() > 0)
            .then("lags")
            .when("offline")
            .then(pl.lit(["no leader elected"], pl.List(pl.String)))
            .otherwise(pl.lit([], pl.List(pl.String)))
            .alias("causes"),
        )
        .drop("downs", "lags")
    )


def _why(some: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Of partitions that miss replicas: which, in which lost racks, and what is down or else lags."""
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
        c("id").filter(c("down").is_not_null()).alias("down_ids"),
    )


def _isr_names(some: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Of partitions under or at the minimum of racks: the racks that their ISR spans, by name, in order."""
    each = (
        some.filter(c("racked") > 0)
        .select(*KEY, "offset", "isr", c("replicas").alias("id"))
        .explode("id")
        .filter(c("isr").list.contains(c("id")))
        .with_columns(pl.lit(brokers["rack"]).gather(c("id") + c("offset")).alias("rack"))
    )
    names = c("rack").drop_nulls().unique().sort().str.join(", ")
    return each.group_by(KEY, maintain_order=True).agg(names.alias("isr_names"))


def _worded(groups: pl.DataFrame) -> pl.DataFrame:
    """What is the same of all that stand alike."""
    error = pl.when("offline").then(pl.lit("LEADER_NOT_AVAILABLE")).when("under").then(pl.lit("NOT_ENOUGH_REPLICAS"))
    racks = pl.when(c("racked") == 2).then(pl.lit("NOT_ENOUGH_RACKS")).otherwise(pl.lit("NONE"))
    category = pl.when("offline").then(0).otherwise("racked").replace_strict(RACK_CATEGORIES, return_dtype=pl.String)
    names = pl.concat_list([pl.when(flag).then(pl.lit(name)) for flag, name in FLAGS.items()])
    return groups.with_columns(
        (c("isr_count") >= c("rf")).alias("whole"),
        names.list.drop_nulls().alias("categories"),
        _cli_differs().alias("cli_differs"),
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
        "cli_differs",
        pl.lit(True).alias("categories_known"),
        *("isr_racks", "min_insync_racks", "rack_category"),
        ((c("rack_category") == "at-min-rack-isr") & ~c("at_racks")).alias("rack_by_placement"),
        "acks_all_error",
        c("with_racks").alias("acks_all_kip_1290_error"),
    )


def _cli_differs() -> pl.Expr:
    """Where kafka-topics, which compares what is configured and counts leaderless partitions, shows a partition otherwise."""
    raw, isr, effective = c("min_isr"), c("isr_count"), c("effective")
    under = pl.format(
        "kafka-topics lists it under --under-min-isr-partitions: it compares the configured {}, brokers since 3.7 enforce {}",
        raw,
        effective,
    )
    left_out = pl.lit("kafka-topics leaves it out of --at-min-isr-partitions for the same reason")
    leaderless = pl.lit(
        "kafka-topics counts leaderless partitions under --under-min-isr-partitions, and where their ISR fits under"
        " --under-replicated-partitions and (without ELR) --at-min-isr-partitions"
    )
    said = pl.concat_str(
        pl.when((raw > effective) & (isr >= effective) & (isr < raw)).then(under),
        pl.when((raw != effective) & (isr == effective)).then(left_out),
        separator="; ",
        ignore_nulls=True,
    )
    return pl.when("offline").then(leaderless).when(said != "").then(said)


def of_topics(sick: pl.DataFrame) -> pl.DataFrame:
    """By topic_no: whether a change of min.insync.replicas could cost a leader, the brokers down that hold replicas, and what
    is said of racks."""
    of_topic = sick.group_by("topic_no").agg(c("at_risk").any().alias("elr_at_risk"))
    downs = sick.filter(c("down_ids").list.len() > 0).select("topic_no", "down_ids").explode("down_ids").unique()
    held = downs.sort("topic_no", "down_ids").group_by("topic_no").agg(c("down_ids").alias("replicas_down"))
    return of_topic.join(held, on="topic_no", how="left").join(_in_racks(sick), on="topic_no", how="left")


def _in_racks(sick: pl.DataFrame) -> pl.DataFrame:
    """What isr-rack-spread says of topics with partitions under or at the minimum of racks."""
    some = sick.filter((c("racked") == 2) | c("at_racks"))
    under, placed = c("racked") == 2, c("kip_span") < c("min_insync_racks")
    error = (
        pl.when("offline")
        .then(pl.lit("LEADER_NOT_AVAILABLE"))
        .when("under")
        .then(pl.lit("NOT_ENOUGH_REPLICAS"))
        .otherwise(pl.lit("NOT_ENOUGH_RACKS"))
    )
    measures = some.group_by("topic_no").agg(
        ((under & placed).any() & ~(under & ~placed & (c("causes").list.len() > 0)).any()).alias("rack_by_placement"),
        error.filter(under).unique().alias("rack_errors"),
    )
    causes = dominant(some.lazy().filter(~(under & placed))).rename({"causes": "rack_causes"}).collect()
    fewest = sick.filter(c("racked") > 0).sort("topic_no", "isr_racks", "partition")
    names = fewest.group_by("topic_no").agg(c("isr_names").first().fill_null(""))
    return measures.join(causes, on="topic_no", how="left").join(names, on="topic_no")


def dominant(some: pl.LazyFrame) -> pl.LazyFrame:
    """By topic_no `causes`: what is down, else all that its partitions name, as one text; none where nothing is named."""
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
    """By topic_no what is said of its partitions of one category: `shrunk`, `whole`, `causes`, those of the smallest ISR, and
    where kafka-topics differs."""
    some = sick.filter(flag)
    numbers = ("isr_count", "rf", "min_isr", "effective")
    packed = reduce(lambda so_far, name: so_far * 256 + c(name).cast(pl.Int64), numbers, pl.lit(0, pl.Int64))
    measures = some.group_by("topic_no").agg(
        (~c("whole").all()).alias("shrunk"), c("whole").all(), packed.min().alias("least")
    )
    cli = (
        some.select("topic_no", c("cli_differs").alias("cli"))
        .drop_nulls()
        .unique()
        .sort("topic_no", "cli")
        .group_by("topic_no")
        .agg(c("cli").str.join("; "))
    )
    least = [(c("least") // 256 ** (3 - n) % 256).cast(pl.Int32).alias(f"h_{name}") for n, name in enumerate(numbers)]
    told = measures.with_columns(least).drop("least")
    return told.join(dominant(some), on="topic_no", how="left").join(cli, on="topic_no", how="left")


def outages(sick: pl.DataFrame) -> pl.DataFrame:
    """By topic_no: the lost racks it misses, and its partitions that are under a threshold for that."""
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
