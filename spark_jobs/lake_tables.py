"""Reads and writes the lake's tables in a run."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.lake import tables
from durability.plan.plan import Plan
from spark_jobs import session

Reader = Callable[[str], DataFrame]
"""Takes the name of a lake table, returns all of its rows."""


def reader(spark: SparkSession, plan: Plan) -> Reader:
    """A reader of the lake's tables. For a pulse, fact tables have the rows of its staged files."""
    facts_of = {table.name for table in tables.FACTS} if plan.pulse else set()

    def read(name: str) -> DataFrame:
        # Count opening a file as reading a megabyte. Otherwise each cluster would need a task or two.
        table = spark.read.option("file-open-cost", str(1 << 20)).table(session.table(spark, name))
        if name not in facts_of:
            return table
        paths = plan.staged.get(name)
        if not paths:
            return table.where(F.lit(False))
        if paths[0].startswith("s3://"):
            return through_python(spark, plan, tables.TABLES[name])
        # Use the table's schema, not that of the files. A column that a file lacks is NULL, as in the lake.
        return spark.read.schema(table.schema).parquet(*paths)

    return read


def through_python(spark: SparkSession, plan: Plan, table: tables.Table) -> DataFrame:
    """A pulse's staged facts, read by the driver: on S3 Spark can read Iceberg tables, but not plain files."""
    from durability.lake import Lake

    assert plan.lake is not None
    rows = Lake.open(plan.lake).read_files(table, plan.staged[table.name])
    # Use one chunk: Spark 4.1 loses rows of an Arrow table in many small chunks.
    return spark.createDataFrame(rows.combine_chunks())


def append(frame: DataFrame, table: tables.Table) -> None:
    """Appends to a lake table in one commit, without a shuffle or a sort: `lake_upkeep` sorts later."""
    name = session.table(frame.sparkSession, table.name)
    options = {"use-table-distribution-and-ordering": "false", "fanout-enabled": "true"}
    _with_retired(frame, table, name).writeTo(name).options(**options).append()


def _with_retired(frame: DataFrame, table: tables.Table, name: str) -> DataFrame:
    """`frame` with NULL in the retired columns that this lake's table has: Spark requires all columns of a table."""
    if not table.retired:
        return frame
    there = {field.name: field.dataType for field in frame.sparkSession.table(name).schema}
    return frame.withColumns({column: F.lit(None).cast(there[column]) for column in table.retired if column in there})
