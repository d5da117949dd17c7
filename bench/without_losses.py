"""Evaluates a plan without the losses of brokers and racks: `spark-submit without_losses.py --plan plan.json`.

That is the part of `evaluate` that the peers' verdicts are compared with. What `evaluate` takes longer, the losses cost.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from unittest import mock

from pyspark.sql import DataFrame

from spark_jobs import evaluate
from spark_jobs.assemble import evaluation
from spark_jobs.assemble.failure_costs import Losses


class WithoutLosses(evaluation.Evaluation):
    """An evaluation whose tables of losses are empty. It has no verdicts of `broker-loss` and `rack-loss`."""

    def _found_losses(self) -> Losses:
        def nothing() -> DataFrame:
            return self.spark.createDataFrame([], "cluster string")

        return cast(Losses, SimpleNamespace(costs=nothing, sets=nothing))

    def counters(self) -> DataFrame:
        now = self._counted_now()
        return now if self.earlier is None else now.unionByName(self.earlier)

    def _loss_outcomes(self, topics: DataFrame) -> list[DataFrame]:
        return []


if __name__ == "__main__":
    with mock.patch.object(evaluation, "Evaluation", WithoutLosses):
        evaluate.main()
