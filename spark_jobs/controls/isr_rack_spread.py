"""isr-rack-spread: the racks that in-sync replicas span against min.insync.racks (KIP-1290).

UnderMinRackIsr: fewer than required, what a broker would answer with NOT_ENOUGH_RACKS, were the partition led and had
enough replicas in sync. AtMinRackIsr: exactly that number where the replicas span more, so that one more rack lost is
too many. Brokers without broker.rack share one unnamed rack. `min_racks` is the stricter of the setting, were it one, and
the tier's min_insync_racks: brokers don't enforce it yet. A minimum of 1, Kafka's default, asks for nothing.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.controls import replica_rack_spread
from spark_jobs.frames import base, rack_health, target
from spark_jobs.frames.flagged import Flagged, each

CONTROL = "isr-rack-spread"
UNDER, AT = rack_health.UNDER, rack_health.AT
NAMES = "isr_rack_spread_names"


def required() -> Column:
    return rack_health.racks_wanted(F.col("min_racks"))


def measures() -> dict[str, Column | Flagged]:
    """Over a topic's partitions, led or not: without a leader there is no metric of the proposal's, but the last ISR still
    holds the acknowledged writes, and it spans too few racks for them. What a write is answered is told for each."""
    under, at = F.col("under_min_racks"), F.col("at_min_racks")
    undecided = at.isNull() & ~F.coalesce(under, F.lit(False))
    # Where one partition is short because something is down, that is the topic's cause: it can be mended now.
    by_placement = under & (F.col("replica_span")["most"] < required())
    otherwise = under & ~F.coalesce(F.col("replica_span")["most"] < required(), F.lit(False)) & (F.size("causes") > 0)
    return {
        **base.measure(CONTROL, F.col("isr_racks"), required()),
        "isr_rack_spread_isr": base.of_the_least(F.array_intersect("replicas", "isr"), F.col("isr_racks")),
        "isr_rack_spread_at": base.partition_ids(at),
        "isr_rack_spread_errors": Flagged(
            under, lambda those: F.sort_array(F.array_distinct(each(those, "acks_all_kip_1290_error")))
        ),
        "isr_rack_spread_at_unknown": F.coalesce(F.bool_or(undecided), F.lit(True)),
        "isr_rack_spread_by_placement": F.coalesce(F.bool_or(by_placement) & ~F.bool_or(otherwise), F.lit(False)),
        "isr_rack_spread_causes": base.causes_where(
            F.when(under, ~F.coalesce(by_placement, F.lit(False))).otherwise(at)
        ),
    }


def enough_racks() -> Column:
    """The outcome as to UnderMinRackIsr. A setting that could not be read may want more racks than the tier does."""
    enough = base.at_least(CONTROL, required())
    return F.when(enough == base.FAIL, enough).when(~F.col("min_racks_known"), base.UNKNOWN).otherwise(enough)


def outcome() -> Column:
    enough = enough_racks()
    return (
        F.when(enough != base.PASS, enough)
        .when(F.size("isr_rack_spread_at") > 0, base.FAIL)
        .when(F.col("isr_rack_spread_at_unknown"), base.UNKNOWN)
        .otherwise(base.PASS)
    )


def check() -> Column:
    """Cross-checked for UnderMinRackIsr alone: being at the minimum is no order between two numbers."""
    return base.check(CONTROL, F.col("isr_rack_spread_worst"), required(), enough_racks())


def _by_category() -> Column:
    """The partitions under the minimum and those at it, of a topic that has any; NULL elsewhere."""
    under, at = F.col("isr_rack_spread_failing"), F.col("isr_rack_spread_at")
    return F.when((F.size(under) > 0) | (F.size(at) > 0), F.struct(under.alias(UNDER), at.alias(AT)))


def names() -> Column:
    """NAMES: of the racks that the worst partition's ISR stands in, in order. Reads `rack_of`, the cluster's racks by broker:
    partitions that differ only in which racks they stand in are alike, and judged through one of them."""
    racks = F.transform("isr_rack_spread_isr", lambda id: F.try_element_at("rack_of", id))
    return F.array_sort(F.array_distinct(F.array_compact(racks)))


def topic_verdicts(plan: Plan) -> list[Column]:
    """Reads NAMES beside what is measured."""
    worst, placed = F.col("isr_rack_spread_worst"), F.col("isr_rack_spread_by_placement")
    under = F.coalesce(worst < required(), F.lit(False))
    category = F.when(base.outcome_of(CONTROL) == base.FAIL, F.when(under, UNDER).otherwise(AT))
    causes = F.coalesce(base.dominant("isr_rack_spread_causes"), F.lit("placement"))
    # The unnamed rack of all brokers without broker.rack counts as one here.
    racks_known = F.size("racks") + F.least(F.size("unracked_brokers"), F.lit(1)) + F.col("unknown_racks")
    placement = F.coalesce(base.not_feasible(required(), racks_known), replica_rack_spread.placement_cause())
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=category,
        severity=F.when(under, base.severity_of(CONTROL, UNDER)).otherwise(base.severity_of(CONTROL, AT)),
        cause=F.when(under & placed, placement).otherwise(causes),
        observed={"isr_racks": worst, "category": category, "partitions_by_category": _by_category()},
        required={"min_insync_racks": required()},
        evidence={
            "racks": F.col(NAMES),
            "errors": F.col("isr_rack_spread_errors"),
            "by_placement": under & placed,
            "missing": causes,
            "target": target.evidence(),
        },
        partitions=F.when(under, F.col("isr_rack_spread_failing")).otherwise(F.col("isr_rack_spread_at")),
    )
    return [verdict]
