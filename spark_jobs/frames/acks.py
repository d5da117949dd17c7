"""The guarantee of an acknowledged write: the copies and racks of the worst ISR that Kafka may acknowledge it with.

KIP-926 compares what each acks value waits for, KIP-1290 how many racks that reaches. The worst case is over every ISR of the
effective minimum size among the replicas, with any of them as leader. The worst ISR has first the replicas that add no rack (no
broker.rack), then those in the fullest racks. This module computes it directly. The tests enumerate all ISRs.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import struct

NEVER = 1_000_000
"""More replicas than any partition has. A requirement of so many can't be met."""
BOUNDS = ("copies_least", "copies_most", "racks_least", "racks_most")


def fewest_racks(racks: Column, members: Column) -> Column:
    """The fewest racks that `members` replicas can be in: the fullest ones.

    racks: the number of replicas by rack, the largest first. Members that don't fit add a rack each.

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
        struct({"left": members, "reached": zero}),
        lambda so_far, size: struct(
            {
                "left": so_far["left"] - size,
                "reached": so_far["reached"] + (so_far["left"] > 0).cast("int"),
            }
        ),
        lambda end: end["reached"] + F.greatest(end["left"], zero),
    )


def _worst(
    bounds: Iterable[Column],
    racks_at_ends: Column,
    smallest_min_isr: Column,
    racks_would_do: Column,
) -> Column:
    thresholds = {
        "racks_at_ends": racks_at_ends,
        "smallest_min_isr": smallest_min_isr,
        "racks_would_do": racks_would_do,
    }
    return struct(dict(zip(BOUNDS, bounds, strict=True)) | thresholds)


def undecided(copies: Column) -> Column:
    """`guaranteed` for unknown replicas, if at most `copies` of them acknowledge a write."""
    return _worst((F.lit(0), copies, F.lit(0), copies), copies, F.lit(NEVER), F.lit(False))


def guaranteed(ends: Column, min_isr: Column, caps: Column, copies: Column, racks: Column) -> Column:
    """What acks=all guarantees in the worst case, as a struct; NULL where `ends` is NULL.

    ends: an array of one, `racks.layout` of the replicas. During a reassignment, an array of three: the replicas if it is
        cancelled, all present replicas, and the replicas once it is complete. The worst one counts.
    min_isr: min.insync.replicas as configured; NULL if unknown.
    caps: does the leader cap it at the number of replicas? If not, it accepts no acks=all write with a higher value. That gives
        0 copies and 0 racks.
    copies, racks: the requirements; NULL for none.

    The struct has BOUNDS: an unknown rack may be no rack (least) or a separate one (most). It also has:

    - `racks_at_ends`: `racks_most` without the present replicas, which count only while the reassignment runs.
    - `smallest_min_isr`: the smallest min.insync.replicas that guarantees `racks` now, whatever the unknown racks are.
    - `racks_would_do`: would KIP-1290's min.insync.racks = racks with min.insync.replicas = max(copies, racks) guarantee both?

    The last two don't count the present replicas of a reassignment.

    In KIP-1290's example, replication factor 5 on 3 racks, 2 racks need min.insync.replicas 3; min.insync.racks 2 would do too.

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
        size, by_rack = end["size"], end["racks"]
        at_present = (F.size(ends) == 3) & (place == 1)
        fits = min_isr <= size
        capped = F.when(min_isr.isNull(), F.least(F.lit(1), size)).otherwise(size)
        copies_least = F.when(fits, min_isr).when(caps, capped).otherwise(zero)
        copies_most = F.when(fits, min_isr).when((min_isr > size) & ~caps, zero).otherwise(size)
        no_known_rack = end["unracked"] + end["unknown"]
        racks_most = fewest_racks(by_rack, copies_most - end["unracked"])
        in_fullest = F.aggregate(F.slice(by_rack, 1, F.greatest(fitting - 1, zero)), zero, lambda n, one: n + one)
        enough_racks = F.size(by_rack) >= fitting
        return _worst(
            (copies_least, copies_most, fewest_racks(by_rack, copies_least - no_known_rack), racks_most),
            F.when(at_present, NEVER).otherwise(racks_most),
            F.when(at_present, 0).when(enough_racks, no_known_rack + in_fullest + 1).otherwise(NEVER),
            at_present | ((no_known_rack == 0) & enough_racks & (size >= F.greatest(copies, racks))),
        )

    never = F.lit(NEVER)
    return F.aggregate(
        F.transform(ends, of_end),
        _worst((never, never, never, never), never, zero, F.lit(True)),
        lambda a, b: _worst(
            (F.least(a[bound], b[bound]) for bound in BOUNDS),
            F.least(a["racks_at_ends"], b["racks_at_ends"]),
            F.greatest(a["smallest_min_isr"], b["smallest_min_isr"]),
            a["racks_would_do"] & b["racks_would_do"],
        ),
    )
