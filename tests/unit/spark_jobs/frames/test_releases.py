"""Spark and Python read the same Apache release out of a version, whoever numbered it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from durability.topology import versions
from spark_jobs.frames.effective_min_isr import release_number

RELEASES = {
    "0.8.2.2": 8,
    "0.10.2.1": 10,
    "0.10.2.1-cp1": 10,
    "0.11.0-kafka-3.0.0": 11,
    "1.1.1-cp1": 1001,
    "2.0.0-cp1": 2000,
    "2.4.1.7.1.7.0-551": 2004,
    "2.8.1.amzn-1": 2008,
    "2.8.2.tiered": 2008,
    "3.6-IV2": 3006,
    "3.6.0.redhat-00007": 3006,
    "3.7.x": 3007,
    "3.7.x.kraft": 3007,
    "3.9.1-inkless": 3009,
    "4.4.0-SNAPSHOT": 4004,
    "4.10": 4010,
    " v4.3.1 ": 4003,
    "4": 4000,
    "5.5.15-ccs": 2005,
    "5.0.1": 2000,
    "6.0.0-ccs-SNAPSHOT": 2006,
    "6.2.1-ce": 2008,
    "7.3.3-ccs": 3003,
    "7.4.0-0": 3004,
    "7.6.0-ce": 3006,
    "7.6.0": 3006,
    "8.0.0": 4000,
    "8.1.0-ce": 4001,
}
NO_RELEASES = (
    *(
        "trunk",
        "",
        "unknown",
        "3.x",
        "3",
        "7",
        "3.9rc1",
        "3.7_1",
        "3.10",
        "2.9.0",
        "1.5.0",
        "5.6.0",
        "6.3.0",
        "9.0.0",
        "v21.6.1",
    ),
    *("5.0.0-SNAPSHOT", "5.1-IV0", "5.0.0-rc1", "4.1.2-ce", "3.3.0-ccs", "0.12.0", "1.2.3.4.5.x", "²", "99999999.1"),
)


@pytest.mark.parametrize("version, release", [*RELEASES.items(), *((version, None) for version in NO_RELEASES)])
def test_python(version, release):
    assert versions.release_number(version) == release
    numbers = versions.parse(version)
    assert (None if numbers is None else ([*numbers, 0][0] * 1000 + [*numbers, 0][1])) == release


def test_spark(spark):
    texts = [*RELEASES, *NO_RELEASES, None]
    rows = spark.createDataFrame([(text,) for text in texts], "version string")
    found = rows.select("version", release_number(F.col("version")).alias("release")).collect()
    assert {row.version: row.release for row in found} == {text: versions.release_number(text) for text in texts}


@pytest.mark.parametrize(
    "version, later", [("3.x", True), ("v21.6.1", True), ("3.9rc1", True), ("trunk", False), ("0.x", False)]
)
def test_texts_that_name_no_release_but_are_not_before_0_11(version, later):
    assert bool(versions.re.fullmatch(versions.NUMBERED_1_OR_LATER, version)) is later
