"""What an acknowledged write is sure of: the copies and racks of the worst ISR that Kafka may acknowledge with.

KIP-926 asks what each acks value waits for, KIP-1290 how many racks that reaches. The worst case is over every ISR of the
effective minimum size drawn from the replicas, whoever leads: it is filled from replicas that add no rack (no
broker.rack), then from the racks that hold most replicas. Nothing is enumerated; the tests do that.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

NEVER = 1_000_000
"""In place of a number of replicas that no partition has: it can't be had."""


def fewest_racks(racks: Column, members: Column) -> Column:
    """The fewest racks that `members` replicas stand in, taken from the racks that hold most.

    racks: replicas by rack, most first. Members beyond them stand in a rack each.

    >>> df = spark.createDataFrame([([2, 2, 1], 2), ([2, 2, 1], 3), ([3, 1], -1), ([1], 3)], "racks array<int>, members int")
    >>> df.select("*", fewest_racks(F.col("racks"), F.col("members")).alias("fewest")).show()
    +---------+-------+------+
    |    racks|members|fewest|
    +---------+-------+------+
    |[2, 2, 1]|      2|     1|
    |[2, 2, 1]|      3|     2|
    |   [3, 1]|     -1|     0|
    |      [1]|      3|     3|
    +---------+-------+------+
    """
    zero = F.lit(0)
    return F.aggregate(
        racks,
        F.struct(members.alias("left"), zero.alias("reached")),
        lambda so_far, held: F.struct(
            (so_far["left"] - held).alias("left"),
            (so_far["reached"] + (so_far["left"] > 0).cast("int")).alias("reached"),
        ),
        lambda end: end["reached"] + F.greatest(end["left"], zero),
    )


BOUNDS = ("copies_least", "copies_most", "racks_least", "racks_most")
THRESHOLDS = ("racks_at_ends", "smallest_min_isr", "racks_would_do")


def _worst(*cells: Column) -> Column:
    return F.struct(*(cell.alias(name) for name, cell in zip((*BOUNDS, *THRESHOLDS), cells, strict=True)))


def undecided(copies: Column) -> Column:
    """`guaranteed` where nothing is known of the replicas but that no more than `copies` acknowledge a write."""
    return _worst(F.lit(0), copies, F.lit(0), copies, copies, F.lit(NEVER), F.lit(False))


def guaranteed(ends: Column, min_isr: Column, caps: Column, copies: Column, racks: Column) -> Column:
    """What acks=all guarantees at worst: a struct of BOUNDS and THRESHOLDS, NULL where `ends` is.

    ends: `racks.layout`s of the replicas, one; three while a reassignment runs, of which the worst counts: of the replicas
    once it is cancelled, of all there are now, and once it is complete.
    min_isr: min.insync.replicas as configured, NULL if unknown; caps: whether the leader caps it at the replicas. A
    leader that doesn't accepts no acks=all write where it is above them: 0 copies, 0 racks. copies, racks: what is
    required (NULL: nothing). An unknown rack may be none (least) or one of its own (most).
    `racks_at_ends`: `racks_most` but for what holds only while a reassignment runs; thresholds leave that out as well.
    `smallest_min_isr`: the smallest min.insync.replicas that guarantees `racks` today, whatever unknown racks are;
    `racks_would_do`: whether KIP-1290's thresholds min.insync.replicas = max(copies, racks) and min.insync.racks = racks
    would guarantee both.

    KIP-1290's example: RF 5 on 3 racks, 2 wanted, needs min.insync.replicas 3 (with min.insync.racks 2 would do).

    >>> df = spark.createDataFrame([([(5, [2, 2, 1], 0, 0)], 2, True), ([(5, [2, 2, 1], 0, 0)], 3, True),
    ...     ([(2, [1, 1], 0, 0)], 3, True), ([(2, [1, 1], 0, 0)], 3, False), ([(2, [1], 0, 1)], 2, True),
    ...     ([(1, [1], 0, 0), (2, [1, 1], 0, 0), (2, [1, 1], 0, 0)], 2, True),
    ...     ([(2, [1, 1], 0, 0), (4, [2, 2], 0, 0), (2, [1, 1], 0, 0)], 2, True)],
    ...     "ends array<struct<size: int, racks: array<int>, unracked: int, unknown: int>>, min_isr int, caps boolean")
    >>> worst = guaranteed(*map(F.col, df.columns), F.lit(2), F.lit(2))
    >>> df.select(worst.alias("w")).select("w.*").show()
    +------------+-----------+-----------+----------+-------------+----------------+--------------+
    |copies_least|copies_most|racks_least|racks_most|racks_at_ends|smallest_min_isr|racks_would_do|
    +------------+-----------+-----------+----------+-------------+----------------+--------------+
    |           2|          2|          1|         1|            1|               3|          true|
    |           3|          3|          2|         2|            2|               3|          true|
    |           2|          2|          2|         2|            2|               2|          true|
    |           0|          0|          0|         0|            0|               2|          true|
    |           2|          2|          1|         2|            2|         1000000|         false|
    |           1|          1|          1|         1|            1|         1000000|         false|
    |           2|          2|          1|         1|            2|               2|          true|
    +------------+-----------+-----------+----------+-------------+----------------+--------------+
    """
    zero, fitting = F.lit(0), F.coalesce(racks, F.lit(NEVER))

    def of_end(end: Column, place: Column) -> Column:
        size, held = end["size"], end["racks"]
        passing = (F.size(ends) == 3) & (place == 1)
        fits = min_isr <= size
        copies_most = F.when(fits, min_isr).when((min_isr > size) & ~caps, zero).otherwise(size)
        copies_least = (
            F.when(fits, min_isr).when(caps, F.when(min_isr.isNull(), F.least(F.lit(1), size)).otherwise(size))
        ).otherwise(zero)
        nowhere = end["unracked"] + end["unknown"]
        most_held = F.aggregate(F.slice(held, 1, F.greatest(fitting - 1, zero)), zero, lambda n, one: n + one)
        racks_most = fewest_racks(held, copies_most - end["unracked"])
        return _worst(
            copies_least,
            copies_most,
            fewest_racks(held, copies_least - nowhere),
            racks_most,
            F.when(passing, NEVER).otherwise(racks_most),
            F.when(passing, 0).when(F.size(held) >= fitting, nowhere + most_held + 1).otherwise(NEVER),
            passing | ((nowhere == 0) & (F.size(held) >= fitting) & (size >= F.greatest(copies, racks))),
        )

    better_than_any = _worst(*map(F.lit, (NEVER, NEVER, NEVER, NEVER, NEVER, 0, True)))
    return F.aggregate(
        F.transform(ends, of_end),
        better_than_any,
        lambda a, b: _worst(
            *(F.least(a[n], b[n]) for n in (*BOUNDS, "racks_at_ends")),
            F.greatest(a["smallest_min_isr"], b["smallest_min_isr"]),
            a["racks_would_do"] & b["racks_would_do"],
        ),
    )
