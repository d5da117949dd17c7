"""Clusters and topics as the Polars program knows them: what is required of a topic, outcomes of its controls, its posture."""

from __future__ import annotations

import polars as pl

from bench.peers.polars import unhealthy
from bench.peers.verdicts import checks

PROBLEMS = ("above-known-racks", "above-replication-factor", "above-replica-racks", "broker-without-rack")
TARGETS = ("target_replication_factor", "target_min_insync_replicas", "target_racks", "target_acked_racks", "reassign")
ENTRY = pl.Struct(
    {
        **{name: pl.String for name in ("setting", "step")},
        **{"value": pl.Int32, "source": pl.String, "configured": pl.Int32, "now": pl.Int32, "now_source": pl.String},
        **{
            "lower_to": pl.Int32,
            "since": pl.Datetime("us", "UTC"),
            "racks": pl.List(pl.String),
            "partitions": pl.Int32,
        },
    }
)
c = pl.col


def cluster_table(files: list[str], brokers: pl.DataFrame) -> pl.DataFrame:
    """One row per cluster."""
    elr = c("features").map.get("eligible.leader.replicas.version").fill_null(0) > 0
    known = pl.scan_parquet(files).select("cluster", elr.alias("elr_on")).collect()
    stated = brokers.group_by("cluster").agg(
        c("offset").first(),
        pl.len().cast(pl.Int32).alias("broker_count"),
        c("rack").drop_nulls().n_unique().cast(pl.Int32).alias("rack_count"),
        c("rack").is_null().any().cast(pl.Int32).alias("unnamed"),
        c("min_isr").first().fill_null(1).alias("broker_min_isr"),
        pl.when(c("min_isr").first().is_null())
        .then(pl.lit("default"))
        .otherwise(c("source").first().fill_null("broker"))
        .alias("broker_source"),
        c("caps").first(),
    )
    return known.join(stated, on="cluster")


def topic_table(inputs: dict[str, list[str]], clusters: pl.DataFrame) -> pl.DataFrame:
    """One row per topic with its tier's requirements and its cluster's facts."""
    resolved = (
        pl.scan_parquet(inputs["resolved"])
        .filter(c("resource_type") == "topic")
        .select("cluster", c("resource").alias("topic"), "tier")
    )
    unclean, min_isr = "unclean.leader.election.enable", "min.insync.replicas"
    own = c("configs").map.get(min_isr).cast(pl.Int32)
    source = c("config_sources")
    return (
        pl.scan_parquet(inputs["topics"])
        .select(
            *("cluster", "captured_at", "snapshot_id", "topic", "internal"),
            own.alias("own_min_isr"),
            pl.when(own.is_not_null()).then(source.map.get(min_isr).fill_null("topic")).alias("own_source"),
            (c("configs").map.get(unclean).fill_null("false") == "true").alias("unclean"),
            pl.when(c("configs").map.get(unclean).is_not_null())
            .then(source.map.get(unclean).fill_null("topic"))
            .alias("unclean_source"),
        )
        .collect()
        .join(resolved.collect(), on=["cluster", "topic"], how="left")
        .join(pl.read_parquet(inputs["tiers"]), on="tier", how="left")
        .join(clusters, on="cluster")
        .with_row_index("topic_no")
        .with_columns(
            pl.coalesce("own_min_isr", "broker_min_isr").alias("min_isr"),
            pl.coalesce("own_source", "broker_source").alias("min_isr_source"),
            c("unclean_source").fill_null("controller"),
            pl.when(c("min_insync_racks") > 1).then("min_insync_racks").alias("wanted"),
        )
    )


