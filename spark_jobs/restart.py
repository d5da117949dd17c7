"""Finds what partitions can spare while brokers restart: `spark-submit restart.py --plan plan.json`.

Reads the facts of the plan's snapshot and writes `restart_capacity`.
"""

from __future__ import annotations

import argparse

from durability.lake import tables
from durability.plan.plan import Plan
from spark_jobs import lake_tables, session
from spark_jobs.assemble import restart_capacity
from spark_jobs.assemble.evaluation import keyed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", required=True, metavar="FILE")
    options = parser.parse_args()
    plan = Plan.read(options.plan)
    spark = session.start(f"durability {plan.run_id}")
    try:
        rows = restart_capacity.capacities(lake_tables.reader(spark, plan), plan)
        lake_tables.append(keyed(rows, plan, tables.RESTART_CAPACITY), tables.RESTART_CAPACITY)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
