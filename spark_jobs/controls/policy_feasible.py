"""policy-feasible: a tier requires more brokers or racks than the cluster has, so none of its topics can comply.

- Acknowledged copies need a min.insync.replicas of at least that number, and headroom needs more brokers.
- Acknowledged racks need a min.insync.replicas above the replicas in the fullest racks, so headroom then needs brokers in the
  other racks (KIP-1290).
- An even spread needs brokers in each rack.
- A tier can contradict itself: it needs more replicas than it allows, or its min_insync_replicas is too close to the replication
  factor for its headroom.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain, let, struct
from spark_jobs.frames.racks import evenly_possible

CONTROL = "policy-feasible"
FEW = ("few_brokers", "few_racks", "few_beside", "few_in_a_rack", "few_allowed", "few_spare")


def tier_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `tier`, its `required`, and the cluster's `brokers`, `brokers_known`, `racks`, `unknown_racks`,
    `unracked_brokers` and `rack_layout`."""
    yield let(struct(_wanted()), lambda wanted: let(struct(_short(wanted)), lambda short: _verdict(wanted, short)))


def _wanted() -> dict[str, Column]:
    """What the tier needs, and the brokers outside the fullest racks, for headroom with acknowledged racks."""
    need, least = F.col("required"), target.least_replicas()
    # Each replica needs a separate broker.
    brokers = F.greatest(F.lit(0), need["replication_factor"], target.copies() + target.headroom())
    # The racks that remain after the loss of one must still be enough.
    after_loss = F.when(target.survives("rack"), F.greatest(F.lit(target.SURVIVING_RACKS), need["acked_racks"] + 1))
    spread = [need[key] for key in ("replica_racks", "min_insync_racks", "acked_racks")]
    in_own_racks = least - target.below_rf("replica_racks")
    racks = F.greatest(F.lit(0), *spread, after_loss, in_own_racks, F.when(need["replica_rack_balance"], 1))
    beside = dict(zip(("beside_wanted", "beside", "beside_at_most"), target.beside(), strict=True))
    return {"brokers": brokers, "racks": racks, "replicas": least, **beside}


def _short(wanted: Column) -> dict[str, Column]:
    """What the cluster, or the tier itself, doesn't allow; `uneven` and `unsure` may be due to unknown racks."""
    brokers_known, unknown, racks = F.col("brokers_known"), F.col("unknown_racks"), F.size("racks")
    few_brokers = brokers_known & (wanted["brokers"] > F.size("brokers"))
    few_racks = wanted["racks"] > racks + unknown
    balanced = certain(F.col("required")["replica_rack_balance"])
    uneven = balanced & ~evenly_possible(F.col("rack_layout"), wanted["replicas"])
    beside = certain(wanted["beside_wanted"] > wanted["beside"])
    return {
        "few_brokers": few_brokers,
        "few_racks": few_racks,
        "few_beside": certain(brokers_known & ~few_racks & (wanted["beside_wanted"] > wanted["beside_at_most"])),
        "few_in_a_rack": certain(brokers_known & ~few_racks & ~few_brokers & uneven & (unknown == 0)),
        "few_allowed": certain(wanted["replicas"] > target.at_most()),
        "few_spare": certain(target.headroom() > target.below_rf("min_insync_replicas")),
        "unsure": ((wanted["racks"] > racks) & (unknown > 0)) | beside | (uneven & (unknown > 0)),
    }


def _verdict(wanted: Column, short: Column) -> Column:
    few = {name: short[name] for name in FEW}
    racks, unknown = F.size("racks"), F.col("unknown_racks")
    fails = reduce(Column.__or__, few.values())
    return base.verdict(
        CONTROL,
        F.when(fails, base.FAIL).when(short["unsure"] | ~F.col("brokers_known"), base.UNKNOWN).otherwise(base.PASS),
        cause=F.when(fails, base.infeasible(F.col("tier"))).otherwise("unreadable"),
        observed={"brokers": F.size("brokers"), "racks": racks},
        required={"brokers": wanted["brokers"], "racks": wanted["racks"]},
        evidence={
            **few,
            "replicas": wanted["replicas"],
            "at_most": target.at_most(),
            "smallest_rack": F.array_min(F.col("rack_layout")["racks"]),
            "below_rf": target.below_rf("min_insync_replicas"),
            "headroom": target.headroom(),
            "no_rack_named": (racks + unknown == 0) & (F.size("unracked_brokers") > 0),
            "beside_wanted": wanted["beside_wanted"],
            "beside": wanted["beside"],
            "fullest_racks": F.col("required")["acked_racks"] - 1,
            "unracked_brokers": F.col("unracked_brokers"),
        },
    )
