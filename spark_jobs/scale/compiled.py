"""Compiles the few plans that run over many rows to Java. All others are interpreted (`durability.runtime.spark`).

Measured at 7 million partitions placed as Kafka places them: evaluate took 95.6 CPU seconds (51 s) with it, 116.1 (62 s) without.
"""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame

from spark_jobs.session import REQUIRED

EXPRESSIONS = {"spark.sql.codegen.factoryMode": "FALLBACK"}
COMPILED = {**EXPRESSIONS, "spark.sql.codegen.wholeStage": "true"}


def compiled(frame: DataFrame, whole: bool = True) -> DataFrame:
    """`frame` in a session of its own, which compiles the plans of all frames that are made from it.

    For short plans over millions of rows. whole: compile each stage as one method. HotSpot interprets a method of more than 8,000
    bytes. Long expressions are compiled one by one instead: the keys of loss patterns then took 3.3 CPU seconds, and 15.4 as one
    method. In a join, `frame` must be on the left: the session of the leftmost frame runs a plan.

    >>> few = spark.range(4).where("id > 1")
    >>> joined = compiled(few).join(few, "id")
    >>> sorted(row.id for row in joined.collect())
    [2, 3]
    >>> [frame.sparkSession.conf.get("spark.sql.codegen.wholeStage") for frame in (few, joined)]
    ['false', 'true']
    """
    spark = frame.sparkSession.newSession()
    # A new session has the application's settings alone. The frame may be written to a catalog of its own session.
    catalogs = {k: v for k, v in frame.sparkSession.conf.getAll.items() if k.startswith("spark.sql.catalog.")}
    for key, value in {**catalogs, **REQUIRED, **(COMPILED if whole else EXPRESSIONS)}.items():
        spark.conf.set(key, value)
    # All sessions share global views. The returned frame works without the view, and the view would keep the rows in memory.
    name = f"compiled_{uuid.uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        return spark.table(f"{spark.conf.get('spark.sql.globalTempDatabase')}.{name}")
    finally:
        spark.catalog.dropGlobalTempView(name)
