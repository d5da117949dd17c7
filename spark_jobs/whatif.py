"""Predicts a loss: `spark-submit whatif.py --plan plan.json --lose lose.json`.

Reads the facts of the plan's snapshot and writes `loss_outcomes`. lose.json has the ids that are lost, by cluster:
`{"eu": {"brokers": [3], "controllers": []}}`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from durability.lake import tables
from durability.plan.plan import Plan
from spark_jobs import lake_tables, session
from spark_jobs.assemble import loss_outcomes
from spark_jobs.assemble.evaluation import keyed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", required=True, metavar="FILE")
    parser.add_argument("--lose", required=True, metavar="FILE")
    options = parser.parse_args()
    plan, lose = Plan.read(options.plan), json.loads(Path(options.lose).read_text(encoding="utf-8"))
    spark = session.start(f"durability {plan.run_id}")
    try:
        rows = loss_outcomes.outcomes(lake_tables.reader(spark, plan), plan, lose)
        lake_tables.append(keyed(rows, plan, tables.LOSS_OUTCOMES), tables.LOSS_OUTCOMES)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
