"""KIP-1290's categories of a partition, UnderMinRackIsr and AtMinRackIsr, and the answer to an acks=all write.

They are separate from KIP-427's four categories. A partition can have a category of each kind. Brokers without broker.rack share
one unnamed rack. A min.insync.racks of 1, Kafka's default, disables the check.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

UNDER, AT, NEITHER = "under-min-rack-isr", "at-min-rack-isr", "none"
NO_ERROR, NO_LEADER = "NONE", "LEADER_NOT_AVAILABLE"
NOT_ENOUGH_REPLICAS, NOT_ENOUGH_RACKS = "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_RACKS"
TIMED_OUT = "REQUEST_TIMED_OUT"
INCONSISTENT = "INCONSISTENT_REPLICATION_FACTOR"


def min_racks_by_tier() -> Column:
    """Does the tier want more racks than min.insync.racks is set to?"""
    return F.coalesce("min_racks_configured", F.lit(0)) < F.coalesce("min_racks", F.lit(0))


def min_racks_cause() -> Column:
    """The cause if min.insync.racks itself is the problem."""
    return F.when(F.col("own_min_racks").isNotNull(), "configuration:topic").otherwise("configuration:cluster-default")


def racks_wanted(min_racks: Column) -> Column:
    """min.insync.racks if the check is on; NULL if the value is 1 or missing."""
    return F.when(min_racks > 1, min_racks)


def isr_category(isr_span: Column, min_racks: Column, min_racks_known: Column) -> Column:
    """Compares the racks of an ISR with the minimum, with or without a leader: UNDER, AT or NEITHER; NULL if unknown.

    isr_span: `spark_jobs.frames.racks.kip_1290_rack_span` of the ISR.
    min_racks: min.insync.racks; NULL for none.
    min_racks_known: False if a setting that may be stricter could not be read.

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


def answers(
    offline: Column, under_min_isr: Column, blocked: Column, category: Column, above: Column
) -> dict[str, Column]:
    """The answers to an acks=all write: an error by name, NONE if it is accepted, NULL if unknown.

    - `acks_all_error`: of today's brokers.
    - `acks_all_kip_1290_error`: of brokers with KIP-1290, which counts racks after replicas.
    - `acks_all_proposed_error`: of brokers with KIP-579, too. Its check precedes the count of replicas in sync.

    blocked: does the leader wait for a dead broker in the ISR? It appends the write and answers after the producer's
        request.timeout.ms.
    category: as `isr_category` returns it, NEITHER without a leader.
    above: is min.insync.replicas above the number of replicas, without those being added (Partition.assignmentState)?

    >>> df = spark.createDataFrame([(False, False, False, "none", False), (False, False, False, "at-min-rack-isr", None),
    ...     (False, False, False, "under-min-rack-isr", False), (False, False, False, None, False),
    ...     (False, True, False, "under-min-rack-isr", False), (False, True, False, "none", True),
    ...     (False, True, True, "none", False), (True, False, False, "none", True), (False, None, False, "none", None),
    ...     (None, False, False, None, False)],
    ...     "offline boolean, under boolean, blocked boolean, category string, above boolean")
    >>> now, with_racks, proposed = answers(*map(F.col, df.columns)).values()
    >>> df.select("*", now.alias("now"), with_racks.alias("KIP-1290"), proposed.alias("and KIP-579")).show(truncate=False)
    +-------+-----+-------+------------------+-----+--------------------+--------------------+-------------------------------+
    |offline|under|blocked|category          |above|now                 |KIP-1290            |and KIP-579                    |
    +-------+-----+-------+------------------+-----+--------------------+--------------------+-------------------------------+
    |false  |false|false  |none              |false|NONE                |NONE                |NONE                           |
    |false  |false|false  |at-min-rack-isr   |NULL |NONE                |NONE                |NULL                           |
    |false  |false|false  |under-min-rack-isr|false|NONE                |NOT_ENOUGH_RACKS    |NOT_ENOUGH_RACKS               |
    |false  |false|false  |NULL              |false|NONE                |NULL                |NULL                           |
    |false  |true |false  |under-min-rack-isr|false|NOT_ENOUGH_REPLICAS |NOT_ENOUGH_REPLICAS |NOT_ENOUGH_REPLICAS            |
    |false  |true |false  |none              |true |NOT_ENOUGH_REPLICAS |NOT_ENOUGH_REPLICAS |INCONSISTENT_REPLICATION_FACTOR|
    |false  |true |true   |none              |false|REQUEST_TIMED_OUT   |REQUEST_TIMED_OUT   |REQUEST_TIMED_OUT              |
    |true   |false|false  |none              |true |LEADER_NOT_AVAILABLE|LEADER_NOT_AVAILABLE|LEADER_NOT_AVAILABLE           |
    |false  |NULL |false  |none              |NULL |NULL                |NULL                |NULL                           |
    |NULL   |false|false  |NULL              |false|NULL                |NULL                |NULL                           |
    +-------+-----+-------+------------------+-----+--------------------+--------------------+-------------------------------+
    """
    of_led = F.when(blocked, TIMED_OUT).when(under_min_isr, NOT_ENOUGH_REPLICAS).when(~under_min_isr, NO_ERROR)
    today = F.when(offline, NO_LEADER).when(~offline, of_led)
    racks_counted = F.when(category == UNDER, NOT_ENOUGH_RACKS).when(category.isNotNull(), NO_ERROR)
    with_racks = F.when(today != NO_ERROR, today).when(today == NO_ERROR, racks_counted)
    checked_first = F.when(offline | (~offline & ~above), with_racks).when(~offline & above, INCONSISTENT)
    return {
        "acks_all_error": today,
        "acks_all_kip_1290_error": with_racks,
        "acks_all_proposed_error": checked_first,
    }