def outcomes(topics: pl.DataFrame, sick: pl.DataFrame) -> pl.DataFrame:
    """`topics` with each control's outcome; sick: `unhealthy.of_topics`."""

    def outcome(wanted: pl.Expr, failing: pl.Expr) -> pl.Expr:
        return (
            pl.when(wanted.is_null())
            .then(pl.lit("NOT_APPLICABLE"))
            .when(failing)
            .then(pl.lit("FAIL"))
            .otherwise(pl.lit("PASS"))
        )

    wanted = c("min_insync_racks")
    tests = (
        wanted > c("rack_count") + c("unnamed"),
        some("above_rf"),
        some("above_span"),
        (wanted > 1) & (c("unnamed") > 0),
    )
    problems = dict(zip(PROBLEMS, tests, strict=True))
    listed = pl.concat_list([pl.when(test).then(pl.lit(name)) for name, test in problems.items()])
    under = outcome(c("wanted"), some("under_racks"))
    frame = topics.join(sick, on="topic_no", how="left").with_columns(
        c("elr_at_risk").fill_null(False),
        (c("elr_on") & c("elr_at_risk").fill_null(False)).alias("guarded"),
        c("isr_misplaced").fill_null(False),
        listed.list.drop_nulls().alias("problems"),
    )
    return frame.with_columns(
        outcome(c("replication_factor"), some("few_replicas")).alias("o_rf"),
        outcome(c("min_insync_replicas"), some("few_in_sync")).alias("o_min_isr"),
        outcome(c("rf"), some("above")).alias("o_above"),
        outcome(c("write_headroom"), some("no_headroom")).alias("o_headroom"),
        outcome(pl.when("forbids_unclean").then(1), c("unclean")).alias("o_unclean"),
        outcome(c("replica_racks"), some("few_racks")).alias("o_racks"),
        under.alias("o_under_racks"),
        outcome(c("wanted"), some("under_racks") | some("at_racks")).alias("o_isr_racks"),
        outcome(pl.coalesce("acked_copies", "acked_racks"), some("short")).alias("o_acked"),
        outcome(wanted, c("problems").list.len() > 0).alias("o_valid"),
    )


def some(ids: str) -> pl.Expr:
    return c(ids).is_not_null()


def posture(topics: pl.DataFrame, sick: pl.DataFrame) -> pl.DataFrame:
    """The rows of `topic_posture`, of topics with their targets."""
    return topics.join(_outages(topics, sick), on="topic_no", how="left").select(
        *("cluster", "captured_at", "snapshot_id", "topic", "internal", "tier", "partitions"),
        pl.concat_list(
            pl.struct(pl.sql_expr(sql).alias(field) for field, sql in entry.items()) for entry in checks()
        ).alias("checks"),
        c("min_isr").alias("configured_min_insync_replicas"),
        c("min_isr_source").alias("configured_min_insync_replicas_source"),
        pl.lit(None, pl.Int32).alias("configured_min_insync_racks"),
        pl.lit(None, pl.String).alias("configured_min_insync_racks_source"),
        *("rack_outage_step", "rack_outage", *TARGETS),
    )


def _outages(topics: pl.DataFrame, sick: pl.DataFrame) -> pl.DataFrame:
    """By topic_no the steps of a first run in a rack outage, one for each threshold that partitions are below for it."""
    none, no_words = pl.lit(None, pl.Int32), pl.lit(None, pl.String)
    touched = unhealthy.outages(sick).join(topics, on="topic_no")
    step = pl.when("guarded").then(pl.lit("guarded")).otherwise(pl.lit("lower"))

    def entry(setting: str, kind: str, value: pl.Expr, source: pl.Expr, now: pl.Expr, now_source: pl.Expr) -> pl.Expr:
        fields = {
            **{"setting": pl.lit(setting), "step": step, "value": value, "source": source},
            **{"configured": now, "now": now, "now_source": now_source},
            "lower_to": pl.when(~c("guarded")).then(pl.max_horizontal(f"least_{kind}", 1)),
            **{"since": c("captured_at"), "racks": c("racks_lost"), "partitions": c(f"hurt_{kind}")},
        }
        made = pl.struct(value.alias(name) for name, value in fields.items()).cast(ENTRY)
        return pl.when(c(f"hurt_{kind}") > 0).then(made)

    entries = [
        entry("min.insync.replicas", "replicas", *2 * (c("min_isr"), c("min_isr_source"))),
        entry("min.insync.racks", "racks", c("min_insync_racks"), pl.lit("policy"), none, no_words),
    ]
    return touched.filter((c("hurt_replicas") > 0) | (c("hurt_racks") > 0)).select(
        "topic_no", step.alias("rack_outage_step"), pl.concat_list(entries).list.drop_nulls().alias("rack_outage")
    )
