"""`python -m bench.peers.polars inputs.json folder`: measures partitions with Polars; see `bench.peers.program`.

It also relies on this: a replica is out of sync if its broker is down.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from operator import add
from pathlib import Path

import duckdb
import polars as pl

from bench.peers.polars import acks, unhealthy
from bench.peers.polars.racks import SLOTS, layouts
from bench.peers.program import Files, run
from bench.peers.topics import MEASURES, NEVER

AT_ONCE = 20
"""The number of clusters' files in memory at once."""
PLACE = 2**32
"""Above the number of any row."""
NEEDED = ("cluster", "topic", "partition", "leader", "replicas", "isr", "elr")
OF_TOPIC = (
    *("tid", "min_isr", "caps", "replication_factor", "min_insync_replicas", "write_headroom"),
    *("replica_racks", "min_insync_racks", "wanted", "acked_copies", "acked_racks"),
)
c = pl.col


def measure(db: duckdb.DuckDBPyConnection, inputs: Files) -> None:
    """Make the tables of `topics.MEASURES`."""
    # `slot`: see `bench.peers.polars.racks`.
    brokers = db.sql("SELECT *, (bit ** 4)::BIGINT AS slot FROM broker_facts ORDER BY place").pl()
    topics = db.sql("SELECT *, base - 1 AS offset FROM topic_facts").pl()
    files, parts = inputs["partitions"], []
    for start in range(0, len(files), AT_ONCE):
        rows = read(files[start : start + AT_ONCE], topics, brokers)
        groups = grouped(rows, topics)
        listed = unhealthy.listed(groups, rows, brokers)
        parts.append((listed, measured(groups, rows), acks.worst(groups, rows, brokers)))
    for name, frames in zip(MEASURES, zip(*parts, strict=True), strict=True):
        db.register("frame", pl.concat(frames).to_arrow())
        db.execute(f"CREATE TEMP TABLE {name} AS FROM frame")


