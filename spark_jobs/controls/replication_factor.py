"""replication-factor: a partition has fewer replicas than its tier requires.

During a reassignment the smaller of two numbers counts: replicas without those being added, and without those being removed.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target

CONTROL = "replication-factor"
RULE = base.PartitionMinimum(CONTROL, "judged_rf", key="replication_factor")
measures, outcome, check = RULE.measures, RULE.outcome, RULE.check


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(target.infeasible(), F.lit("configuration:topic")),
        observed={"replication_factor": RULE.worst},
        required={"replication_factor": RULE.required},
        evidence={"target": F.col(target.TARGET), **base.unknown_because()},
        partitions=RULE.failing,
    )
