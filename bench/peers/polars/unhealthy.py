"""Partitions with a category of KIP-427 or KIP-1290, one by one, with their causes."""

from __future__ import annotations

import polars as pl

FLAGS = {"offline": "offline", "under": "under-min-isr", "at_min": "at-min-isr", "under_replicated": "under-replicated"}
"""KIP-427's categories, by the column that marks a partition."""
RACK_CATEGORIES = {0: "none", 1: "at-min-rack-isr", 2: "under-min-rack-isr"}
KEY = ["tid", "partition"]
OWN = ("partition", "leader", "replicas", "isr", "elr", "offset")
NAMES = pl.List(pl.String)
c = pl.col


def listed(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """The unhealthy partitions among `rows`."""
    each = _categorised(groups.filter(pl.any_horizontal(*FLAGS) | (c("racked") > 0))).explode("row")
    some = each.with_columns(rows.select(OWN)[each["row"]]).drop("row")
    no_leader, none = pl.lit(["no-leader"], NAMES), pl.lit([], NAMES)
    faulty, lagging = c("faults").list.len() > 0, c("lags").list.len() > 0
    reasons = pl.when("electable").then(no_leader).when(faulty).then("faults")
    return (
        some.join(_reasons(some, brokers), on=KEY, how="left")
        .with_columns(
            (c("offline") | (c("isr_count") == 0) | (c("elr").list.len() > 0)).alias("at_risk"),
            c("out_of_sync").fill_null([]),
            c("missing").fill_null(0),
            reasons.when("offline").then(no_leader).when(lagging).then("lags").otherwise(none).alias("causes"),
        )
        .drop("faults", "lags", "electable", "offset")
    )


def _categorised(groups: pl.DataFrame) -> pl.DataFrame:
    """The columns that are equal for all partitions of a group."""
    few, misplaced = c("racked") == 2, c("kip_span") < c("wanted")
    category = pl.when("offline").then(0).otherwise("racked").replace_strict(RACK_CATEGORIES, return_dtype=pl.String)
    categories = pl.concat_list([pl.when(flag).then(pl.lit(name)) for flag, name in FLAGS.items()]).list.drop_nulls()
    return groups.select(
        *("tid", "row", "rf", "isr_count", "min_isr", "effective", "isr_racks", "at_racks", *FLAGS),
        (c("isr_count") >= c("rf")).alias("whole"),
        categories.alias("categories"),
        category.alias("rack_category"),
        few.alias("few_racks"),
        (few & misplaced).alias("misplaced"),
    )


def _reasons(some: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Columns by partition: replicas out of sync, the bits of lost racks that they are in, brokers that are down, failed or lag,
    and whether a partition without a leader has a replica that could be elected."""
    each = (
        some.filter((c("isr_count") < c("rf")) | c("offline"))
        .select(*KEY, "offline", "leader", "offset", "isr", "elr", c("replicas").alias("id"))
        .explode("id")
        .with_columns(
            c("isr").list.contains(c("id")).alias("synced"),
            c("elr").list.contains(c("id")).alias("eligible"),
            (c("id") + c("offset")).alias("at"),
        )
        .filter(~c("synced") | c("offline"))
        .with_columns(pl.lit(brokers[name]).gather("at").alias(name) for name in ("fault", "lag", "lost", "bit"))
    )
    return each.group_by(KEY, maintain_order=True).agg(
        c("id").filter(~c("synced")).alias("out_of_sync"),
        c("fault").drop_nulls().unique(maintain_order=True).alias("faults"),
        (c("leader").is_null() & (c("synced") | c("eligible")) & c("fault").is_null()).any().alias("electable"),
        c("lag").filter(~c("synced")).alias("lags"),
        c("bit").filter("lost").unique().sum().alias("missing"),
    )
