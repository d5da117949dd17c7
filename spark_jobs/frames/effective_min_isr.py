"""The min.insync.replicas that a partition's leader enforces.

Since Kafka 3.7 (KAFKA-15583) a broker caps the configured value at the number of replicas, including those being added and
removed (`Partition.effectiveMinIsr`). Older brokers enforce the value as configured: one above the replication factor rejects
every acks=all write.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.topology import versions
from spark_jobs.frames.literals import literal

FIRST_CAPPING_METADATA_VERSION = 15
"""The first level of metadata.version that Kafka 3.7 added. 3.6 supports up to 14."""
FIRST_CAPPING_RELEASE = 3007
FIRST_ELR_METADATA_VERSION = 22
"""The first level of metadata.version that Kafka 4.0 added. Every broker of a cluster that finalized it is 4.0 or later."""
FIRST_ELR_RELEASE = 4000
NEEDED_BY_ELR = 23
"""The level of metadata.version, 4.0-IV1, that the feature needs (`EligibleLeaderReplicasVersion`)."""


def caps_min_isr(max_metadata_version: Column, finalized: Column, release: Column) -> Column:
    """Does a broker cap min.insync.replicas at its partition's replicas? NULL where its release is unknown.

    max_metadata_version: the highest level of metadata.version that the broker supports, an int. It comes from the broker
        itself, so it has precedence.
    finalized: the cluster's level. Every broker supports it.
    release: `release_number`.

    >>> df = spark.createDataFrame([(14, None, 4003), (None, 15, 3006), (None, 14, 3006), (None, 14, None), (None, None, 3006),
    ...     (None, None, 3007), (None, None, 4010), (None, None, None)], "level int, finalized int, release int")
    >>> df.select("*", caps_min_isr(*map(F.col, df.columns)).alias("caps")).show()
    +-----+---------+-------+-----+
    |level|finalized|release| caps|
    +-----+---------+-------+-----+
    |   14|     NULL|   4003|false|
    | NULL|       15|   3006| true|
    | NULL|       14|   3006|false|
    | NULL|       14|   NULL| NULL|
    | NULL|     NULL|   3006|false|
    | NULL|     NULL|   3007| true|
    | NULL|     NULL|   4010| true|
    | NULL|     NULL|   NULL| NULL|
    +-----+---------+-------+-----+
    """
    return F.coalesce(
        max_metadata_version >= FIRST_CAPPING_METADATA_VERSION,
        F.when(finalized >= FIRST_CAPPING_METADATA_VERSION, True),
        release >= FIRST_CAPPING_RELEASE,
    )


def release_number(kafka_version: Column) -> Column:
    """The Apache release that a text names, as major * 1000 + minor; NULL if it names none (`versions.release_number`).

    >>> df = spark.createDataFrame([("4.10",), ("3.6-IV2",), ("3.7+vendor",), (" v4.3.1 ",), ("7.3.3-ccs",), ("2.0.0-cp1",),
    ...                             ("3.9rc1",), ("3.7_1",), ("3.x",), ("trunk",), ("",), (None,)], "version string")
    >>> [number for (number,) in df.select(release_number(F.col("version"))).collect()]
    [4010, 3006, 3007, 4003, 3003, 2000, None, None, None, None, None, None]
    """
    numbers = F.regexp_extract(kafka_version, rf"(?s)\A\s*{versions.PATTERN}\s*\z", 1)
    part = F.split(F.when(numbers != "", numbers), r"\.")
    minor = F.coalesce(F.try_element_at(part, F.lit(2)).cast("int"), F.lit(0))
    by_major = literal(versions.FIRST_RELEASES, "map<string,array<int>>")
    first = F.try_element_at(by_major, F.element_at(part, 1).cast("int").cast("string"))
    return F.when(minor <= first[1], first[0] + minor)


def effective_min_isr(min_isr: Column, replicas: Column, caps: Column) -> Column:
    """The number of in-sync replicas below which the leader rejects acks=all writes.

    NULL if the result depends on an unknown release or value. With one replica, a leader that caps enforces 1 in any case.

    min_isr: min.insync.replicas as configured.
    replicas: their number, including those being added and removed.
    caps: `caps_min_isr` of the leader.

    >>> df = spark.createDataFrame([(2, 3, None), (3, 2, True), (3, 2, False), (3, 2, None),
    ...                             (None, 3, True), (None, 1, True)],
    ...                            "min_isr int, replicas int, caps boolean")
    >>> df.select("*", effective_min_isr(*map(F.col, df.columns)).alias("effective")).show()
    +-------+--------+-----+---------+
    |min_isr|replicas| caps|effective|
    +-------+--------+-----+---------+
    |      2|       3| NULL|        2|
    |      3|       2| true|        2|
    |      3|       2|false|        3|
    |      3|       2| NULL|     NULL|
    |   NULL|       3| true|     NULL|
    |   NULL|       1| true|        1|
    +-------+--------+-----+---------+
    """
    either_way = F.when(min_isr <= replicas, min_isr).when(caps & (replicas == 1), replicas)
    return either_way.when(min_isr.isNotNull(), F.when(caps, replicas).when(~caps, min_isr))


def enough_in_sync(isr: Column, min_isr: Column, replicas: Column, effective: Column) -> Column:
    """Are enough replicas in sync for the leader to accept acks=all writes? NULL if that depends on an unknown release.

    isr: the number in sync.
    effective: `effective_min_isr` of the other arguments.

    >>> df = spark.createDataFrame([(2, 2, 3, 2), (1, 2, 3, 2), (1, 4, 3, None), (3, 4, 3, None), (1, None, 3, None)],
    ...                            "isr int, min_isr int, replicas int, effective int")
    >>> df.select("*", enough_in_sync(*map(F.col, df.columns)).alias("enough")).show()
    +---+-------+--------+---------+------+
    |isr|min_isr|replicas|effective|enough|
    +---+-------+--------+---------+------+
    |  2|      2|       3|        2|  true|
    |  1|      2|       3|        2| false|
    |  1|      4|       3|     NULL| false|
    |  3|      4|       3|     NULL|  NULL|
    |  1|   NULL|       3|     NULL|  NULL|
    +---+-------+--------+---------+------+
    """
    return F.coalesce(isr >= effective, F.when((min_isr > replicas) & (isr < replicas), False))
