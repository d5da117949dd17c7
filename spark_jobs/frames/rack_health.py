"""KIP-1290's state of a partition: UnderMinRackIsr, AtMinRackIsr, and what an acks=all write would be answered.

The proposal's metrics belong to the partition's leader, so a partition without a live leader is neither; brokers
without broker.rack share one unnamed rack. A min.insync.racks that nobody wants is Kafka's default of 1, which disables
the check, as a stated 1 does. Beside KIP-427's four categories, never among them: a partition has one of those and one
of these.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

UNDER, AT, NEITHER = "under-min-rack-isr", "at-min-rack-isr", "none"
NO_ERROR, NO_LEADER = "NONE", "LEADER_NOT_AVAILABLE"
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_RACKS = "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_RACKS"
INCONSISTENT = "INCONSISTENT_REPLICATION_FACTOR"


def racks_wanted(min_racks: Column) -> Column:
    """min.insync.racks where it asks for anything; NULL where it is 1 or nobody wants any, which disables the check."""
    return F.when(min_racks > 1, min_racks)


def isr_category(isr_span: Column, min_racks: Column, min_racks_known: Column) -> Column:
    """What an ISR's racks are against the minimum, whoever leads: UNDER, AT or NEITHER; NULL where it can't be told.

    isr_span: `spark_jobs.frames.racks.kip_1290_rack_span` of the ISR; min_racks: min.insync.racks, NULL where nobody wants any;
    min_racks_known: False where a setting that may want more could not be read.

    >>> df = spark.createDataFrame([((1, 1), 2, True), ((2, 2), 2, True), ((3, 3), 2, True), ((1, 2), 2, True),
    ...     ((2, 3), 2, True), ((1, 1), None, True), ((1, 1), 1, True), ((3, 3), 2, False), ((1, 1), 2, False)],
    ...     "span struct<least: int, most: int>, wanted int, known boolean")
    >>> df.select("*", isr_category(*map(F.col, df.columns)).alias("category")).show()
    +------+------+-----+------------------+
    |  span|wanted|known|          category|
    +------+------+-----+------------------+
    |{1, 1}|     2| true|under-min-rack-isr|
    |{2, 2}|     2| true|   at-min-rack-isr|
    |{3, 3}|     2| true|              none|
    |{1, 2}|     2| true|              NULL|
    |{2, 3}|     2| true|              NULL|
    |{1, 1}|  NULL| true|              none|
    |{1, 1}|     1| true|              none|
    |{3, 3}|     2|false|              NULL|
    |{1, 1}|     2|false|under-min-rack-isr|
    +------+------+-----+------------------+
    """
    least, most, wanted = isr_span["least"], isr_span["most"], racks_wanted(min_racks)
    return (
        F.when(most < wanted, UNDER)
        .when(~min_racks_known, None)
        .when(wanted.isNull() | (least > wanted), NEITHER)
        .when((least == wanted) & (most == wanted), AT)
    )


def rack_category(led: Column, isr_category: Column) -> Column:
    """The proposal's metrics of a partition, which are its leader's: `isr_category`, NEITHER without a live leader.

    >>> df = spark.createDataFrame([(True, "under-min-rack-isr"), (True, None), (False, "under-min-rack-isr"),
    ...     (False, None), (None, "none")], "led boolean, isr string")
    >>> df.select("*", rack_category(*map(F.col, df.columns)).alias("category")).show()
    +-----+------------------+------------------+
    |  led|               isr|          category|
    +-----+------------------+------------------+
    | true|under-min-rack-isr|under-min-rack-isr|
    | true|              NULL|              NULL|
    |false|under-min-rack-isr|              none|
    |false|              NULL|              none|
    | NULL|              none|              NULL|
    +-----+------------------+------------------+
    """
    return F.when(~led, NEITHER).when(led, isr_category)


def acks_all_error(offline: Column, under_min_isr: Column) -> Column:
    """What brokers answer an acks=all write today: an error of Kafka's by name, NONE where it is accepted, NULL: unknown.

    >>> df = spark.createDataFrame([(True, False), (False, True), (False, False), (False, None), (None, False)],
    ...                            "offline boolean, under boolean")
    >>> df.select("*", acks_all_error(*map(F.col, df.columns)).alias("answer")).show()
    +-------+-----+--------------------+
    |offline|under|              answer|
    +-------+-----+--------------------+
    |   true|false|LEADER_NOT_AVAILABLE|
    |  false| true| NOT_ENOUGH_REPLICAS|
    |  false|false|                NONE|
    |  false| NULL|                NULL|
    |   NULL|false|                NULL|
    +-------+-----+--------------------+
    """
    of_led = F.when(under_min_isr, NOT_ENOUGH_REPLICAS).when(~under_min_isr, NO_ERROR)
    return F.when(offline, NO_LEADER).when(~offline, of_led)


def kip_1290_error(error: Column, category: Column) -> Column:
    """What KIP-1290's broker would answer: replicas are counted first, then racks.

    error: `acks_all_error`; category: `rack_category`.

    >>> df = spark.createDataFrame([("NONE", "none"), ("NONE", "under-min-rack-isr"), ("NONE", "at-min-rack-isr"),
    ...     ("NOT_ENOUGH_REPLICAS", "none"), ("NOT_ENOUGH_REPLICAS", "under-min-rack-isr"), ("NONE", None),
    ...     (None, "under-min-rack-isr")], "error string, category string")
    >>> df.select("*", kip_1290_error(*map(F.col, df.columns)).alias("answer")).show()
    +-------------------+------------------+-------------------+
    |              error|          category|             answer|
    +-------------------+------------------+-------------------+
    |               NONE|              none|               NONE|
    |               NONE|under-min-rack-isr|   NOT_ENOUGH_RACKS|
    |               NONE|   at-min-rack-isr|               NONE|
    |NOT_ENOUGH_REPLICAS|              none|NOT_ENOUGH_REPLICAS|
    |NOT_ENOUGH_REPLICAS|under-min-rack-isr|NOT_ENOUGH_REPLICAS|
    |               NONE|              NULL|               NULL|
    |               NULL|under-min-rack-isr|               NULL|
    +-------------------+------------------+-------------------+
    """
    return F.when(error != NO_ERROR, error).when(
        error == NO_ERROR, F.when(category == UNDER, NOT_ENOUGH_RACKS).when(category.isNotNull(), NO_ERROR)
    )


def kip_579_error(offline: Column, above: Column, otherwise: Column) -> Column:
    """What KIP-579's broker would answer: it looks before anything in sync is counted.

    above: is min.insync.replicas above the replicas without those being added (Partition.assignmentState)? otherwise:
    what is answered where it isn't, with KIP-1290 too `kip_1290_error`.

    >>> df = spark.createDataFrame([(False, True, "NONE"), (False, False, "NOT_ENOUGH_RACKS"), (False, None, "NONE"),
    ...     (True, True, "LEADER_NOT_AVAILABLE"), (None, True, None)], "offline boolean, above boolean, otherwise string")
    >>> [answer for (answer,) in df.select(kip_579_error(*map(F.col, df.columns))).collect()]
    ['INCONSISTENT_REPLICATION_FACTOR', 'NOT_ENOUGH_RACKS', None, 'LEADER_NOT_AVAILABLE', None]
    """
    return F.when(offline | (~offline & ~above), otherwise).when(~offline & above, INCONSISTENT)
