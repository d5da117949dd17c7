"""What `bench.in_polars` says of topics: outcomes of their controls, posture and findings."""

from __future__ import annotations

import polars as pl

c = pl.col


def outcomes(topics: pl.DataFrame, measures: pl.DataFrame) -> pl.DataFrame:
    """A row a topic with each control's outcome."""

    def outcome(wanted: pl.Expr, failing: str) -> pl.Expr:
        return (
            pl.when(wanted.is_null())
            .then(pl.lit("NOT_APPLICABLE"))
            .when(some(failing))
            .then(pl.lit("FAIL"))
            .otherwise(pl.lit("PASS"))
        )

    fails = (
        (c("min_insync_racks") > c("racks") + c("unracked").cast(pl.Int32))
        | some("above_rf")
        | some("above_span")
        | ((c("min_insync_racks") > 1) & c("unracked"))
    )
    return topics.join(measures, on="topic_no", suffix="_worst").with_columns(
        outcome(c("replication_factor"), "few_replicas").alias("o_rf"),
        outcome(c("min_insync_replicas"), "few_in_sync").alias("o_min_isr"),
        pl.when(some("above")).then(pl.lit("FAIL")).otherwise(pl.lit("PASS")).alias("o_gap"),
        outcome(c("write_headroom"), "no_room").alias("o_room"),
        pl.when(~c("forbids").fill_null(False))
        .then(pl.lit("NOT_APPLICABLE"))
        .when("unclean")
        .then(pl.lit("FAIL"))
        .otherwise(pl.lit("PASS"))
        .alias("o_unclean"),
        outcome(c("replica_racks"), "few_racks").alias("o_racks"),
        outcome(pl.when(c("min_insync_racks") > 1).then("min_insync_racks"), "under_racks").alias("o_isr_racks"),
        outcome(pl.coalesce("acked_copies", "acked_racks"), "short").alias("o_acked"),
        pl.when(c("min_insync_racks").is_null())
        .then(pl.lit("NOT_APPLICABLE"))
        .when(fails)
        .then(pl.lit("FAIL"))
        .otherwise(pl.lit("PASS"))
        .alias("o_valid"),
        pl.when(c("min_insync_racks") > c("racks") + c("unracked").cast(pl.Int32))
        .then(None)
        .when(some("above_rf"))
        .then("above_rf")
        .when(some("above_span"))
        .then("above_span")
        .alias("invalid"),
    )


def some(ids: str) -> pl.Expr:
    return c(ids).list.len() > 0


def posture(topics: pl.DataFrame) -> pl.DataFrame:
    scalars = (
        ("replication_factor", "o_rf", c("rf"), c("replication_factor")),
        ("min_insync_replicas", "o_min_isr", c("effective"), c("min_insync_replicas")),
        ("min_isr_within_replication_factor", "o_gap", c("gap_isr"), c("gap_rf")),
        ("write_headroom", "o_room", c("headroom"), c("write_headroom")),
        ("unclean_leader_election", "o_unclean", c("unclean").cast(pl.Int32), pl.lit(0, pl.Int32)),
        ("replica_rack_spread", "o_racks", c("span"), c("replica_racks")),
        ("isr_rack_spread", "o_isr_racks", c("isr_racks"), c("min_insync_racks")),
    )
    columns = []
    for name, outcome, observed, required in scalars:
        known = c(outcome) != "NOT_APPLICABLE"
        columns += [
            pl.when(known).then(observed).otherwise(0).alias(f"{name}_observed"),
            pl.when(known).then(required).otherwise(0).alias(f"{name}_required"),
            known.alias(f"{name}_known"),
        ]
    return topics.select("cluster", "topic", "internal", "tier", "partitions", *columns)


def findings(topics: pl.DataFrame) -> pl.DataFrame:
    none, fail = pl.lit(None, pl.String), pl.lit("FAIL")
    under = c("o_isr_racks") == "FAIL"
    said = [
        ("replication-factor", none, c("o_rf"), c("few_replicas")),
        ("min-insync-replicas", none, c("o_min_isr"), c("few_in_sync")),
        (
            "min-isr-within-replication-factor",
            pl.when("gap_caps").then(pl.lit("silent-downgrade")).otherwise(pl.lit("outage")),
            c("o_gap"),
            c("above"),
        ),
        ("write-headroom", none, c("o_room"), c("no_room")),
        ("unclean-leader-election", none, c("o_unclean"), pl.lit(None, pl.List(pl.Int32))),
        ("replica-rack-spread", none, c("o_racks"), c("few_racks")),
        (
            "isr-rack-spread",
            pl.when(under).then(pl.lit("under-min-rack-isr")).otherwise(pl.lit("at-min-rack-isr")),
            pl.when((c("o_isr_racks") == "PASS") & some("at_racks")).then(fail).otherwise("o_isr_racks"),
            pl.when(under).then("under_racks").otherwise("at_racks"),
        ),
        ("acked-durability", none, c("o_acked"), c("short")),
        ("min-insync-racks-valid", none, c("o_valid"), c("invalid")),
    ]
    health = {
        "offline": "f_offline",
        "under-min-isr": "f_under",
        "at-min-isr": "f_at_min",
        "under-replicated": "f_under_replicated",
    }
    healthy = ~pl.any_horizontal([some(ids) for ids in health.values()])
    said.append(("partition-health", none, pl.when(healthy).then(pl.lit("PASS")), pl.lit(None, pl.List(pl.Int32))))
    said += [("partition-health", pl.lit(name), pl.when(some(ids)).then(fail), c(ids)) for name, ids in health.items()]
    frames = [
        topics.lazy()
        .select(
            "cluster",
            c("topic").alias("resource"),
            pl.lit(control).alias("control"),
            pl.when(outcome == "FAIL").then(category).alias("category"),
            outcome.alias("outcome"),
            pl.when(outcome == "FAIL").then(ids).alias("partitions"),
        )
        .filter(c("outcome").is_not_null())
        for control, category, outcome, ids in said
    ]
    return pl.concat(frames).collect()
