"""Counts sets of nodes as numbers: up to FEW nodes of a set fit into a BIGINT, which is grouped faster than an array.

Of 7 million partitions placed as Kafka places them, 1.3 million sets of replicas are left, with eight smallest sets or so each.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

FEW, BITS = 3, 21


def counted(found: DataFrame, kept: Sequence[str], counts: Mapping[str, Column]) -> DataFrame:
    """Sums over equal sets: `cluster`, `rack`, `numbers` (ascending), and `counts`.

    found: `replicas`, the numbers of their nodes; `places`, of the set's replicas, from 1; and `kept`.
    kept: cluster, rack and the columns that `counts` reads. counts: sums by name.
    """
    each = [F.get("replicas", F.get("places", F.lit(i)) - 1) for i in range(FEW)]
    numbers = [number.cast("long").alias(f"number_{i}") for i, number in enumerate(each)]
    size = F.size("places")
    one, other, third = (F.col(f"number_{i}") for i in range(FEW))
    lowest, highest = F.least(one, other, third), F.greatest(one, other, third)
    middle = F.when(F.col("size") == FEW, one + other + third - lowest - highest).otherwise(0)
    packed = lowest + F.shiftleft(highest, BITS) + F.shiftleft(middle, 2 * BITS)
    fit = (lowest >= 0) & (highest < 1 << BITS)
    more = F.transform("places", lambda place: F.get("replicas", place - 1).cast("long"))
    named = found.select(*kept, size.alias("size"), *numbers, F.when(size > FEW, F.sort_array(more)).alias("more"))
    keyed = named.select(
        *kept,
        "size",
        F.when((F.col("size") <= FEW) & fit, packed).alias("packed"),
        F.when(F.col("size") > FEW, F.col("more")).when(~fit, _listed(lowest, highest, middle)).alias("numbers"),
    )
    sums = keyed.groupBy("cluster", "rack", "size", "packed", "numbers").agg(
        *(column.alias(name) for name, column in counts.items())
    )
    parts = [F.shiftright("packed", i * BITS).bitwiseAND(F.lit((1 << BITS) - 1)) for i in range(FEW)]
    return sums.select("cluster", "rack", F.coalesce("numbers", _listed(*parts)).alias("numbers"), *counts)


def _listed(lowest: Column, highest: Column, middle: Column) -> Column:
    """The `size` numbers of a set, of which there are at most FEW."""
    one_or_two = F.when(F.col("size") == 1, F.array(lowest)).when(F.col("size") == 2, F.array(lowest, highest))
    return one_or_two.otherwise(F.array(lowest, middle, highest))
