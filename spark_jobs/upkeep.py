"""Upkeep of the lake: `spark-submit upkeep.py --plan retention.json`.

Removes the rows that the plan names (`durability.lake.retention`), then compacts tables, expires old states and removes orphan
files.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from durability.lake import tables
from durability.lake.retention import RetentionPlan
from spark_jobs import session
from spark_jobs.retention import compaction
from spark_jobs.retention.removal import Upkeep


def run(spark: SparkSession, plan: RetentionPlan) -> None:
    """Run one upkeep, table by table, and print a line for each action."""
    for removed in Upkeep(spark, plan).remove():
        if removed.dropped or removed.rewritten:
            print(f"{removed.table}: files_dropped={removed.dropped} files_rewritten={removed.rewritten}", flush=True)
    for table in tables.TABLES.values():
        for line in compaction.maintain(spark, table, plan):
            print(f"{table.name}: {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", required=True, metavar="FILE")
    plan = RetentionPlan.read(parser.parse_args().plan)
    spark = session.start("durability upkeep")
    try:
        run(spark, plan)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
