"""policy-feasible: a tier asks for more brokers or racks than the cluster has, so none of its topics can comply."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "policy-feasible"


def finding() -> Column:
    """Reads `tier`, its `required`, and the cluster's `brokers`, `racks` and `unknown_racks`."""
    need = F.col("required")
    brokers, racks, unknown = F.size("brokers"), F.size("racks"), F.col("unknown_racks")
    zero = F.lit(0)
    # Replicas stand on different brokers; headroom comes on top of the min ISR.
    want_brokers = F.greatest(
        F.coalesce(need["replication_factor"], zero),
        F.coalesce(need["min_insync_replicas"], zero) + F.coalesce(need["write_headroom"], zero),
        F.coalesce(need["acked_copies"], zero),
    )
    want_racks = F.greatest(
        F.coalesce(need["replica_racks"], zero),
        F.coalesce(need["min_insync_racks"], zero),
        F.coalesce(need["acked_racks"], zero),
        F.when(F.array_contains(need["survive"], "rack"), F.lit(2)).otherwise(zero),
    )
    few_brokers = F.col("brokers_known") & (want_brokers > brokers)
    few_racks = want_racks > racks + unknown
    outcome = (
        F.when(few_brokers | few_racks, base.FAIL)
        .when(((want_racks > racks) & (unknown > 0)) | ~F.col("brokers_known"), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    words = F.array_compact(
        F.array(
            F.when(few_brokers, base.say("%s brokers needed, %s there", want_brokers, brokers)),
            F.when(few_racks, base.say("%s racks needed, %s there", want_racks, racks)),
        )
    )
    return base.finding(
        CONTROL,
        outcome,
        cause=base.say(base.INFEASIBLE, F.col("tier")),
        observed=base.as_json(brokers=brokers, racks=racks),
        required=base.as_json(brokers=want_brokers, racks=want_racks),
        message=F.when(outcome == base.FAIL, F.array_join(words, "; ")).when(
            outcome == base.UNKNOWN, "brokers, or the racks of some, are unknown"
        ),
        remediation=F.lit("Give the cluster more brokers or racks, or its topics another tier"),
    )