def read(files: list[str], topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """One row per partition of some clusters. `held` and `isr_held`: see `bench.peers.polars.racks`."""
    rows = (
        pl.scan_parquet(files)
        .select(NEEDED)
        .join(topics.lazy().select("cluster", "topic", "tid", "offset"), on=["cluster", "topic"])
        .drop("cluster", "topic")
        .with_row_index("row")
        .collect()
    )
    leading = pl.lit(brokers["live"]).gather(c("leader") + c("offset"))
    rows = rows.with_columns((~leading.fill_null(False)).alias("offline"), _held("replicas", rows, brokers))
    # Most ISRs are equal to the replicas.
    short = rows.filter(c("isr").list.len() < c("replicas").list.len())
    of_isr = short.select(_held("isr", short, brokers)).to_series()
    return rows.with_columns(rows["held"].clone().scatter(short["row"], of_isr).alias("isr_held"))


def _held(lists: str, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.Expr:
    """The number of the listed brokers in each rack."""
    width = rows.select(c(lists).list.len().max()).item() or 0
    slots = [
        pl.lit(brokers["slot"]).gather(c(lists).list.get(n, null_on_oob=True) + c("offset")).fill_null(0)
        for n in range(width)
    ]
    return reduce(add, slots, pl.lit(0, pl.Int64)).alias("held")


def grouped(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Groups of a topic's partitions whose replicas and ISRs are on equal racks. `row` lists them, `first` is the lowest one.

    There are far fewer groups than partitions, and no rule distinguishes the partitions of one group.
    """
    place = c("partition").cast(pl.Int64) * PLACE + c("row")
    groups = rows.group_by("tid", "held", "isr_held", "offline").agg(
        pl.len().cast(pl.Int64).alias("count"), "row", place.min().alias("first")
    )
    known = layouts(pl.concat([rows["held"], rows["isr_held"].rename("held")]))
    of_isr = known.select(c("held").alias("isr_held"), c("kip_span").alias("isr_racks"), c("size").alias("isr_count"))
    return _counted(
        groups.with_columns((c("first") // PLACE).cast(pl.Int32), (c("first") % PLACE).alias("first_row"))
        .join(topics.select(OF_TOPIC), on="tid")
        .join(known.rename({"size": "rf"}), on="held")
        .join(of_isr, on="isr_held")
    )


def _counted(groups: pl.DataFrame) -> pl.DataFrame:
    fits = c("min_isr") <= c("rf")
    return (
        groups.with_columns(
            pl.when(fits | ~c("caps")).then("min_isr").otherwise("rf").alias("effective"),
            pl.when(fits).then("min_isr").when("caps").then("rf").otherwise(0).alias("copies"),
            pl.when(c("isr_racks") < c("wanted"))
            .then(pl.lit(2))
            .when(c("isr_racks") == c("wanted"))
            .then(1)
            .otherwise(0)
            .cast(pl.Int8)
            .alias("racked"),
        )
        .with_columns(
            (~c("offline") & (c("isr_count") < c("effective"))).alias("under"),
            (~c("offline") & (c("isr_count") == c("effective"))).alias("at_min"),
            (~c("offline") & (c("isr_count") < c("rf"))).alias("under_replicated"),
            # The worst ISR has first the replicas without a rack, then those in the fullest racks.
            reduce(add, [(c("copies") > c(slot)).cast(pl.Int32) for slot in SLOTS]).alias("racks_worst"),
            ((c("racked") == 1) & (c("isr_count") < c("rf")) & (c("kip_span") > c("min_insync_racks"))).alias(
                "at_racks"
            ),
        )
        .with_columns(
            (
                (c("copies") < c("acked_copies")).fill_null(False)
                | (c("racks_worst") < c("acked_racks")).fill_null(False)
            ).alias("short")
        )
        .with_columns(acks.order().alias("order"))
    )


FAILING = {
    "few_replicas": c("rf") < c("replication_factor"),
    "few_in_sync": c("effective") < c("min_insync_replicas"),
    "above": c("min_isr") > c("rf"),
    "no_headroom": c("rf") - c("effective") < c("write_headroom"),
    "few_racks": c("span") < c("replica_racks"),
    "short": c("short"),
    "above_rf": c("rf") < c("min_insync_racks"),
    "above_span": c("kip_span") < c("min_insync_racks"),
}
"""The condition for partitions that fall short, by the column that lists them."""


def measured(groups: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """One row per topic: the worst values of its partitions, and the partitions that fall short."""
    headroom, racks = c("rf") - c("effective"), c("acked_racks")
    held = pl.concat_list(SLOTS).list.get(racks - 1, null_on_oob=True)
    copies = pl.max_horizontal("acked_copies", "acked_racks")
    measures = groups.group_by("tid").agg(
        c("count").sum().cast(pl.Int32).alias("partitions"),
        *(c(name).min() for name in ("rf", "effective", "span", "isr_racks")),
        headroom.min().alias("headroom"),
        c("rf").sort_by(headroom, "first").first().alias("headroom_rf"),
        pl.when(c("span") >= racks).then(held + 1).otherwise(NEVER).max().alias("smallest"),
        ((c("most_0") == 0) & (c("span") >= racks) & (c("rf") >= copies)).fill_null(False).all().alias("would_do"),
    )
    flags = groups.select("tid", "row", *(test.fill_null(False).alias(n) for n, test in FAILING.items()))
    some = flags.filter(pl.any_horizontal(*FAILING)).explode("row")
    some = some.with_columns(pl.lit(rows["partition"]).gather("row").alias("partition")).sort("tid", "partition")
    for name in FAILING:
        ids = some.filter(name).group_by("tid", maintain_order=True).agg(c("partition").alias(name))
        measures = measures.join(ids, on="tid", how="left")
    return measures


if __name__ == "__main__":
    run(measure, json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
