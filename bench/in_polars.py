"""The same partition health, counters, posture and findings of topics in Polars; see `bench.in_duckdb`, and what that knows.

`python -m bench.in_polars inputs.json folder`. Beside that it knows that the brokers of a made-up cluster run one release with
the same settings, that a replica is out of sync where a broker is down, and that no name holds what a shell or JSON would read.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from operator import add
from pathlib import Path

import polars as pl

from bench import polars_acks, polars_sick, polars_target
from bench.polars_counters import counters
from bench.polars_findings import findings
from bench.polars_racks import SLOTS, layouts
from bench.polars_topics import cluster_table, outcomes, posture, topic_table

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
    """A row a broker, by cluster and id; `offset` in each: where its cluster's brokers begin."""
    version = c("kafka_version").str.split(".").list.eval(pl.element().cast(pl.Int32))
    mates = ["cluster", "rack"]
    down, disk = c("offline_log_dirs").fill_null(0) > 0, pl.lit("log dir offline")
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
    """A row a partition of some clusters; `held` and `isr_held`: see `polars_racks`."""
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
    """How many of the listed brokers stand in each rack."""
    width = rows[lists].list.len().max() or 0
    slots = [
        pl.lit(brokers["slot"]).gather(c(lists).list.get(n, null_on_oob=True) + c("offset")).fill_null(0)
        for n in range(width)
    ]
    return reduce(add, slots, pl.lit(0, pl.Int64)).alias("held")


def judged(rows: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """The partitions of a topic that stand alike in racks, and so do their ISRs, in one row: `row` lists them, `first` is the
    least of them. They are far fewer, and no rule tells those in one apart."""
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
            # The worst ISR is drawn from those in no rack, then from the racks that hold most.
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
        .with_columns(polars_acks.order().alias("order"))
    )


FAILING = {
    "few_replicas": c("rf") < c("replication_factor"),
    "few_in_sync": c("effective") < c("min_insync_replicas"),
    "above": c("min_isr") > c("rf"),
    "no_room": c("rf") - c("effective") < c("write_headroom"),
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
"""Partitions by what they fail."""


def measured(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """A row a topic: the worst of its partitions, and which fail."""
    room = c("rf") - c("effective")

    def counted(test: pl.Expr) -> pl.Expr:
        return c("count").filter(test).sum()

    measures = groups.group_by("topic_no").agg(
        c("count").sum().cast(pl.Int32).alias("partitions"),
        c("rf").min().alias("rf_worst"),
        c("effective").min(),
        room.min().alias("headroom"),
        # Of the first partition with least room its replicas.
        ((room.cast(pl.Int64) + 64) * 2**48 + c("first").cast(pl.Int64) * 2**16 + c("rf"))
        .min()
        .mod(2**16)
        .alias("room_rf"),
        c("span").min(),
        c("isr_racks").min().alias("isr_racks_worst"),
        c("isr_count").filter(~c("offline")).min().alias("isr_least"),
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
    return (
        measures.with_columns(c("room_rf").cast(pl.Int32))
        .with_columns((c("room_rf") - c("headroom")).alias("room_effective"))
        .join(polars_acks.worst(groups, rows, brokers), on="topic_no")
    )


def run(inputs: dict, folder: Path) -> None:
    """inputs: files by table, and the tiers; writes health.parquet, posture.parquet, findings.parquet and counters.parquet."""
    brokers = broker_table(inputs["brokers"])
    clusters = cluster_table(inputs["clusters"], brokers)
    topics = topic_table(inputs, clusters)
    listed, measures = [], []
    for start in range(0, len(inputs["partitions"]), AT_ONCE):
        rows = read(inputs["partitions"][start : start + AT_ONCE], topics, brokers)
        groups = judged(rows, topics)
        listed.append(polars_sick.listed(groups, rows, brokers))
        measures.append(measured(groups, rows, brokers))
    sick, measured_topics = pl.concat(listed), topics.join(pl.concat(measures), on="topic_no")
    polars_sick.health(sick, topics).write_parquet(folder / "health.parquet")
    counters(sick, measured_topics, brokers).write_parquet(folder / "counters.parquet")
    sick = sick.drop(polars_sick.TOLD)
    of_topic = outcomes(measured_topics, polars_sick.of_topics(sick))
    of_topic = outcomes(topics.join(pl.concat(measures), on="topic_no"), polars_sick.of_topics(sick))
    aimed = polars_target.aimed(of_topic, brokers)
    posture(aimed, sick).write_parquet(folder / "posture.parquet")
    findings(polars_target.remedied(aimed), sick).write_parquet(folder / "findings.parquet")


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
