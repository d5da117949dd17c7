"""`python -m bench.peers.polars inputs.json folder`; see `bench.peers.compare`.

The program relies on what the DuckDB program relies on, and on this: a replica is out of sync if its broker is down.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from operator import add
from pathlib import Path

import polars as pl

from bench.peers.polars import acks, targets, unhealthy
from bench.peers.polars.counters import counters
from bench.peers.polars.racks import SLOTS, layouts
from bench.peers.polars.topics import cluster_table, outcomes, posture, topic_table
from bench.peers.polars.verdicts import verdicts

AT_ONCE = 20
"""Clusters' files that are in memory together."""
PLACE = 2**32
"""Above the number of any row."""
NEEDED = ("cluster", "topic", "partition", "leader", "replicas", "isr", "elr")
OF_TOPIC = (
    *("topic_no", "min_isr", "caps", "replication_factor", "min_insync_replicas", "write_headroom"),
    *("replica_racks", "min_insync_racks", "acked_copies", "acked_racks"),
)
c = pl.col


def broker_table(files: list[str]) -> pl.DataFrame:
    """One row per broker, by cluster and id; `offset`: the row where its cluster's brokers begin."""
    version = c("kafka_version").str.split(".").list.eval(pl.element().cast(pl.Int32))
    mates = ["cluster", "rack"]
    down, disk = c("offline_log_dirs").fill_null(0) > 0, pl.lit("disk-offline")
    lost = c("rack").is_not_null() & ~c("live").any().over(mates)
    return (
        pl.scan_parquet(files)
        .select(
            *("cluster", "broker", "rack", "live"),
            pl.format("broker:{} {}", "broker", pl.when(down).then(disk).otherwise(pl.lit("lagging"))).alias("lag"),
            c("configs").map.get("min.insync.replicas").cast(pl.Int32).alias("min_isr"),
            c("config_sources").map.get("min.insync.replicas").alias("source"),
            (version.list.get(0) * 1000 + version.list.get(1) >= 3007).alias("caps"),
        )
        .sort("cluster", "broker")
        .with_row_index("row")
        .with_columns(
            c("row").min().over("cluster").cast(pl.Int64).alias("offset"),
            pl.when(c("rack").is_null()).then(0).otherwise(c("rack").rank("dense").over("cluster")).alias("rack_no"),
            pl.when(lost).then("rack").alias("lost"),
            pl.when(~c("live"))
            .then(
                pl.when(lost & (pl.len().over(mates) > 1))
                .then(pl.format("rack:{} down", "rack"))
                .otherwise(pl.format("broker:{} down", "broker"))
            )
            .alias("down"),
        )
        .with_columns(pl.lit(16, pl.Int64).pow(c("rack_no")).cast(pl.Int64).alias("slot"))
        .collect()
    )


