"""policy-feasible: a tier asks for more brokers or racks than the cluster has, so none of its topics can comply.

Acknowledged copies are min.insync.replicas, and headroom comes on top. Acknowledged racks ask for a minimum above what the
racks that hold most replicas hold, so what is to be lost on top must stand in others (KIP-1290).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target

CONTROL = "policy-feasible"


def tier_verdicts(plan: Plan) -> list[Column]:
    """Reads `tier`, its `required`, and the cluster's `brokers`, `racks`, `unknown_racks`, `unracked_brokers` and
    `rack_layout`."""
    need = F.col("required")
    brokers, racks, unknown = F.size("brokers"), F.size("racks"), F.col("unknown_racks")
    zero = F.lit(0)
    loses_rack = F.coalesce(F.array_contains(need["survive"], "rack"), F.lit(False))
    # Replicas stand on different brokers; headroom comes on top of the min ISR.
    want_brokers = F.greatest(zero, need["replication_factor"], target.copies() + target.headroom())
    want_racks = F.greatest(
        F.coalesce(need["replica_racks"], zero),
        F.coalesce(need["min_insync_racks"], zero),
        F.coalesce(need["acked_racks"], zero),
        # What is left after the loss of a rack must still reach as many.
        F.when(loses_rack, F.greatest(F.lit(1), need["acked_racks"]) + 1).otherwise(zero),
    )
    want_beside, beside, beside_at_most = target.beside()
    few_brokers = F.col("brokers_known") & (want_brokers > brokers)
    few_racks = want_racks > racks + unknown
    few_beside = F.coalesce(F.col("brokers_known") & ~few_racks & (want_beside > beside_at_most), F.lit(False))
    unsure = ((want_racks > racks) & (unknown > 0)) | F.coalesce(want_beside > beside, F.lit(False))
    outcome = (
        F.when(few_brokers | few_racks | few_beside, base.FAIL)
        .when(unsure | ~F.col("brokers_known"), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=base.infeasible(F.col("tier")),
        observed={"brokers": brokers, "racks": racks},
        required={"brokers": want_brokers, "racks": want_racks},
        evidence={
            "few_brokers": few_brokers,
            "few_racks": few_racks,
            "few_beside": few_beside,
            "no_rack_named": (racks + unknown == 0) & (F.size("unracked_brokers") > 0),
            "beside_wanted": want_beside,
            "beside": beside,
            "fullest_racks": need["acked_racks"] - 1,
            "unracked_brokers": F.col("unracked_brokers"),
        },
    )
    return [verdict]
