"""Evaluates the accepted snapshots of a run: `spark-submit evaluate.py --plan plan.json`, or `--awaited` and a named pipe.

Reads facts of the attempts that the plan names, writes `partition_health`, `health_counters`, and of a nightly run
`topic_posture` and `verdicts`. They count for nobody until the run's row exists.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from durability.plan.plan import Plan
from spark_jobs import lake_tables, session
from spark_jobs.assemble import topics
from spark_jobs.assemble.evaluation import asked_of_topics, run


def prepared(spark: SparkSession) -> topics.Asked:
    """What a nightly run asks of topics, whatever its plan will be; and Spark has loaded what it plans and runs a job with."""
    spark.range(1).groupBy("id").count().localCheckpoint()
    return asked_of_topics(pulse=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--plan", help="the run's plan.json")
    given.add_argument("--awaited", help="a named pipe that the plan will come through; nothing, and nothing is judged")
    options = parser.parse_args()
    plan = Plan.read(options.plan) if options.plan else None
    spark = session.start(f"durability {plan.run_id}" if plan else "durability")
    try:
        of_topics = None
        if options.awaited:
            of_topics = prepared(spark)
            text = Path(options.awaited).read_text(encoding="utf-8")
            plan = Plan.from_json(text) if text else None
        if plan:
            run(spark, plan, lake_tables.reader(spark, plan), lake_tables.append, None if plan.pulse else of_topics)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
