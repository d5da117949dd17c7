"""Which min.insync.replicas a partition's leader really enforces.

Since Kafka 3.7 (KAFKA-15583) a broker caps the configured value at the number of replicas, those being added and
removed included (`Partition.effectiveMinIsr`); before that it enforced the value as configured, so a value above the
replication factor rejected every acks=all write.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

# Supported metadata.version level that only 3.7 and later know; 3.6 ends at 14.
FIRST_CAPPING_METADATA_VERSION = 15


def caps_min_isr(max_metadata_version: Column, kafka_version: Column) -> Column:
    """Does a broker cap min.insync.replicas at its partition's replicas? NULL where its release is unknown.

    max_metadata_version: highest metadata.version level among the broker's supported features, an int; the binary's own
    word, so it wins. kafka_version: a release such as "4.3" or "3.6.2", compared as numbers.

    >>> df = spark.createDataFrame([(14, "4.3"), (None, "3.6.2"), (None, "3.7"), (None, "4.10"), (None, None)],
    ...                            "level int, version string")
    >>> df.select("*", caps_min_isr(F.col("level"), F.col("version")).alias("caps")).show()
    +-----+-------+-----+
    |level|version| caps|
    +-----+-------+-----+
    |   14|    4.3|false|
    | NULL|  3.6.2|false|
    | NULL|    3.7| true|
    | NULL|   4.10| true|
    | NULL|   NULL| NULL|
    +-----+-------+-----+
    """
    return F.coalesce(
        max_metadata_version >= FIRST_CAPPING_METADATA_VERSION, release_number(kafka_version) >= 3 * 1000 + 7
    )


def release_number(kafka_version: Column) -> Column:
    """A release as major * 1000 + minor, so that 4.10 is above 4.9; NULL where it is no release."""
    part = F.split(kafka_version, r"[.\-]")
    return F.try_element_at(part, F.lit(1)).try_cast("int") * 1000 + F.coalesce(
        F.try_element_at(part, F.lit(2)).try_cast("int"), F.lit(0)
    )


def effective_min_isr(min_isr: Column, replicas: Column, caps: Column) -> Column:
    """The number of in-sync replicas below which the leader rejects acks=all writes.

    min_isr: min.insync.replicas as configured; replicas: how many, being added and removed included; caps: whether the
    leader caps (`caps_min_isr`). NULL where it depends on an unknown release.

    >>> df = spark.createDataFrame([(2, 3, None), (3, 2, True), (3, 2, False), (3, 2, None),
    ...                             (None, 3, True)],
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
    +-------+--------+-----+---------+
    """
    return F.when(min_isr <= replicas, min_isr).when(min_isr.isNotNull(), F.when(caps, replicas).when(~caps, min_isr))
