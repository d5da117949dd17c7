"""acked-durability: the copies and racks that acks=all guarantees at worst are fewer than required (KIP-926, KIP-1290).

Worst is over every ISR of the effective minimum size (`spark_jobs.frames.acks`). A topic is told by its worst partition, with
what each acks value means there (`spark_jobs.frames.acks_table`), and by how many of its partitions give each answer.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.controls import replica_rack_spread
from spark_jobs.frames import acks_table, base, target
from spark_jobs.frames.acks import NEVER
from spark_jobs.frames.flagged import Flagged
from spark_jobs.frames.rack_health import INCONSISTENT, NO_ERROR, NO_LEADER, NOT_ENOUGH_RACKS, NOT_ENOUGH_REPLICAS

CONTROL = "acked-durability"
SEEN, NOW = "acked_durability_worst", "acked_durability_now"
GRAVITY, FACTS, WORST = "acked_gravity", "acked_facts", "acked_durability_gravest"
SHORT, UNSURE, ENOUGH = 0, 1, 2
"""What is sure of a partition, the worst first."""
ANSWERS = {"today": "acks_all_error", "proposed": "acks_all_proposed_error"}
"""What a partition answers an acks=all write, by when."""
UNSAID = ("led", *(f"{of}_none" for of in ANSWERS))
ORDER = ("verdict", "copies_most", "racks_most", "copies_least", "racks_least", *UNSAID, "isr_count", "isr_rack_count")
"""What a partition's gravity is compared by; UNSAID is looked at for nothing else."""
UNTOLD = "UNKNOWN"
TODAY = (NO_ERROR, NO_LEADER, NOT_ENOUGH_REPLICAS, UNTOLD)
ERRORS = {"today": TODAY, "proposed": (*TODAY[:-1], INCONSISTENT, NOT_ENOUGH_RACKS, UNTOLD)}


def required() -> tuple[Column, Column]:
    """Copies and racks; NULL where the tier doesn't say."""
    return F.col("required")["acked_copies"], F.col("required")["acked_racks"]


def _verdict(copies: Column, racks: Column) -> Column:
    """What bounds say against what is required: short even at best, enough even at worst, or neither."""
    at_least = [(copies, "copies"), (racks, "racks")]
    worst = F.col("acked")
    short = [F.coalesce(worst[f"{what}_most"] < wanted, F.lit(False)) for wanted, what in at_least]
    sure = [F.coalesce(worst[f"{what}_least"] >= wanted, F.lit(True)) for wanted, what in at_least]
    return F.when(short[0] | short[1], SHORT).when(sure[0] & sure[1], ENOUGH).otherwise(UNSURE)


def _meanwhile(worst: Column) -> Column:
    """Is a partition that is short so only while its reassignment runs?"""
    copies, racks = required()
    enough = F.coalesce(worst["copies_most"] >= copies, F.lit(True))
    return F.coalesce(enough & (worst["racks_at_ends"] >= racks), F.lit(False))


def of_partition() -> dict[str, Column]:
    """Columns of a partition for `measures`: how bad it is, and what its acks table needs.

    Short first, then the fewest copies and racks, then what refuses writes now, or would with the proposals.
    """
    worst = F.col("acked")
    order = {
        "verdict": _verdict(*required()),
        **{name: worst[name] for name in ("copies_most", "racks_most", "copies_least", "racks_least")},
        "led": F.coalesce(~F.col("offline"), F.lit(True)),
        **{f"{of}_none": F.coalesce(F.col(answer) == NO_ERROR, F.lit(True)) for of, answer in ANSWERS.items()},
        "isr_count": F.col("isr_count"),
        "isr_rack_count": F.col("isr_rack_count"),
    }
    gravity = F.struct(*(order[name].alias(name) for name in ORDER))
    return {GRAVITY: gravity, FACTS: F.struct(*acks_table.FACTS)}


def worst() -> Column:
    """SEEN, of a topic's measures: the worst partition's GRAVITY, id and FACTS, as one struct."""
    found = F.col(WORST)
    fields = {name: found[name] for name in ORDER if name not in UNSAID}
    fields |= {name: found[FACTS][name] for name in acks_table.FACTS}
    fields |= {"partition": found["partition"]}
    return F.when(found.isNotNull(), F.struct(*(field.alias(name) for name, field in fields.items())))


def measures() -> dict[str, Column | Flagged]:
    verdict, worst = F.col(GRAVITY)["verdict"], F.col("acked")
    return {
        # FACTS never decide: the partition does. Flat: of a struct in a struct Spark makes an ordering at each comparison.
        WORST: F.min(F.struct(*(F.col(GRAVITY)[name].alias(name) for name in ORDER), "partition", FACTS)),
        **_answers(),
        "acked_durability_failing": base.partition_ids(verdict == SHORT),
        "acked_durability_unsure": F.coalesce(F.bool_or(verdict == UNSURE), F.lit(True)),
        "acked_smallest_min_isr": F.max(worst["smallest_min_isr"]),
        "acked_racks_would_do": F.bool_and(worst["racks_would_do"]),
        "acked_short_meanwhile": F.bool_and(F.when(verdict == SHORT, _meanwhile(worst))),
    }


