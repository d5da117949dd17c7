"""The same partition health, posture and findings of topics in Polars: see `bench.in_duckdb`, whose knowledge it shares.

`python -m bench.in_polars inputs.json folder`
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from operator import or_
from pathlib import Path

import polars as pl

from bench.polars_topics import findings, outcomes, posture

AT_ONCE = 20
"""Clusters' files that are in memory together."""
KEYS = (
    *("replication_factor", "min_insync_replicas", "write_headroom", "replica_racks", "min_insync_racks"),
    *("acked_copies", "acked_racks"),
)
KEY = ["topic_no", "partition"]
NEEDED = ("cluster", "topic", "partition", "leader", "replicas", "isr", "elr")
c = pl.col


def broker_table(files: list[str]) -> pl.DataFrame:
    """A row a broker, by cluster and id; `offset` in each: where its cluster's brokers begin."""
    version = c("kafka_version").str.split(".").list.eval(pl.element().cast(pl.Int32))
    mates = ["cluster", "rack"]
    return (
        pl.scan_parquet(files)
        .select(
            "cluster",
            "broker",
            "rack",
            "live",
            (c("offline_log_dirs").fill_null(0) > 0).alias("disk"),
            _config("min.insync.replicas").fill_null("1").cast(pl.Int32).alias("own"),
            (version.list.get(0) * 1000 + version.list.get(1) >= 3007).alias("caps"),
        )
        .sort("cluster", "broker")
        .with_row_index("row")
        .with_columns(
            c("row").min().over("cluster").cast(pl.Int64).alias("offset"),
            pl.when(c("rack").is_null()).then(0).otherwise(c("rack").rank("dense").over("cluster")).alias("rack_no"),
            pl.when(c("rack").is_not_null() & (pl.len().over(mates) > 1) & ~c("live").any().over(mates))
            .then(pl.format("rack:{} down", "rack"))
            .otherwise(pl.format("broker:{} down", "broker"))
            .alias("down"),
            pl.format(
                "broker:{} {}", "broker", pl.when("disk").then(pl.lit("log dir offline")).otherwise(pl.lit("lagging"))
            ).alias("lag"),
        )
        .with_columns(
            pl.when(~c("live")).then("down").alias("down"),
            pl.when(c("rack_no") > 0)
            .then(pl.lit(2, pl.Int64).pow(c("rack_no")))
            .otherwise(0)
            .cast(pl.Int64)
            .alias("bit"),
        )
        .collect()
    )


def _config(key: str) -> pl.Expr:
    """A setting's value as stated."""
    return c("configs").map.get(key)


def topic_table(inputs: dict, brokers: pl.DataFrame) -> pl.DataFrame:
    """A row a topic with its tier's requirements and what is known of its cluster."""
    unclean = [
        {"tier": name, "forbids": stated.get("unclean_leader_election") is False}
        for name, stated in inputs["tiers"].items()
    ]
    tiers = pl.DataFrame(
        [{"tier": name, **{key: stated.get(key) for key in KEYS}} for name, stated in inputs["tiers"].items()],
        schema={"tier": pl.String, **dict.fromkeys(KEYS, pl.Int32)},
    ).join(pl.DataFrame(unclean), on="tier")
    resolved = (
        pl.scan_parquet(inputs["resolved"])
        .filter(c("resource_type") == "topic")
        .select("cluster", c("resource").alias("topic"), "tier")
    )
    clusters = brokers.group_by("cluster").agg(
        c("offset").first(),
        c("rack").n_unique().alias("racks"),
        c("rack").is_null().any().alias("unracked"),
        c("rack").is_null().all().alias("none"),
    )
    clusters = clusters.with_columns((c("racks") - c("unracked").cast(pl.UInt32)).cast(pl.Int32).alias("racks"))
    return (
        pl.scan_parquet(inputs["topics"])
        .select(
            "cluster",
            "topic",
            "internal",
            _config("min.insync.replicas").cast(pl.Int32).alias("own_min_isr"),
            (_config("unclean.leader.election.enable").fill_null("false") == "true").alias("unclean"),
        )
        .collect()
        .join(resolved.collect(), on=["cluster", "topic"], how="left")
        .join(tiers, on="tier", how="left")
        .join(clusters, on="cluster")
        .with_row_index("topic_no")
    )


