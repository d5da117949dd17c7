"""rack-loss: does the topic survive the loss of any one rack with its controllers, if its tier requires it?

`spark_jobs.assemble.failure_costs` computes what each loss breaks.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames import loss_verdicts as rule

CONTROL = "rack-loss"


def loss_verdicts(plan: Plan) -> Iterable[Column]:
    yield rule.verdict(CONTROL, "rack")


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """One UNKNOWN if no broker's rack is known and a tier requires topics to survive the loss of a rack."""
    unplaced = F.size("racks") == 0
    yield base.verdict(
        CONTROL,
        F.when(unplaced & F.coalesce("survives_rack", F.lit(False)), base.UNKNOWN),
        cause="configuration:broker.rack",
        observed={"racks": F.size("racks")},
        required={"survive": F.lit("rack")},
        evidence={
            base.REASON: F.lit("no-racks"),
            "unplaced": F.col("unracked_brokers"),
            "unplaced_voters": F.array().cast("array<int>"),
        },
    )
