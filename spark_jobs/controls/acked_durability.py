"""acked-durability: in the worst case acks=all guarantees fewer copies or racks than required (KIP-926, KIP-1290).

The worst case is over every ISR of the effective minimum size; see `spark_jobs.frames.acks`. The finding describes the topic's
worst partition and what each acks value means for it (`spark_jobs.frames.acks_table`), and counts the partitions by answer.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.controls import replica_rack_spread
from spark_jobs.frames import acks_table, base, target
from spark_jobs.frames.acks import NEVER
from spark_jobs.frames.columns import certain, possible, struct
from spark_jobs.frames.flagged import Flagged
from spark_jobs.frames.rack_health import (
    INCONSISTENT,
    NO_ERROR,
    NO_LEADER,
    NOT_ENOUGH_RACKS,
    NOT_ENOUGH_REPLICAS,
    TIMED_OUT,
)

CONTROL = "acked-durability"
STATE, WORST, NOW = "acked_durability_state", "acked_durability_worst", "acked_durability_now"
SHORT, UNSURE, ENOUGH = 0, 1, 2
"""STATE of a partition: its guarantee is too small, may be too small, or is enough."""
ANSWERS = {"today": "acks_all_error", "proposed": "acks_all_proposed_error"}
"""The columns of a partition with the answer to an acks=all write, of today's brokers and as the KIPs propose."""
UNKNOWN = "UNKNOWN"
ERRORS = {
    "today": (NO_ERROR, NO_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT, UNKNOWN),
    "proposed": (NO_ERROR, NO_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT, INCONSISTENT, NOT_ENOUGH_RACKS, UNKNOWN),
}


def required() -> tuple[Column, Column]:
    """The required copies and racks; NULL if the tier requires none."""
    return F.col("required")["acked_copies"], F.col("required")["acked_racks"]


def of_partition() -> dict[str, Column]:
    """STATE: short even at best, enough even at worst, or unsure."""
    copies, racks = required()
    bounds = F.col("acked")
    short = certain(bounds["copies_most"] < copies) | certain(bounds["racks_most"] < racks)
    enough = possible(bounds["copies_least"] >= copies) & possible(bounds["racks_least"] >= racks)
    return {STATE: F.when(short, SHORT).when(enough, ENOUGH).otherwise(UNSURE)}


def measures() -> dict[str, Column | Flagged]:
    short, bounds = F.col(STATE) == SHORT, F.col("acked")
    return {
        WORST: F.min(_order_and_facts()),
        **{column: _counts(column, ERRORS[name]) for name, column in ANSWERS.items()},
        "acked_durability_failing": base.partition_ids(short),
        "acked_durability_unsure": possible(F.bool_or(F.col(STATE) == UNSURE)),
        "acked_smallest_min_isr": F.max(bounds["smallest_min_isr"]),
        "acked_racks_would_do": F.bool_and(bounds["racks_would_do"]),
        "acked_short_meanwhile": F.bool_and(F.when(short, _meanwhile())),
    }


def _order_and_facts() -> Column:
    """The sort key of partitions (worst first), then the id, then the facts for the acks table.

    Short partitions come first, then those with the fewest copies and racks, then those that reject writes now, or would with
    the proposals. It is a flat struct: Spark builds an ordering for each comparison of nested ones.
    """
    bounds = F.col("acked")
    return struct(
        {
            "state": F.col(STATE),
            **{name: bounds[name] for name in ("copies_most", "racks_most", "copies_least", "racks_least")},
            "led": possible(~F.col("offline")),
            **{f"accepted_{name}": possible(F.col(column) == NO_ERROR) for name, column in ANSWERS.items()},
            **{name: F.col(name) for name in ("isr_count", "isr_rack_count", "partition", *acks_table.FACTS)},
            **{name: F.col(name) for name in ("acked_min_isr", "acked_effective_min_isr")},
        }
    )


def _counts(answer: str, errors: tuple[str, ...]) -> Column:
    """The topic's partitions by answer, because others than the worst may reject writes."""
    of_partition = F.coalesce(F.col(answer), F.lit(UNKNOWN))
    return struct({error: F.sum(F.when(of_partition == error, F.size("ids")).otherwise(0)) for error in errors})


