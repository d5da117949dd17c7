"""replica-rack-spread: a partition's replicas span fewer racks than the tier requires (placement in KIP-1290).

A broker without broker.rack adds no rack. A broker whose rack is unknown may add one: then the partition fails only if its
racks are too few even with it, and is UNKNOWN otherwise.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target

CONTROL = "replica-rack-spread"
RULE = base.PartitionMinimum(CONTROL, "replica_racks", key="replica_racks")
measures, outcome, check = RULE.measures, RULE.outcome, RULE.check


def placement_cause() -> Column:
    """One missing setting where no broker has a rack, else the placement of the replicas."""
    return F.when(F.size("racks") == 0, "configuration:broker.rack").otherwise("placement")


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    racks_at_most = F.size("racks") + F.col("unknown_racks")
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(base.not_feasible(RULE.required, racks_at_most), placement_cause()),
        observed={"replica_racks": RULE.worst},
        required={"replica_racks": RULE.required},
        evidence={"target": F.col(target.TARGET), **base.unknown_apart_from_observers()},
        partitions=RULE.failing,
    )
