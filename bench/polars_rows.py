"""Findings as rows: what all controls share, as `bench.in_polars` writes them."""

from __future__ import annotations

import hashlib

import polars as pl

from bench.polars_words import INFEASIBLE
from durability.policy.catalogue import severity_of

KEYS = ("cluster", "captured_at", "snapshot_id", "topic", "tier")
COLUMNS = (
    *("cluster", "captured_at", "snapshot_id", "id", "resource_type", "resource", "control", "category", "outcome"),
    *("severity", "cause", "observed", "required", "partitions", "message", "remediation", "change", "why", "since"),
    *("waiver", "tier", "previous_severity"),
)
NULL, NO_IDS = pl.lit(None, pl.String), pl.lit(None, pl.List(pl.Int32))
CATEGORY_IN_ID = "partition-health"
c = pl.col


def plain(frame: pl.LazyFrame, control: str, outcome: pl.Expr, observed: pl.Expr, required: pl.Expr) -> pl.LazyFrame:
    """Findings without words, but for why a control isn't asked."""
    unasked = pl.format("tier {} doesn't require it", "tier").fill_null("no selector of the policy matches it")
    return frame.select(
        *KEYS,
        pl.lit(control).alias("control"),
        outcome.alias("outcome"),
        observed.alias("observed"),
        required.alias("required"),
        pl.when(outcome == "NOT_APPLICABLE").then(unasked).alias("message"),
    )


def worded(
    topics: pl.LazyFrame,
    control: str,
    outcome: str,
    *,
    observed: pl.Expr,
    required: pl.Expr,
    cause: pl.Expr,
    message: pl.Expr,
    remediation: pl.Expr,
    ids: pl.Expr = NO_IDS,
    category: pl.Expr = NULL,
    severity: pl.Expr | None = None,
) -> list[pl.LazyFrame]:
    """A control's findings, those that fail with words."""
    failed = c(outcome) == "FAIL"
    rest = plain(topics.filter(~failed), control, c(outcome), observed, required)
    words = topics.filter(failed).select(
        *KEYS,
        pl.lit(control).alias("control"),
        pl.lit("FAIL").alias("outcome"),
        observed.alias("observed"),
        required.alias("required"),
        category.alias("category"),
        (pl.lit(severity_of(control)) if severity is None else severity).alias("severity"),
        cause.alias("cause"),
        ids.alias("partitions"),
        message.alias("message"),
        remediation.alias("remediation"),
    )
    return [rest, words]


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """With ids, and what is so of every finding of a first run."""
    listed = c("outcome") == "FAIL"
    category = pl.when(c("control") == CATEGORY_IN_ID).then(c("category").fill_null(""))
    about = pl.concat_str(["cluster", "control", pl.lit("topic"), "topic", category], separator="\n", ignore_nulls=True)
    texts = rows.select(about.cast(pl.Binary)).to_series()
    ids = pl.Series([hashlib.sha256(text).hexdigest() for text in texts], dtype=pl.String)
    return rows.with_columns(
        ids.str.slice(0, 20).alias("id"),
        pl.lit("topic").alias("resource_type"),
        c("topic").alias("resource"),
        pl.when(listed).then(pl.lit("new")).alias("change"),
        pl.when(listed).then("captured_at").alias("since"),
        NULL.alias("why"),
        pl.lit(None, pl.Int32).alias("waiver"),
        NULL.alias("previous_severity"),
    ).select(COLUMNS)


def infeasible() -> pl.Expr:
    return pl.when("too_few_brokers").then(INFEASIBLE)


def by_min_isr() -> pl.Expr:
    """The cause of what min.insync.replicas brings about."""
    default = pl.lit("configuration:cluster-default")
    return pl.when(c("min_isr_source") != "topic").then(default).otherwise(pl.lit("configuration:topic"))


def placement() -> pl.Expr:
    return pl.when(c("racks") == 0).then(pl.lit("configuration:broker.rack")).otherwise(pl.lit("placement"))
