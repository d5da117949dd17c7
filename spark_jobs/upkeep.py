"""Upkeep of the lake: `spark-submit upkeep.py --decision decision.json`.

Removes what `durability.lake.keep` decided, then compacts, forgets states of before and removes files of no table.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from durability.lake import tables
from durability.lake import upkeep_notes as notes
from durability.lake.keep import Decision
from spark_jobs import session
from spark_jobs.retention import compaction
from spark_jobs.retention.removal import Upkeep


def run(spark: SparkSession, decision: Decision) -> None:
    """One upkeep, table by table, with a line on what was done."""
    for removed in Upkeep(spark, decision).remove():
        if removed.dropped or removed.rewritten:
            print(notes.removed(removed.table, removed.dropped, removed.rewritten), flush=True)
    for table in tables.TABLES.values():
        for line in compaction.tidied(spark, table, decision):
            print(f"{table.name}: {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decision", required=True, help="what durability.lake.keep decided, as JSON")
    decision = Decision.read(parser.parse_args().decision)
    spark = session.start("durability upkeep")
    try:
        run(spark, decision)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