def _meanwhile() -> Column:
    """Is a partition short only while its reassignment runs?"""
    (copies, racks), bounds = required(), F.col("acked")
    return certain(possible(bounds["copies_most"] >= copies) & (bounds["racks_at_ends"] >= racks))


def follows() -> dict[str, Column]:
    return {NOW: acks_table.now(F.col(WORST))}


def outcome() -> Column:
    copies, racks = required()
    return (
        F.when(copies.isNull() & racks.isNull(), base.NOT_APPLICABLE)
        .when(F.size("acked_durability_failing") > 0, base.FAIL)
        .when(possible("acked_durability_unsure") | ~F.col("partitions_known"), base.UNKNOWN)
        .otherwise(base.PASS)
    )


def _refused() -> Column:
    """A code for the case that a leader that doesn't cap min.insync.replicas accepts no acks=all write."""
    worst = F.col(WORST)
    cancelled, complete = (worst["acked_min_isr"] > F.element_at(worst["ends"], at)["size"] for at in (1, -1))
    return F.when(
        worst["copies_most"] == 0,
        F.when(worst["acked_min_isr"] > worst["replica_count"], "always")
        .when(cancelled & complete, "either-way")
        .when(cancelled, "if-cancelled")
        .otherwise("once-complete"),
    )


def _cause(meanwhile: Column, infeasible: Column, few_racks: Column) -> Column:
    worst, (copies, _) = F.col(WORST), required()
    # min.insync.replicas is too low for the copies, or so high that no write is accepted.
    by_value = (worst["acked_min_isr"] < copies) | (worst["copies_most"] == 0)
    return F.coalesce(
        F.when(meanwhile, "reassignment"),
        infeasible,
        F.when(few_racks | certain(target.spreads()), replica_rack_spread.placement_cause()),
        F.when(by_value, base.min_isr_cause(worst["min_isr_source"])),
        F.lit("configuration:topic"),
    )


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    worst, (copies, racks) = F.col(WORST), required()
    smallest = F.when(racks.isNotNull() & (F.col("acked_smallest_min_isr") < NEVER), F.col("acked_smallest_min_isr"))
    with_min_racks = struct({"min.insync.replicas": F.greatest(copies, racks), "min.insync.racks": racks})
    few_racks = certain((worst["racks_most"] < racks) & smallest.isNull())
    meanwhile = certain("acked_short_meanwhile")
    infeasible = F.coalesce(
        base.not_feasible(racks, F.size("racks") + F.col("unknown_racks")),
        target.infeasible(),
        F.when(target.few_beside() & (worst["racks_most"] < racks), base.infeasible(F.col("tier"))),
    )
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=_cause(meanwhile, infeasible, few_racks),
        observed={
            "acks": acks_table.entries(worst, F.col(NOW), F.col("min_racks"), F.col("unclean")),
            "smallest_min_insync_replicas": smallest,
            "with_min_insync_racks": F.when(F.col("acked_racks_would_do"), with_min_racks),
            "partition": worst["partition"],
            "effective_min_insync_replicas": worst["acked_effective_min_isr"],
            "readings": acks_table.readings(worst, F.col(NOW)),
            "partitions_by_answer": struct({name: F.col(column) for name, column in ANSWERS.items()}),
        },
        required={"acked_copies": copies, "acked_racks": racks},
        evidence={
            "copies": F.when(copies.isNotNull(), worst["copies_most"]),
            "racks": F.when(racks.isNotNull(), worst["racks_most"]),
            "min_insync_replicas": worst["acked_min_isr"],
            "replicas": worst["replica_count"],
            "refused": _refused(),
            "meanwhile": meanwhile,
            "no_rack_named": few_racks & (F.size("racks") == 0),
            "infeasible": infeasible.isNotNull(),
            "target": F.col(target.TARGET),
            **base.unknown_because(),
        },
        partitions=F.col("acked_durability_failing"),
    )
