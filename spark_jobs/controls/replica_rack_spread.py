"""replica-rack-spread: a partition's replicas span fewer racks than the tier requires (KIP-1290's placement side).

A broker without broker.rack adds no rack, an unknown rack may be any: too few is certain, or UNKNOWN.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged

CONTROL = "replica-rack-spread"


def required() -> Column:
    return F.col("required")["replica_racks"]


def measures() -> dict[str, Column | Flagged]:
    return base.measure(CONTROL, F.col("replica_racks"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def check() -> Column:
    return base.check(CONTROL, F.col("replica_rack_spread_worst"), required())


def placement_cause() -> Column:
    """Nobody has a rack: one setting. Else where the replicas were put."""
    return F.when(F.size("racks") == 0, "configuration:broker.rack").otherwise("placement")


def topic_verdicts(plan: Plan) -> list[Column]:
    racks_known = F.size("racks") + F.col("unknown_racks")
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(base.not_feasible(required(), racks_known), placement_cause()),
        observed={"replica_racks": F.col("replica_rack_spread_worst")},
        required={"replica_racks": required()},
        evidence={"target": target.evidence()},
        partitions=F.col("replica_rack_spread_failing"),
    )
    return [verdict]
