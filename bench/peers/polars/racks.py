"""The number of replicas in each rack, as one number with a hexadecimal digit per rack. The last digit is for no rack.

It supports up to 15 racks per cluster and 15 replicas per partition. Millions of partitions have few different numbers.
"""

from __future__ import annotations

import polars as pl

RACKS = 15
SLOTS = ("most_0", "most_1", "most_2", "most_3", "most_4", "most_5", "most_6")
"""Columns: the brokers without a rack and in the 0, 1, 2... fullest racks. No partition has more replicas."""
c = pl.col


def layouts(held: pl.Series) -> pl.DataFrame:
    """For each number, the brokers (`size`), the racks (`span`), the racks as KIP-1290 counts them (`kip_span`), and SLOTS."""
    nowhere = (c("held") % 16).cast(pl.Int32)
    racks = pl.concat_list([(c("held") // 16**n % 16).cast(pl.Int32) for n in range(1, RACKS + 1)])
    return (
        pl.DataFrame({"held": held.unique()})
        .with_columns(nowhere.alias("nowhere"), racks.list.sort(descending=True).alias("racks"))
        .with_columns(c("racks").list.eval(pl.element() > 0).list.sum().cast(pl.Int32).alias("span"))
        .select(
            "held",
            (c("nowhere") + c("racks").list.sum()).cast(pl.Int32).alias("size"),
            "span",
            (c("span") + pl.min_horizontal("nowhere", 1)).alias("kip_span"),
            *((c("nowhere") + c("racks").list.head(n).list.sum()).cast(pl.Int32).alias(s) for n, s in enumerate(SLOTS)),
        )
    )