def _answers() -> dict[str, Column]:
    """Partitions by what is answered an acks=all write, since the worst guarantee isn't where every refusal is."""
    return {
        answer: F.struct(
            *(
                F.sum(F.when(F.coalesce(F.col(answer), F.lit(UNTOLD)) == error, F.size("ids")).otherwise(0)).alias(
                    error
                )
                for error in ERRORS[name]
            )
        )
        for name, answer in ANSWERS.items()
    }


def follows() -> dict[str, Column]:
    """Of a topic, beside its measures."""
    return {NOW: acks_table.now(F.col(SEEN))}


def outcome() -> Column:
    copies, racks = required()
    missing = F.coalesce(F.col("acked_durability_unsure"), F.lit(True)) | ~F.col("partitions_known")
    return (
        F.when(copies.isNull() & racks.isNull(), base.NOT_APPLICABLE)
        .when(F.size("acked_durability_failing") > 0, base.FAIL)
        .when(missing, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def _thresholds() -> tuple[Column, Column]:
    """The smallest min.insync.replicas that guarantees the racks, and the pair that would with KIP-1290; NULL: none."""
    copies, racks = required()
    smallest = F.col("acked_smallest_min_isr")
    pair = F.struct(
        F.greatest(copies, racks).alias("min.insync.replicas"),
        racks.alias("min.insync.racks"),
    )
    return F.when(racks.isNotNull() & (smallest < NEVER), smallest), F.when(F.col("acked_racks_would_do"), pair)


def _refused() -> Column:
    """When a leader that doesn't cap min.insync.replicas accepts no acks=all write, as a code."""
    seen = F.col(SEEN)
    cancelled, complete = (seen["min_isr"] > F.element_at(seen["ends"], at)["size"] for at in (1, -1))
    return F.when(
        seen["copies_most"] == 0,
        F.when(seen["min_isr"] > seen["replica_count"], "always")
        .when(cancelled & complete, "either-way")
        .when(cancelled, "if-cancelled")
        .otherwise("once-complete"),
    )


def _cause(meanwhile: Column, infeasible: Column, few_racks: Column) -> Column:
    seen, copies = F.col(SEEN), required()[0]
    # Too low for the copies, or so high that nothing is accepted.
    by_value = (seen["min_isr"] < copies) | (seen["copies_most"] == 0)
    spreads = F.coalesce(target.spreads(), F.lit(False))
    return F.coalesce(
        F.when(meanwhile, "reassignment"),
        infeasible,
        F.when(few_racks | spreads, replica_rack_spread.placement_cause()),
        F.when(by_value, base.min_isr_cause(seen["min_isr_source"])),
        F.lit("configuration:topic"),
    )


def topic_verdicts(plan: Plan) -> list[Column]:
    seen = F.col(SEEN)
    copies, racks = required()
    smallest, pair = _thresholds()
    few_racks = F.coalesce((seen["racks_most"] < racks) & smallest.isNull(), F.lit(False))
    meanwhile = F.coalesce("acked_short_meanwhile", F.lit(False))
    infeasible = F.coalesce(
        base.not_feasible(racks, F.size("racks") + F.col("unknown_racks")),
        target.infeasible(),
        F.when(target.few_beside() & (seen["racks_most"] < racks), base.infeasible(F.col("tier"))),
    )
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=_cause(meanwhile, infeasible, few_racks),
        observed={
            "acks": acks_table.entries(seen, F.col(NOW), F.col("min_racks"), F.col("unclean")),
            "smallest_min_insync_replicas": smallest,
            "with_min_insync_racks": pair,
            "partition": seen["partition"],
            "effective_min_insync_replicas": seen["effective_min_isr"],
            "readings": acks_table.readings(seen, F.col(NOW)),
            "partitions_by_answer": F.struct(*(F.col(answer).alias(name) for name, answer in ANSWERS.items())),
        },
        required={"acked_copies": copies, "acked_racks": racks},
        evidence={
            "copies": F.when(copies.isNotNull(), seen["copies_most"]),
            "racks": F.when(racks.isNotNull(), seen["racks_most"]),
            "min_insync_replicas": seen["min_isr"],
            "replicas": seen["replica_count"],
            "refused": _refused(),
            "meanwhile": meanwhile,
            "no_rack_named": few_racks & (F.size("racks") == 0),
            "infeasible": infeasible.isNotNull(),
            "target": target.evidence(),
        },
        partitions=F.col("acked_durability_failing"),
    )
    return [verdict]
