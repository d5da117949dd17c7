"""What a topic should become: its replication factor, min.insync.replicas and racks, and whether replicas have to move."""

from __future__ import annotations

import polars as pl

from bench.peers.polars.acks import NEVER

MORE = 8
"""Replicas tried above those that are needed otherwise."""
SPREAD = ["cluster", "acked_racks", "least_copies", "least_headroom", "needed"]
c = pl.col


def aimed(topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """`topics` with their targets, and whether replicas have to move or brokers are missing."""
    kept = pl.max_horizontal("least_copies", "smallest_min_isr")
    stays = (c("needed") == c("rf")) & (kept + c("least_headroom") <= c("needed"))
    frame = topics.with_columns(
        pl.max_horizontal(1, "min_insync_replicas", "acked_copies", "acked_racks", pl.when("survives").then(2)).alias(
            "least_copies"
        ),
        pl.max_horizontal(0, "write_headroom", pl.when("survives").then(1)).alias("least_headroom"),
        pl.max_horizontal(
            1, "replica_racks", "min_insync_racks", "acked_racks", pl.when("survives_rack").then(2)
        ).alias("target_racks"),
    ).with_columns(
        pl.max_horizontal(
            "rf",
            "replication_factor",
            pl.min_horizontal("target_racks", "rack_count"),
            c("least_copies") + c("least_headroom"),
        ).alias("needed")
    )
    frame = frame.join(_evenly(frame, brokers), on=SPREAD, how="left").with_columns(
        pl.when((c("acked_racks") > 1) & c("smallest_min_isr").is_not_null() & stays).then(kept).alias("kept")
    )
    evenly = (c("acked_racks") > 1) & c("kept").is_null() & (c("rack_count") >= c("acked_racks"))
    frame = frame.with_columns(
        pl.when(evenly & c("spread_rf").is_not_null()).then("acked_racks").alias("target_acked_racks")
    ).with_columns(
        pl.when(c("target_acked_racks").is_null())
        .then("needed")
        .otherwise("spread_rf")
        .alias("target_replication_factor"),
        pl.when(c("target_acked_racks").is_not_null()).then("spread_min_isr").alias("spread_min_isr"),
    )
    fits = pl.min_horizontal("min_isr", c("target_replication_factor") - c("least_headroom"))
    least = pl.max_horizontal("least_copies", "kept", "spread_min_isr", fits)
    return _moving(frame.with_columns(least.alias("target_min_insync_replicas")))


def _moving(frame: pl.DataFrame) -> pl.DataFrame:
    few_racks = c("target_racks") > c("rack_count")
    leans = (c("target_min_insync_replicas") < c("smallest_min_isr")).fill_null(False)
    uneven = c("target_acked_racks").is_not_null() & ((c("o_acked") == "FAIL") | leans)
    placed = (c("o_racks") == "FAIL") | c("isr_misplaced")
    misplaced = (placed | uneven) & ~few_racks & (c("rack_count") > 0)
    return frame.with_columns(
        (c("target_replication_factor") > c("rf")).alias("grows"),
        (c("target_replication_factor") > c("broker_count")).alias("too_few_brokers"),
    ).with_columns(
        ((c("grows") | misplaced) & ~c("too_few_brokers")).alias("reassign"),
        pl.when(c("smallest_min_isr") < NEVER).then("smallest_min_isr").alias("smallest_min_isr"),
    )


def _evenly(topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """By SPREAD: the first number of replicas that guarantees the acked racks with headroom if spread evenly, the
    min.insync.replicas that does, and the brokers outside the fullest racks. Few rows per cluster, so plain Python."""
    asked = topics.filter(c("acked_racks") > 1).select(SPREAD).unique()
    named = brokers.filter(c("rack").is_not_null()).group_by("cluster", "rack").len().sort("len", descending=True)
    sizes = dict(named.group_by("cluster", maintain_order=True).agg("len").iter_rows())
    found = []
    for cluster, acked, copies, room, needed in asked.iter_rows():
        racks = sizes.get(cluster, [])
        tried = ((n, _most_held(racks, n, acked - 1)) for n in range(needed, needed + MORE + 1))
        fits = ((n, max(copies, held + 1)) for n, held in tried if held is not None)
        n, least = next(((n, least) for n, least in fits if least + room <= n), (None, None))
        found.append((n, least, sum(racks[acked - 1 :])))
    schema = dict.fromkeys(("spread_rf", "spread_min_isr", "brokers_elsewhere"), pl.Int32)
    return pl.concat([asked, pl.DataFrame(found, schema=schema, orient="row")], how="horizontal")


def _most_held(sizes: list[int], replicas: int, racks: int) -> int | None:
    """Replicas that some racks have together if all are placed as evenly as brokers allow; None: too few brokers."""

    def held(level: int, of: list[int] = sizes) -> int:
        return sum(min(size, level) for size in of)

    level = next((n for n in range(1, replicas + 1) if held(n) >= replicas), None)
    return None if level is None else held(level - 1, sizes[:racks]) + min(racks, replicas - held(level - 1))
