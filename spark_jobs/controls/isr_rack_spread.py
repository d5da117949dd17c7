"""isr-rack-spread: the racks that in-sync replicas span, compared with min.insync.racks (KIP-1290).

UnderMinRackIsr: the ISR spans fewer racks than required. A broker with the proposal would reject acks=all writes with
NOT_RULE, if the partition has a leader and enough replicas in sync. AtMinRackIsr: the ISR spans exactly that number,
and the replicas span more. All brokers without broker.rack count as one unnamed rack.

`min_racks` is the stricter of the setting and the tier's min_insync_racks. Brokers don't enforce the setting yet. Kafka's
default of 1 requires nothing.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.controls import replica_rack_spread
from spark_jobs.frames import base, reassignment, target
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.flagged import Flagged, each
from spark_jobs.frames.partition_minimum import PartitionMinimum
from spark_jobs.frames.rack_health import AT, UNDER, min_racks_by_tier, min_racks_cause, racks_wanted

CONTROL = "isr-rack-spread"
NAMES = "isr_rack_spread_names"


class MinRackIsr(PartitionMinimum):
    @property
    def required(self) -> Column:
        return racks_wanted(F.col("min_racks"))


RULE = MinRackIsr(CONTROL, "isr_racks", key="min_insync_racks")


def measures() -> dict[str, Column | Flagged]:
    """Over a topic's partitions, with or without a leader.

    The last ISR of a leaderless partition still has the acknowledged writes.
    """
    under, at = F.col("under_min_racks"), F.col("at_min_racks")
    too_few_replica_racks = F.col("replica_span")["most"] < RULE.required
    by_placement = under & too_few_replica_racks
    # Among failing partitions, one with something down sets the topic's cause, because that can be fixed at once.
    in_sync = F.array_intersect("replicas", "isr")
    in_sync = F.when(F.size("dead_in_isr") > 0, F.array_except(in_sync, "dead_in_isr")).otherwise(in_sync)
    by_outage = under & ~certain(too_few_replica_racks) & (F.size("causes") > 0)
    not_placed = F.when(under, ~certain(by_placement)).otherwise(at)
    return RULE.measures() | {
        "isr_rack_spread_isr": base.at_worst_partition(in_sync, F.col("isr_racks")),
        "isr_rack_spread_at": base.partition_ids(at),
        "isr_rack_spread_errors": Flagged(
            under, lambda flagged: F.sort_array(F.array_distinct(each(flagged, "acks_all_kip_1290_error")))
        ),
        "isr_rack_spread_at_unknown": possible(F.bool_or(at.isNull() & ~certain(under))),
        "isr_rack_spread_by_placement": certain(F.bool_or(by_placement) & ~F.bool_or(by_outage)),
        "isr_rack_spread_causes": base.causes_where(not_placed),
        "isr_rack_spread_leaving": reassignment.removes_dead(not_placed),
    }


def enough_racks() -> Column:
    """The outcome for UnderMinRackIsr. A setting that could not be read may be stricter than the tier."""
    enough = RULE.outcome()
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
    """UnderMinRackIsr only: AtMinRackIsr isn't an order of two numbers."""
    return base.check(CONTROL, RULE.worst, RULE.required, enough_racks())


def names() -> Column:
    """NAMES: the sorted racks of the worst partition's ISR. Reads `rack_of`, the cluster's racks by broker.

    Partitions that differ only in the names of their racks are evaluated once, so the names are looked up afterwards.
    """
    racks = F.transform("isr_rack_spread_isr", lambda id: F.try_element_at("rack_of", id))
    return F.array_sort(F.array_distinct(F.array_compact(racks)))


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads NAMES besides the measures."""
    under_ids, at_ids = RULE.failing, F.col("isr_rack_spread_at")
    under = certain(RULE.worst < RULE.required)
    by_placement = under & F.col("isr_rack_spread_by_placement")
    category = F.when(base.outcome_of(CONTROL) == base.FAIL, F.when(under, UNDER).otherwise(AT))
    missing = F.coalesce(base.dominant("isr_rack_spread_causes"), F.lit("placement"))
    racks_at_most = F.size("racks") + F.least(F.size("unracked_brokers"), F.lit(1)) + F.col("unknown_racks")
    infeasible = base.not_feasible(RULE.required, racks_at_most)
    # Brokers without a rack may be in further racks, so their racks are set first.
    by_setting = infeasible.isNotNull() & ~min_racks_by_tier() & (F.size("unracked_brokers") == 0)
    wrong = F.when(by_setting, min_racks_cause()).otherwise(infeasible)
    placement = F.coalesce(wrong, replica_rack_spread.placement_cause())
    by_category = F.struct(under_ids.alias(UNDER), at_ids.alias(AT))
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=category,
        cause=F.when(by_placement, placement).otherwise(missing),
        observed={
            "isr_racks": RULE.worst,
            "category": category,
            "partitions_by_category": F.when((F.size(under_ids) > 0) | (F.size(at_ids) > 0), by_category),
        },
        required={"min_insync_racks": RULE.required},
        evidence={
            "racks": F.col(NAMES),
            "errors": F.col("isr_rack_spread_errors"),
            "by_placement": by_placement,
            "racks_at_most": F.when(by_placement & by_setting, racks_at_most),
            "missing": missing,
            "leaving": F.col("isr_rack_spread_leaving"),
            "target": F.col(target.TARGET),
            **base.unknown_apart_from_observers(),
        },
        partitions=F.when(under, under_ids).otherwise(at_ids),
    )
