"""KIP-1290's state of a partition: UnderMinRackIsr, AtMinRackIsr, and what an acks=all write would be answered.

The proposal's metrics belong to the partition's leader, so a partition without a live leader is neither; brokers
without broker.rack share one unnamed rack. A min.insync.racks that nobody wants is Kafka's default of 1, which disables
the check. Beside KIP-427's four categories, never among them: a partition has one of those and one of these.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

UNDER, AT, NEITHER = "under-min-rack-isr", "at-min-rack-isr", "none"
NO_ERROR, NO_LEADER = "NONE", "LEADER_NOT_AVAILABLE"
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_RACKS = "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_RACKS"


def rack_category(led: Column, isr_span: Column, wanted: Column, wanted_known: Column) -> Column:
    """UNDER, AT or NEITHER; NULL where a fact that decides is missing.

    led: has a live leader; isr_span: `spark_jobs.racks.kip_1290_rack_span` of the ISR; wanted: min.insync.racks, NULL
    where nobody wants any; wanted_known: False where a setting that may want more could not be read.

    >>> df = spark.createDataFrame([(True, (1, 1), 2, True), (True, (2, 2), 2, True), (True, (3, 3), 2, True),
    ...     (True, (1, 2), 2, True), (True, (2, 3), 2, True), (True, (1, 1), None, True), (True, (3, 3), 2, False),
    ...     (False, (0, 0), 2, True)], "led boolean, span struct<least: int, most: int>, wanted int, known boolean")
    >>> df.select("*", rack_category(*map(F.col, df.columns)).alias("category")).show()
    +-----+------+------+-----+------------------+
    |  led|  span|wanted|known|          category|
    +-----+------+------+-----+------------------+
    | true|{1, 1}|     2| true|under-min-rack-isr|
    | true|{2, 2}|     2| true|   at-min-rack-isr|
    | true|{3, 3}|     2| true|              none|
    | true|{1, 2}|     2| true|              NULL|
    | true|{2, 3}|     2| true|              NULL|
    | true|{1, 1}|  NULL| true|              none|
    | true|{3, 3}|     2|false|              NULL|
    |false|{0, 0}|     2| true|              none|
    +-----+------+------+-----+------------------+
    """
    least, most = isr_span["least"], isr_span["most"]
    of_leader = (
        F.when(most < wanted, UNDER)
        .when(~wanted_known, None)
        .when(wanted.isNull() | (least > wanted), NEITHER)
        .when((least == wanted) & (most == wanted), AT)
    )
    return F.when(~led, NEITHER).when(led, of_leader)


def acks_all_error(offline: Column, under_min_isr: Column) -> Column:
    """What brokers answer an acks=all write today: an error of Kafka's by name, NONE where it is accepted, NULL: unknown."""
    return F.when(offline, NO_LEADER).when(under_min_isr, NOT_ENOUGH_REPLICAS).when(~under_min_isr, NO_ERROR)


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
