"""The verdicts of topics as rows; what they show: `bench.peers.verdicts`."""

from __future__ import annotations

import hashlib

import polars as pl

from bench.peers.polars import unhealthy
from bench.peers.verdicts import CATEGORIES, HEALTHY, OF_TOPICS, Verdict, columns, health

c = pl.col


def verdicts(topics: pl.DataFrame, sick: pl.DataFrame) -> pl.DataFrame:
    """topics: `targets.aimed`; sick: `unhealthy.listed`."""
    of_topics, each = topics.lazy(), sick.lazy()
    frames = [_rows(of_topics, verdict) for verdict in OF_TOPICS]
    for flag, category in CATEGORIES.items():
        some = of_topics.join(unhealthy.by_category(each, flag), on="topic_no")
        frames.append(_rows(some.with_columns(c(f"f_{flag}").alias("ids")), health(category)))
    healthy = of_topics.join(each.filter(pl.any_horizontal(*CATEGORIES)), on="topic_no", how="anti")
    rows = pl.concat([*frames, _rows(healthy, HEALTHY)], how="diagonal").collect()
    digests = [hashlib.sha256(key).hexdigest() for key in rows["key"].cast(pl.Binary)]
    none = pl.lit(None, pl.String)
    return rows.drop("key").with_columns(
        pl.Series("id", digests, pl.String).str.slice(0, 20),
        pl.lit(None, pl.Int32).alias("waiver"),
        none.alias("why"),
        none.alias("was"),
        none.alias("previous_severity"),
    )


def _rows(topics: pl.LazyFrame, verdict: Verdict) -> pl.LazyFrame:
    return topics.select(pl.sql_expr(sql).alias(name) for name, sql in columns(verdict).items())
