"""broker-rack: a broker has no broker.rack although another broker has one or the policy requires racks (KIP-36, KIP-1290)."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import BELOW_RF
from spark_jobs.frames import base

CONTROL = "broker-rack"


def broker_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `b`, the broker, and `racks`, the names known in its cluster."""
    broker = F.col("b")
    state = F.coalesce(broker["rack_state"], F.lit("unknown"))
    needed = F.lit(requires_racks(plan)) | (F.size("racks") > 0)
    unread = F.coalesce(broker["down"], F.lit("unreadable"))
    yield base.verdict(
        CONTROL,
        F.when(state == "unknown", base.UNKNOWN).when((state == "none") & needed, base.FAIL).otherwise(base.PASS),
        cause=F.when(state == "unknown", unread).otherwise("configuration:broker.rack"),
        observed={"rack": broker["rack"], "rack_state": state},
        required={"rack_state": F.lit("named")},
        evidence={"racks": F.col("racks"), "unracked_brokers": F.col("unracked_brokers")},
    )


def requires_racks(plan: Plan) -> bool:
    """Does a tier of the policy require racks?"""
    keys = ("replica_racks", f"replica_racks{BELOW_RF}", "replica_rack_balance", "min_insync_racks", "acked_racks")
    return any(
        any(tier.get(key) not in (None, False) for key in keys) or "rack" in tier.get("survive", ())
        for tier in plan.policy.required.values()
    )
