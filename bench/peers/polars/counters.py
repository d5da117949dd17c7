"""Unhealthy partitions by category: of topics, of clusters, and of the brokers that lead them."""

from __future__ import annotations

import polars as pl

LED = {
    "under_min_isr": "under",
    "at_min_isr": "at_min",
    "under_replicated": "under_replicated",
    "under_min_rack_isr": "narrow",
    "at_min_rack_isr": "narrowest",
}
"""What a broker's own metrics count."""
c = pl.col


def counters(sick: pl.DataFrame, topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """The rows of `health_counters`; a cluster's `out_of_sync` is sorted."""
    flags = sick.select(
        *("topic_no", "leader", "offline", "under", "at_min", "under_replicated"),
        (~c("offline") & (c("racked") == 2)).alias("narrow"),
        (~c("offline") & (c("racked") == 1)).alias("narrowest"),
        (c("at_min") & c("whole")).alias("at_min_isr_by_configuration"),
        (c("under") & c("whole")).alias("under_min_isr_by_configuration"),
        (~c("offline") & (c("racked") == 1) & ~c("at_racks")).alias("at_min_rack_isr_by_placement"),
    )
    by_topic = flags.group_by("topic_no").agg(
        pl.col("offline", "^.*_by_.*$").sum(), *(c(flag).sum().alias(name) for name, flag in LED.items())
    )
    counts = [name for name in by_topic.columns if name != "topic_no"]
    keys = ("cluster", "captured_at", "snapshot_id")
    of_topic = topics.select("topic_no", *keys, "topic", c("partitions").cast(pl.Int64)).join(
        by_topic.with_columns(pl.col(counts).cast(pl.Int64)), on="topic_no", how="left"
    )
    of_cluster = of_topic.group_by(keys).agg(pl.col("partitions", *counts).sum())
    of_cluster = of_cluster.join(_led(flags, topics, brokers), on="cluster", how="left")
    missing = _missing(sick).join(topics.select("topic_no", "cluster"), on="topic_no")
    ids = c("id").alias("out_of_sync")
    by_cluster = missing.select("cluster", "id").unique().group_by("cluster").agg(ids.sort())
    listed = of_topic.filter(c("offline").is_not_null())
    rows = [
        listed.join(missing.group_by("topic_no").agg(ids), on="topic_no", how="left").drop("topic_no"),
        of_cluster.join(_lost(brokers), on="cluster", how="left").join(by_cluster, on="cluster", how="left"),
    ]
    none = pl.lit(0, pl.Int64)
    return pl.concat(rows, how="diagonal").with_columns(
        none.alias("unknown"), none.alias("rack_unknown"), c("out_of_sync").fill_null([])
    )


def _missing(sick: pl.DataFrame) -> pl.DataFrame:
    """The brokers missing from a topic's partitions, in their order; an offline partition misses all of its replicas."""
    short = sick.filter(c("offline") | c("out_of_sync").is_not_null())
    ids = pl.when("offline").then("replicas").otherwise("out_of_sync").alias("id")
    return short.sort("topic_no", "partition").select("topic_no", ids).explode("id").unique(maintain_order=True)


def _led(flags: pl.DataFrame, topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """By cluster what the metrics of its brokers count."""
    counts = [c(flag).sum().cast(pl.Int64).alias(name) for name, flag in LED.items()]
    led = (
        flags.filter(~c("offline"))
        .join(topics.select("topic_no", "cluster"), on="topic_no")
        .group_by("cluster", c("leader").alias("broker"))
        .agg(counts)
        .join(brokers.select("cluster", "broker", "rack", "live"), on=["cluster", "broker"])
        .sort("cluster", "broker")
    )
    entry = pl.struct("broker", "rack", "live", *LED, pl.lit(0, pl.Int64).alias("unknown"))
    return led.group_by("cluster", maintain_order=True).agg(entry.alias("brokers"))


def _lost(brokers: pl.DataFrame) -> pl.DataFrame:
    """By cluster the racks all of whose brokers are down."""
    of_rack = (
        brokers.filter(c("lost").is_not_null())
        .sort("cluster", "lost", "broker")
        .group_by("cluster", c("lost").alias("rack"), maintain_order=True)
        .agg(c("broker").alias("brokers"))
    )
    return of_rack.group_by("cluster", maintain_order=True).agg(pl.struct("rack", "brokers").alias("lost_racks"))
