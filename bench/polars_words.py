"""Words that several findings share, as Polars expressions; the same text as `evaluate` writes."""

from __future__ import annotations

import polars as pl

c = pl.col
CONFIGS = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'
UNDER_REPLICATED = 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions'
INFEASIBLE = pl.format("policy:{} can't be met here", "tier")


def text(value: str | pl.Expr) -> pl.Expr:
    return pl.lit(value) if isinstance(value, str) else value


def quoted(word: str) -> pl.Expr:
    return pl.lit(f'"{word}"')


def in_quotes(value: pl.Expr) -> pl.Expr:
    return pl.format('"{}"', value)


def json_object(values: dict[str, pl.Expr]) -> pl.Expr:
    """A JSON object; text is JSON already, NULL is null."""
    pieces: list[pl.Expr] = []
    for place, (name, value) in enumerate(values.items()):
        pieces += [pl.lit(f'{"," if place else "{"}"{name}":'), value.cast(pl.String).fill_null("null")]
    return pl.concat_str([*pieces, pl.lit("}")])


def json_list(ids: str) -> pl.Expr:
    """A JSON list of numbers, empty where there are none."""
    joined = c(ids).cast(pl.List(pl.String)).list.join(",")
    return pl.format("[{}]", joined.fill_null(""))


def ids_listed(ids: str, one: str = "", several: str = "") -> pl.Expr:
    """The first ten of a list, and how many more there are, after a word for one or for several."""
    count = c(ids).list.len()
    shown = c(ids).list.head(10).cast(pl.List(pl.String)).list.join(", ")
    more = pl.when(count > 10).then(pl.format(" (+{} more)", count.cast(pl.Int64) - 10)).otherwise(pl.lit(""))
    return pl.concat_str([pl.when(count == 1).then(pl.lit(one)).otherwise(pl.lit(several)), shown, more])


def partitions(ids: str) -> pl.Expr:
    return ids_listed(ids, "partition ", "partitions ")


def comment(words: str | pl.Expr) -> pl.Expr:
    return pl.concat_str([pl.lit("# "), text(words)])


def script(*lines: str | pl.Expr) -> pl.Expr:
    """Lines of shell; NULL ones are left out."""
    return pl.concat_str([text(line) for line in lines], separator="\n", ignore_nulls=True)


def topic_config(setting: str, value: str | pl.Expr) -> pl.Expr:
    return pl.format(
        f"{CONFIGS} --entity-type topics --entity-name {{}} --add-config {setting}={{}}", "topic", text(value)
    )


def cluster_config(setting: str, value: str | pl.Expr) -> pl.Expr:
    return pl.format(f"{CONFIGS} --entity-type brokers --entity-default --add-config {setting}={{}}", text(value))


def bring_back(causes: pl.Expr) -> pl.Expr:
    """What mends a short ISR, by its cause."""
    down = pl.format("Start what is down ({}); then this lists nothing:", causes)
    lags = pl.format("Find why it lags ({}): load, disk, network, a throttle left behind. What lags:", causes)
    return (
        pl.when(causes.str.ends_with(" down"))
        .then(script(comment(down), UNDER_REPLICATED))
        .when(causes.str.ends_with(" offline"))
        .then(pl.format("Replace the disk and restart ({})", causes))
        .otherwise(script(comment(lags), UNDER_REPLICATED))
    )
