"""policy-feasible: a tier requires more brokers or racks than the cluster has, so none of its topics can comply.

- Acknowledged copies need a min.insync.replicas of at least that number, and headroom needs more brokers.
- Acknowledged racks need a min.insync.replicas above the replicas in the fullest racks, so headroom then needs brokers in the
  other racks (KIP-1290).
- An even spread needs brokers in each rack.
- A tier can contradict itself: it needs more replicas than it allows, or its min_insync_replicas is too close to the replication
  factor for its headroom.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain
from spark_jobs.frames.racks import evenly_possible

CONTROL = "policy-feasible"


def tier_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `tier`, its `required`, and the cluster's `brokers`, `brokers_known`, `racks`, `unknown_racks`,
    `unracked_brokers` and `rack_layout`."""
    need, brokers_known = F.col("required"), F.col("brokers_known")
    brokers, racks, unknown = F.size("brokers"), F.size("racks"), F.col("unknown_racks")
    least, balanced = target.least_replicas(), certain(need["replica_rack_balance"])

    # Brokers. Each replica needs a separate one.
    want_brokers = F.greatest(F.lit(0), need["replication_factor"], target.copies() + target.headroom())
    few_brokers = brokers_known & (want_brokers > brokers)

    # Racks. Those that remain after the loss of one must still be enough.
    after_loss = F.when(target.survives("rack"), F.greatest(F.lit(1), need["acked_racks"]) + 1)
    spread = [need[key] for key in ("replica_racks", "min_insync_racks", "acked_racks")]
    in_own_racks = least - target.below_rf("replica_racks")
    want_racks = F.greatest(F.lit(0), *spread, after_loss, in_own_racks, F.when(balanced, 1))
    few_racks = want_racks > racks + unknown

    # Brokers outside the fullest racks, for headroom with acknowledged racks.
    want_beside, beside, beside_at_most = target.beside()
    few_beside = certain(brokers_known & ~few_racks & (want_beside > beside_at_most))

    # An even spread.
    uneven = balanced & ~evenly_possible(F.col("rack_layout"), least)
    few_in_a_rack = certain(brokers_known & ~few_racks & ~few_brokers & uneven & (unknown == 0))

    # The tier's own contradictions.
    few_allowed = certain(least > target.at_most())
    few_spare = certain(target.headroom() > target.below_rf("min_insync_replicas"))

    unsure = ((want_racks > racks) & (unknown > 0)) | certain(want_beside > beside) | (uneven & (unknown > 0))
    yield base.verdict(
        CONTROL,
        F.when(few_brokers | few_racks | few_beside | few_in_a_rack | few_allowed | few_spare, base.FAIL)
        .when(unsure | ~brokers_known, base.UNKNOWN)
        .otherwise(base.PASS),
        cause=base.infeasible(F.col("tier")),
        observed={"brokers": brokers, "racks": racks},
        required={"brokers": want_brokers, "racks": want_racks},
        evidence={
            "few_brokers": few_brokers,
            "few_racks": few_racks,
            "few_beside": few_beside,
            "few_in_a_rack": few_in_a_rack,
            "few_allowed": few_allowed,
            "few_spare": few_spare,
            "replicas": least,
            "at_most": target.at_most(),
            "smallest_rack": F.array_min(F.col("rack_layout")["racks"]),
            "below_rf": target.below_rf("min_insync_replicas"),
            "headroom": target.headroom(),
            "no_rack_named": (racks + unknown == 0) & (F.size("unracked_brokers") > 0),
            "beside_wanted": want_beside,
            "beside": beside,
            "fullest_racks": need["acked_racks"] - 1,
            "unracked_brokers": F.col("unracked_brokers"),
        },
    )
