"""broker-rack: a broker without broker.rack while any broker has one, or while the policy speaks of racks (KIP-36, KIP-1290)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "broker-rack"


def broker_verdicts(plan: Plan) -> list[Column]:
    """Reads `b`, the broker, and `racks`, the names known in its cluster."""
    state = F.coalesce(F.col("b")["rack_state"], F.lit("unknown"))
    matters = F.lit(speaks_of_racks(plan)) | (F.size("racks") > 0)
    outcome = F.when(state == "unknown", base.UNKNOWN).when((state == "none") & matters, base.FAIL).otherwise(base.PASS)
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=F.when(state == "unknown", F.coalesce(F.col("b")["down"], F.lit("unreadable"))).otherwise(
            "configuration:broker.rack"
        ),
        observed={"rack": F.col("b")["rack"], "rack_state": state},
        required={"rack_state": F.lit("named")},
        evidence={"racks": F.col("racks"), "unracked_brokers": F.col("unracked_brokers")},
    )
    return [verdict]


def speaks_of_racks(plan: Plan) -> bool:
    """Does a tier of the policy ask for racks?"""
    return any(
        t.get("replica_racks") or t.get("min_insync_racks") or t.get("acked_racks") or "rack" in t.get("survive", ())
        for t in plan.policy.tiers.values()
    )
