"""broker-rack: a broker without broker.rack while any broker has one, or while the policy speaks of racks (KIP-36, KIP-1290)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "broker-rack"


def finding(policy_speaks_of_racks: bool) -> Column:
    """Reads `b`, the broker, and `racks`, the names known in its cluster."""
    state = F.coalesce(F.col("b")["rack_state"], F.lit("unknown"))
    matters = F.lit(policy_speaks_of_racks) | (F.size("racks") > 0)
    outcome = F.when(state == "unknown", base.UNKNOWN).when((state == "none") & matters, base.FAIL).otherwise(base.PASS)
    return base.finding(
        CONTROL,
        outcome,
        cause=F.when(state == "unknown", F.coalesce(F.col("b")["down"], F.lit("unreadable"))).otherwise(
            "configuration:broker.rack"
        ),
        observed=base.as_json(rack=F.col("b")["rack"], rack_state=state),
        required=base.as_json(rack_state=F.lit("named")),
        message=F.when(
            outcome == base.FAIL,
            base.say(
                "no broker.rack, while %s; its replicas count for no rack",
                F.when(F.size("racks") > 0, base.listed(F.col("racks"), "racks are named: ")).otherwise(
                    "the policy requires racks"
                ),
            ),
        ).when(outcome == base.UNKNOWN, "its rack is unknown: the broker could not be described"),
        remediation=F.when(state == "unknown", "Bring the broker back, or let the auditor describe it").otherwise(
            base.set_racks()
        ),
    )
