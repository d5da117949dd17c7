"""Evaluates the accepted snapshots of a run: `spark-submit evaluate.py --plan plan.json`, or `--awaited` and a named pipe.

The plan is read from the pipe once it is written. If it is empty, nothing is evaluated.
Reads the facts of the plan's snapshots. Writes `partition_health` and `health_counters`, in a nightly run also `topic_posture`
and `verdicts`. The rows become visible to readers when the run's row in `runs` is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from durability.plan.plan import Plan
from spark_jobs import lake_tables, session
from spark_jobs.assemble import topics
from spark_jobs.assemble.evaluation import run, topic_expressions


def warm_up(spark: SparkSession) -> topics.Expressions:
    """Run a small job, so that Spark loads its classes. Returns a nightly run's expressions, which are equal for all plans."""
    spark.range(1).groupBy("id").count().localCheckpoint()
    return topic_expressions(pulse=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--plan", metavar="FILE")
    given.add_argument("--awaited", metavar="PIPE")
    options = parser.parse_args()
    plan = Plan.read(options.plan) if options.plan else None
    spark = session.start(f"durability {plan.run_id}" if plan else "durability")
    try:
        expressions = None
        if options.awaited:
            expressions = warm_up(spark)
            text = Path(options.awaited).read_text(encoding="utf-8")
            plan = Plan.from_json(text) if text else None
        if plan:
            run(spark, plan, lake_tables.reader(spark, plan), lake_tables.append, None if plan.pulse else expressions)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
