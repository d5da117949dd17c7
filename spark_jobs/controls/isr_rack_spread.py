"""isr-rack-spread: the racks that in-sync replicas span against min.insync.racks (KIP-1290).

UnderMinRackIsr: fewer than required, what a broker would answer with NOT_ENOUGH_RACKS. AtMinRackIsr: exactly that number
where the replicas span more, so that one more rack lost is too many. Brokers without broker.rack share one unnamed rack.
`min_racks` is the stricter of the setting, were it one, and the tier's min_insync_racks: brokers don't enforce it yet.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base, replica_rack_spread

CONTROL = "isr-rack-spread"
UNDER, AT = "under-min-rack-isr", "at-min-rack-isr"


def required() -> Column:
    return F.col("min_racks")


def measures() -> dict[str, Column]:
    under, at = F.col("under_min_racks"), F.col("at_min_racks")
    return {
        **base.measure(CONTROL, F.col("isr_racks"), required()),
        "isr_rack_spread_at": base.partition_ids(at),
        "isr_rack_spread_at_unknown": F.coalesce(
            F.bool_or(at.isNull() & ~F.coalesce(under, F.lit(False))), F.lit(True)
        ),
        "isr_rack_spread_by_placement": F.coalesce(
            F.bool_or(under & (F.col("replica_span")["most"] < required())), F.lit(False)
        ),
        "isr_rack_spread_causes": F.array_distinct(F.flatten(F.collect_list(F.when(under | at, F.col("causes"))))),
    }


def outcome() -> Column:
    enough = base.at_least(CONTROL, required())
    return (
        F.when(enough != base.PASS, enough)
        .when(F.size("isr_rack_spread_at") > 0, base.FAIL)
        .when(F.col("isr_rack_spread_at_unknown"), base.UNKNOWN)
        .otherwise(base.PASS)
    )


def posture() -> dict[str, Column]:
    """Cross-checked for UnderMinRackIsr alone: being at the minimum is no order between two numbers."""
    return base.scalar_columns(CONTROL, base.at_least(CONTROL, required()), F.col("isr_rack_spread_worst"), required())


def finding() -> Column:
    worst = F.col("isr_rack_spread_worst")
    under = F.col("isr_rack_spread_worst") < required()
    ids = F.when(under, F.col("isr_rack_spread_failing")).otherwise(F.col("isr_rack_spread_at"))
    category = F.when(outcome() == base.FAIL, F.when(under, UNDER).otherwise(AT))
    words = base.say(base.partitions_listed(ids), ": isr spans ", worst, " rack(s), ", required(), " required")
    message = F.when(
        under, F.concat(words, F.lit("; losing one rack can lose acknowledged writes (KIP-1290: NOT_ENOUGH_RACKS)"))
    ).otherwise(F.concat(words, F.lit("; exactly the minimum, one more rack lost would be too many")))
    causes = dominant("isr_rack_spread_causes")
    infeasible = base.not_feasible(
        required(), F.size("racks") + F.least(F.size("unracked_brokers"), F.lit(1)) + F.col("unknown_racks")
    )
    return base.finding(
        CONTROL,
        outcome(),
        category=category,
        severity=F.when(under, base.severity_of(CONTROL, UNDER)).otherwise(base.severity_of(CONTROL, AT)),
        cause=F.when(
            under,
            F.coalesce(
                infeasible,
                F.when(F.col("isr_rack_spread_by_placement"), replica_rack_spread.placement_cause()),
                causes,
                F.lit("placement"),
            ),
        ).otherwise(F.coalesce(causes, F.lit("placement"))),
        observed=base.as_json(isr_racks=worst, category=category),
        required=base.as_json(min_insync_racks=required()),
        partitions=ids,
        message=F.when(outcome() == base.FAIL, message)
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("racks of the ISR")),
        remediation=F.when(
            under & F.col("isr_rack_spread_by_placement"),
            base.say(
                "Move replicas of these partitions to brokers in other racks: kafka-reassign-partitions --bootstrap-server "
                '"$BOOTSTRAP" --execute --reassignment-json-file ',
                F.col("topic"),
                ".json",
            ),
        ).otherwise(base.say("Bring the missing replicas back in sync: ", F.coalesce(causes, F.lit("see the cause")))),
    )


def dominant(causes: str) -> Column:
    """One text for what keeps replicas away: what is down, else what lags; NULL where nothing does.

    A topic that misses several brokers names them all, so that topics with the same trouble share a cause.
    """
    down = F.filter(causes, lambda c: c.endswith(" down"))
    chosen = F.array_sort(F.array_distinct(F.when(F.size(down) > 0, down).otherwise(F.col(causes))))
    return F.when(F.size(chosen) > 0, F.array_join(chosen, ", "))