def read(files: list[str], topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """One row per partition of some clusters; `held` and `isr_held`: see `bench.peers.polars.racks`."""
    rows = (
        pl.scan_parquet(files)
        .select(NEEDED)
        .join(topics.lazy().select("cluster", "topic", "topic_no", "offset"), on=["cluster", "topic"])
        .drop("cluster", "topic")
        .with_row_index("row")
        .collect()
    )
    leading = pl.lit(brokers["live"]).gather(c("leader") + c("offset"))
    rows = rows.with_columns((~leading.fill_null(False)).alias("offline"), _held("replicas", rows, brokers))
    # Most ISRs are the replicas.
    short = rows.filter(c("isr").list.len() < c("replicas").list.len())
    of_isr = short.select(_held("isr", short, brokers)).to_series()
    return rows.with_columns(rows["held"].clone().scatter(short["row"], of_isr).alias("isr_held"))


def _held(lists: str, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.Expr:
    """How many of the listed brokers are in each rack."""
    width = rows.select(c(lists).list.len().max()).item() or 0
    slots = [
        pl.lit(brokers["slot"]).gather(c(lists).list.get(n, null_on_oob=True) + c("offset")).fill_null(0)
        for n in range(width)
    ]
    return reduce(add, slots, pl.lit(0, pl.Int64)).alias("held")


def grouped(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Groups of a topic's partitions whose replicas and ISRs are on equal racks: `row` lists them, `first` is the lowest one.

    They are far fewer, and no rule distinguishes the partitions of one group.
    """
    place = c("partition").cast(pl.Int64) * PLACE + c("row")
    groups = rows.group_by("topic_no", "held", "isr_held", "offline").agg(
        pl.len().cast(pl.Int64).alias("count"), "row", place.min().alias("first")
    )
    known = layouts(pl.concat([rows["held"], rows["isr_held"].rename("held")]))
    of_isr = known.select(c("held").alias("isr_held"), c("kip_span").alias("isr_racks"), c("size").alias("isr_count"))
    return _counted(
        groups.with_columns((c("first") // PLACE).cast(pl.Int32), (c("first") % PLACE).alias("first_row"))
        .join(topics.select(OF_TOPIC), on="topic_no")
        .join(known.rename({"size": "rf"}), on="held")
        .join(of_isr, on="isr_held")
    )


def _counted(groups: pl.DataFrame) -> pl.DataFrame:
    fits, wanted = c("min_isr") <= c("rf"), pl.when(c("min_insync_racks") > 1).then("min_insync_racks")
    return (
        groups.with_columns(
            pl.when(fits | ~c("caps")).then("min_isr").otherwise("rf").alias("effective"),
            pl.when(fits).then("min_isr").when("caps").then("rf").otherwise(0).alias("copies"),
            pl.when(c("isr_racks") < wanted)
            .then(pl.lit(2))
            .when(c("isr_racks") == wanted)
            .then(1)
            .otherwise(0)
            .cast(pl.Int8)
            .alias("racked"),
        )
        .with_columns(
            (~c("offline") & (c("isr_count") < c("effective"))).alias("under"),
            (~c("offline") & (c("isr_count") == c("effective"))).alias("at_min"),
            (~c("offline") & (c("isr_count") < c("rf"))).alias("under_replicated"),
            # The worst ISR has the replicas without a rack first, then those in the fullest racks.
            reduce(add, [(c("copies") > c(slot)).cast(pl.Int32) for slot in SLOTS]).alias("racks_worst"),
            ((c("racked") == 1) & (c("isr_count") < c("rf")) & (c("kip_span") > c("min_insync_racks"))).alias(
                "at_racks"
            ),
        )
        .with_columns(
            (
                (c("copies") < c("acked_copies")).fill_null(False)
                | (c("racks_worst") < c("acked_racks")).fill_null(False)
            ).alias("short"),
            (~c("offline") & (c("min_isr") > c("rf"))).alias("inconsistent"),
            (~c("offline") & ~c("under") & (c("racked") == 2)).alias("few_racks_answer"),
        )
        .with_columns(acks.order().alias("order"))
    )


FAILING = {
    "few_replicas": c("rf") < c("replication_factor"),
    "few_in_sync": c("effective") < c("min_insync_replicas"),
    "above": c("min_isr") > c("rf"),
    "no_headroom": c("rf") - c("effective") < c("write_headroom"),
    "few_racks": c("span") < c("replica_racks"),
    "under_racks": c("racked") == 2,
    "at_racks": c("at_racks"),
    "short": c("short"),
    "above_rf": c("rf") < c("min_insync_racks"),
    "above_span": c("kip_span") < c("min_insync_racks"),
    "f_offline": c("offline"),
    "f_under": c("under"),
    "f_at_min": c("at_min"),
    "f_under_replicated": c("under_replicated"),
}
"""Which partitions fail, by the column that lists them."""


def measured(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """One row per topic: the worst values of its partitions, and which of them fail."""
    headroom = c("rf") - c("effective")

    def counted(test: pl.Expr) -> pl.Expr:
        return c("count").filter(test).sum()

    measures = groups.group_by("topic_no").agg(
        c("count").sum().cast(pl.Int32).alias("partitions"),
        c("rf").min(),
        c("effective").min(),
        headroom.min().alias("headroom"),
        # The replicas of the first partition with the least headroom.
        ((headroom.cast(pl.Int64) + 64) * 2**48 + c("first").cast(pl.Int64) * 2**16 + c("rf"))
        .min()
        .mod(2**16)
        .cast(pl.Int32)
        .alias("headroom_rf"),
        c("span").min(),
        c("isr_racks").min(),
        counted(c("offline")).alias("n_offline"),
        counted(c("under")).alias("n_under"),
        counted(c("inconsistent")).alias("n_inconsistent"),
        counted(c("under") & ~c("inconsistent")).alias("n_few"),
        counted(c("few_racks_answer") & ~c("inconsistent")).alias("n_few_racks"),
    )
    flags = groups.select("topic_no", "row", *(test.fill_null(False).alias(n) for n, test in FAILING.items()))
    some = flags.filter(pl.any_horizontal(*FAILING)).explode("row")
    some = some.with_columns(pl.lit(rows["partition"]).gather("row").alias("partition"))
    some = some.sort("topic_no", "partition")
    for name in FAILING:
        ids = some.filter(name).group_by("topic_no", maintain_order=True).agg(c("partition").alias(name))
        measures = measures.join(ids, on="topic_no", how="left")
    return measures.join(acks.worst(groups, rows, brokers), on="topic_no")


def run(inputs: dict[str, list[str]], folder: Path) -> None:
    """inputs: files by table; writes health, posture, verdicts and counters.parquet."""
    brokers = broker_table(inputs["brokers"])
    clusters = cluster_table(inputs["clusters"], brokers)
    topics = topic_table(inputs, clusters)
    listed, measures = [], []
    for start in range(0, len(inputs["partitions"]), AT_ONCE):
        rows = read(inputs["partitions"][start : start + AT_ONCE], topics, brokers)
        groups = grouped(rows, topics)
        listed.append(unhealthy.listed(groups, rows, brokers))
        measures.append(measured(groups, rows, brokers))
    sick, measured_topics = pl.concat(listed), topics.join(pl.concat(measures), on="topic_no")
    unhealthy.health(sick, topics).write_parquet(folder / "health.parquet")
    counters(sick, measured_topics, brokers).write_parquet(folder / "counters.parquet")
    sick = sick.drop(unhealthy.ONLY_SHOWN)
    judged = outcomes(measured_topics, unhealthy.of_topics(sick))
    aimed = targets.aimed(judged, brokers)
    posture(aimed, sick).write_parquet(folder / "posture.parquet")
    verdicts(aimed, sick).write_parquet(folder / "verdicts.parquet")


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
