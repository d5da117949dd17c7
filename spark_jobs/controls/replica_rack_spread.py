"""replica-rack-spread: a partition's replicas span fewer racks than the tier requires (KIP-1290's placement side).

A broker without broker.rack adds no rack, an unknown rack may be any: too few is certain, or UNKNOWN.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs import target
from spark_jobs.controls import base
from spark_jobs.flagged import Flagged

CONTROL = "replica-rack-spread"


def required() -> Column:
    return F.col("required")["replica_racks"]


def measures() -> dict[str, Column | Flagged]:
    return base.measure(CONTROL, F.col("replica_racks"), required())


def outcome() -> Column:
    return base.at_least(CONTROL, required())


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, F.col("replica_rack_spread_worst"), required())


def placement_cause() -> Column:
    """Nobody has a rack: one setting. Else where the replicas were put."""
    return F.when(F.size("racks") == 0, "configuration:broker.rack").otherwise("placement")


def finding() -> Column:
    worst, failing = F.col("replica_rack_spread_worst"), F.col("replica_rack_spread_failing")
    racks_known = F.size("racks") + F.col("unknown_racks")
    return base.finding(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.coalesce(base.not_feasible(required(), racks_known), placement_cause()),
        observed=base.as_json(replica_racks=worst),
        required=base.as_json(replica_racks=required()),
        partitions=failing,
        message=base.say(
            "%s: replicas span %s of the %s racks that tier %s requires",
            base.partitions_listed(failing),
            worst,
            required(),
            F.col("tier"),
        ),
        remediation=target.place(),
    )
