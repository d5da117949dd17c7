"""What acks=all means on a topic's worst partition."""

from __future__ import annotations

from functools import reduce
from operator import add

import polars as pl

from bench.peers.polars.racks import SLOTS, layouts

c = pl.col


def order() -> pl.Expr:
    """A number that is lowest for the worst partition.

    It sorts by falling short, copies, racks, rejected writes (today's and proposed errors), the size of the ISR, its racks, and
    the partition's id.
    """
    answered = ~c("offline") & ~c("under")
    weights = [
        *((~c("short"), 1), (c("copies"), 4), (c("racks_worst"), 4), (~c("offline"), 1), (answered, 1)),
        (answered & (c("min_isr") <= c("rf")) & (c("racked") < 2), 1),
        *((c("isr_count"), 4), (c("isr_racks"), 4), (c("first"), 32)),
    ]
    packed = pl.lit(0, pl.Int64)
    for value, bits in weights:
        packed = packed * 2**bits + value.cast(pl.Int64)
    return packed


def worst(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """What acks=all means on each topic's worst partition, which is the first one by `order`."""
    leader, offset = (pl.lit(rows[name]).gather("first_row") for name in ("leader", "offset"))
    first = (
        groups.filter(c("order") == c("order").min().over("tid"))
        .with_columns(c("first").alias("partition"), pl.lit(brokers["slot"]).gather(leader + offset).alias("slot"))
        .with_columns(c("slot").fill_null(1))
        .with_columns(
            pl.when(c("slot") > 1).then(c("isr_held") // c("slot") % 16).otherwise(0).cast(pl.Int32).alias("beside")
        )
        .with_columns((c("isr_held") - c("beside") * c("slot")).alias("rest"))
    )
    of_rest = layouts(first["rest"].rename("held")).select(
        c("held").alias("rest"), c("span").alias("rest_span"), *(c(s).alias(f"rest_{s}") for s in SLOTS)
    )
    leaders = (c("beside") > 0).cast(pl.Int32)
    # The leader has the record. The other replicas in its rack may be the fastest ones.
    fastest = [(c("effective") - c("beside") > c(f"rest_{s}")).cast(pl.Int32) for s in SLOTS]
    named = ("partition", "isr_count", "rf", "effective", "copies", "kip_span")
    return first.join(of_rest, on="rest", how="left").select(
        "tid",
        *(c(n).alias(f"w_{n}") for n in named),
        c("racks_worst").alias("w_racks"),
        (~c("offline")).alias("w_led"),
        (~c("offline") & ~c("under")).alias("w_accepted"),
        (c("racked") == 2).alias("w_few_racks"),
        (c("most_0") > 0).alias("w_unracked"),
        (c("slot") > 1).alias("w_leader_racked"),
        (leaders + c("rest_span")).alias("w_racks_now"),
        reduce(add, fastest, leaders).alias("w_fastest"),
    )
