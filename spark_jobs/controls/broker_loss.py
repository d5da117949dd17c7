"""broker-loss: does the topic survive the loss of any one broker, if its tier requires it?

`spark_jobs.assemble.failure_costs` computes what each loss breaks.
"""

from collections.abc import Iterable

from pyspark.sql import Column

from durability.plan.plan import Plan
from spark_jobs.frames import loss_verdicts as rule

CONTROL = "broker-loss"


def loss_verdicts(plan: Plan) -> Iterable[Column]:
    yield rule.verdict(CONTROL, "broker")