def judged(files: list[str], topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """A row a partition of some clusters."""
    rows = pl.scan_parquet(files).select(NEEDED).join(topics.lazy(), on=["cluster", "topic"], how="inner").collect()
    width = rows["replicas"].list.len().max() or 1

    def at(ids: pl.Expr, what: str) -> pl.Expr:
        """The brokers' `what`, by their row numbers."""
        return pl.lit(brokers[what]).gather(ids)

    def each(lists: str) -> list[pl.Expr]:
        return [c(lists).list.get(n, null_on_oob=True) + c("offset") for n in range(width)]

    def any_bits(lists: str) -> pl.Expr:
        return reduce(or_, [at(ids, "bit").fill_null(0) for ids in each(lists)])

    def unracked(lists: str) -> pl.Expr:
        return pl.any_horizontal([(at(ids, "bit") == 0).fill_null(False) for ids in each(lists)])

    leading = c("leader") + c("offset")
    rows = rows.with_columns(
        c("replicas").list.len().cast(pl.Int32).alias("rf"),
        c("isr").list.len().cast(pl.Int32).alias("isr_count"),
        (~at(leading, "live").fill_null(False)).alias("offline"),
        pl.coalesce(
            "own_min_isr", at(leading, "own"), pl.min_horizontal([at(i, "own") for i in each("replicas")])
        ).alias("min_isr"),
        at(leading, "caps")
        .fill_null(pl.any_horizontal([at(i, "caps").fill_null(False) for i in each("replicas")]))
        .alias("caps"),
        any_bits("replicas").bitwise_count_ones().cast(pl.Int32).alias("span"),
        any_bits("isr").bitwise_count_ones().cast(pl.Int32).alias("isr_racks"),
        (unracked("replicas") & c("unracked")).cast(pl.Int32).alias("unnamed"),
        (unracked("isr") & c("unracked")).cast(pl.Int32).alias("isr_unnamed"),
        pl.when(c("min_insync_racks") > 1).then("min_insync_racks").alias("wanted"),
    )
    return _racked(_counted(rows), brokers)


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.with_columns(
        pl.when((c("min_isr") <= c("rf")) | ~c("caps")).then("min_isr").otherwise("rf").alias("effective"),
        pl.when(c("min_isr") <= c("rf")).then("min_isr").when("caps").then("rf").otherwise(0).alias("copies"),
        (c("span") + c("unnamed")).alias("kip_span"),
        (c("isr_racks") + c("isr_unnamed")).alias("isr_racks"),
    )
    return rows.with_columns(
        (~c("offline") & (c("isr_count") < c("effective"))).alias("under"),
        (~c("offline") & (c("isr_count") == c("effective"))).alias("at_min"),
        (~c("offline") & (c("isr_count") < c("rf"))).alias("under_replicated"),
        (c("isr_count") >= c("rf")).alias("whole"),
        pl.when(c("isr_racks") < c("wanted"))
        .then(pl.lit("under-min-rack-isr"))
        .when(c("isr_racks") == c("wanted"))
        .then(pl.lit("at-min-rack-isr"))
        .otherwise(pl.lit("none"))
        .alias("racked"),
    ).with_columns(
        ((c("racked") == "at-min-rack-isr") & ~c("whole") & (c("kip_span") > c("min_insync_racks"))).alias("at_racks"),
        pl.when("offline").then(pl.lit("none")).otherwise("racked").alias("rack_category"),
    )


def _racked(rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """`racks_worst` where the tier asks for acked racks: the racks that hold most, until they hold `copies`."""
    asked = rows.filter(c("acked_racks").is_not_null()).select("topic_no", "partition", "copies", "offset", "replicas")
    held = (
        asked.explode("replicas")
        .with_columns(pl.lit(brokers["rack_no"]).gather(c("replicas") + c("offset")).alias("rack"))
        .group_by("topic_no", "partition", "rack", "copies")
        .len()
        .with_columns(c("len").cast(pl.Int64), (c("rack") == 0).alias("nowhere"))
        # Those in no rack come first, they add none.
        .sort("topic_no", "partition", "nowhere", "len", descending=[False, False, True, True])
        .with_columns((c("len").cum_sum().over("topic_no", "partition") - c("len")).alias("before"))
        .group_by("topic_no", "partition")
        .agg(((c("before") < c("copies")) & ~c("nowhere")).sum().cast(pl.Int32).alias("racks_worst"))
    )
    return rows.join(held, on=KEY, how="left")


def health(rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """The partitions with a category, and why."""
    listed = rows.filter(
        c("offline") | c("under") | c("at_min") | c("under_replicated") | (c("rack_category") != "none")
    )
    flags = (
        ("offline", "offline"),
        ("under", "under-min-isr"),
        ("at_min", "at-min-isr"),
        ("under_replicated", "under-replicated"),
    )
    error = pl.when("offline").then(pl.lit("LEADER_NOT_AVAILABLE")).when("under").then(pl.lit("NOT_ENOUGH_REPLICAS"))
    racks = (
        pl.when(c("rack_category") == "under-min-rack-isr").then(pl.lit("NOT_ENOUGH_RACKS")).otherwise(pl.lit("NONE"))
    )
    joined = listed.join(_why(listed, brokers), on=KEY, how="left")
    return joined.select(
        "cluster",
        "topic",
        "partition",
        pl.concat_list([pl.when(flag).then(pl.lit(name)) for flag, name in flags])
        .list.drop_nulls()
        .alias("categories"),
        (c("at_min") & c("whole")).alias("by_configuration"),
        "leader",
        "replicas",
        "isr",
        "elr",
        c("min_isr").alias("min_insync_replicas"),
        c("effective").alias("effective_min_insync_replicas"),
        c("rf").alias("replication_factor"),
        c("out_of_sync").fill_null([]),
        pl.when(c("down").fill_null("") != "")
        .then("down")
        .when(c("lag").fill_null("") != "")
        .then("lag")
        .when("offline")
        .then(pl.lit("no leader elected"))
        .otherwise(pl.lit(""))
        .alias("cause"),
        "isr_racks",
        c("min_insync_racks"),
        "rack_category",
        ((c("rack_category") == "at-min-rack-isr") & ~c("at_racks")).alias("rack_by_placement"),
        error.otherwise(pl.lit("NONE")).alias("acks_all_error"),
        error.otherwise(racks).alias("acks_all_kip_1290_error"),
    )


def _why(listed: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """Of partitions that miss replicas: which, and by the brokers that are down or else those that lag, why."""
    each = (
        listed.filter(~c("whole") | c("offline"))
        .select(*KEY, "offline", "offset", "isr", c("replicas").alias("id"))
        .explode("id")
        .with_columns(c("isr").list.contains(c("id")).alias("synced"), (c("id") + c("offset")).alias("at"))
        .with_columns(
            pl.lit(brokers["down"]).gather("at").alias("down"), pl.lit(brokers["lag"]).gather("at").alias("lag")
        )
    )
    absent = c("offline") | ~c("synced")
    return each.group_by(KEY, maintain_order=True).agg(
        c("id").filter(~c("synced")).alias("out_of_sync"),
        c("down").filter(absent & c("down").is_not_null()).unique(maintain_order=True).str.join(", ").alias("down"),
        c("lag").filter(~c("synced")).str.join(", ").alias("lag"),
    )


def measured(rows: pl.DataFrame) -> pl.DataFrame:
    """A row a topic: the worst of its partitions, and which fail."""
    gap = c("min_isr") - c("rf")
    failing = {
        "few_replicas": c("rf") < c("replication_factor"),
        "few_in_sync": c("effective") < c("min_insync_replicas"),
        "above": gap > 0,
        "no_room": c("rf") - c("effective") < c("write_headroom"),
        "few_racks": c("span") < c("replica_racks"),
        "under_racks": c("isr_racks") < c("wanted"),
        "at_racks": c("at_racks"),
        "short": (c("copies") < c("acked_copies")).fill_null(False)
        | (c("racks_worst") < c("acked_racks")).fill_null(False),
        "above_rf": c("rf") < c("min_insync_racks"),
        "above_span": c("kip_span") < c("min_insync_racks"),
        "f_offline": c("offline"),
        "f_under": c("under"),
        "f_at_min": c("at_min"),
        "f_under_replicated": c("under_replicated"),
    }
    worst = gap.arg_max()
    return (
        rows.sort("topic_no", "partition")
        .group_by("topic_no")
        .agg(
            pl.len().cast(pl.Int32).alias("partitions"),
            c("rf").min(),
            c("effective").min(),
            (c("rf") - c("effective")).min().alias("headroom"),
            c("span").min(),
            c("isr_racks").min(),
            c("min_isr").get(worst).alias("gap_isr"),
            c("rf").get(worst).alias("gap_rf"),
            c("caps").get(worst).alias("gap_caps"),
            *(c("partition").filter(test.fill_null(False)).alias(name) for name, test in failing.items()),
        )
    )


def run(inputs: dict, folder: Path) -> None:
    """inputs: files by table, and the tiers; writes health.parquet, posture.parquet and findings.parquet."""
    brokers = broker_table(inputs["brokers"])
    topics = topic_table(inputs, brokers)
    sick, measures = [], []
    for start in range(0, len(inputs["partitions"]), AT_ONCE):
        rows = judged(inputs["partitions"][start : start + AT_ONCE], topics, brokers)
        sick.append(health(rows, brokers))
        measures.append(measured(rows))
    judged_topics = outcomes(topics, pl.concat(measures))
    pl.concat(sick).write_parquet(folder / "health.parquet")
    posture(judged_topics).write_parquet(folder / "posture.parquet")
    findings(judged_topics).write_parquet(folder / "findings.parquet")


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
