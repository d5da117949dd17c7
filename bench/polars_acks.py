"""What each acks value means for a topic's worst partition, and the JSON that acked-durability shows of it."""

from __future__ import annotations

from functools import reduce
from operator import add

import polars as pl

from bench.polars_racks import SLOTS, layouts
from bench.polars_words import json_object, quoted

NEVER = 1_000_000
"""In place of a min.insync.replicas that would guarantee the racks: there is none."""
c = pl.col


def order() -> pl.Expr:
    """The least is the worst: short first, then the fewest copies and racks, then what refuses writes now or would, then
    the smallest ISR, in the fewest racks; of several the first partition."""
    answered = ~c("offline") & ~c("under")
    weights = [
        *((~c("short"), 1), (c("copies"), 4), (c("racks_worst"), 4), (~c("offline"), 1), (answered, 1)),
        (answered & ~c("inconsistent") & ~c("few_racks_answer"), 1),
        *((c("isr_count"), 4), (c("isr_racks"), 4), (c("first"), 32)),
    ]
    packed = pl.lit(0, pl.Int64)
    for value, bits in weights:
        packed = packed * 2**bits + value.cast(pl.Int64)
    return packed


def worst(groups: pl.DataFrame, rows: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """By topic_no its worst partition (`w_...`), by `order`, and the thresholds of racks."""
    leader, offset = (pl.lit(rows[name]).gather("first_row") for name in ("leader", "offset"))
    seen = (
        groups.filter(c("order") == c("order").min().over("topic_no"))
        .with_columns(c("first").alias("partition"), pl.lit(brokers["slot"]).gather(leader + offset).alias("slot"))
        .with_columns(c("slot").fill_null(1))
        .with_columns(
            pl.when(c("slot") > 1).then(c("isr_held") // c("slot") % 16).otherwise(0).cast(pl.Int32).alias("beside")
        )
        .with_columns((c("isr_held") - c("beside") * c("slot")).alias("rest"))
    )
    of_rest = layouts(seen["rest"].rename("held")).select(
        c("held").alias("rest"), c("span").alias("rest_span"), *(c(s).alias(f"rest_{s}") for s in SLOTS)
    )
    leaders = (c("beside") > 0).cast(pl.Int32)
    # The leader has the record, and with it whatever stands in its rack may be the fastest.
    fastest = [(c("effective") - c("beside") > c(f"rest_{s}")).cast(pl.Int32) for s in SLOTS]
    named = ("partition", "offline", "isr_count", "rf", "effective", "copies", "racks_worst", "inconsistent", "under")
    return (
        seen.join(of_rest, on="rest", how="left")
        .select(
            "topic_no",
            *(c(n).alias(f"w_{n}") for n in (*named, "few_racks_answer", "kip_span")),
            (c("most_0") > 0).alias("w_unracked"),
            (c("slot") > 1).alias("w_leader_racked"),
            (leaders + c("rest_span")).alias("w_racks_now"),
            reduce(add, fastest, leaders).alias("w_fastest"),
        )
        .join(_thresholds(groups), on="topic_no", how="left")
    )


def _thresholds(groups: pl.DataFrame) -> pl.DataFrame:
    """Where racks have to be acknowledged: the min.insync.replicas that guarantees them, and whether KIP-1290's pair would."""
    asked = c("acked_racks")
    held = pl.concat_list(SLOTS).list.get(asked - 1, null_on_oob=True)
    copies = pl.max_horizontal("acked_copies", "acked_racks")
    return (
        groups.filter(asked.is_not_null())
        .group_by("topic_no")
        .agg(
            pl.when(c("span") >= asked).then(held + 1).otherwise(NEVER).max().alias("smallest_min_isr"),
            ((c("most_0") == 0) & (c("span") >= asked) & (c("rf") >= copies)).all().alias("racks_would_do"),
        )
    )


def observed() -> pl.Expr:
    """Of a topic beside its worst partition."""
    smallest = pl.when(c("smallest_min_isr") < NEVER).then("smallest_min_isr")
    copies = pl.max_horizontal("acked_copies", "acked_racks")
    pair = json_object({"min.insync.replicas": copies, "min.insync.racks": c("acked_racks")})
    offline, few = c("n_offline"), c("n_few")
    today = c("partitions") - offline - c("n_under")
    left = c("partitions") - offline - few - c("n_inconsistent") - c("n_few_racks")
    proposed = {
        "NONE": left,
        "LEADER_NOT_AVAILABLE": offline,
        "NOT_ENOUGH_REPLICAS": few,
        "INCONSISTENT_REPLICATION_FACTOR": c("n_inconsistent"),
        "NOT_ENOUGH_RACKS": c("n_few_racks"),
        "UNKNOWN": pl.lit("0"),
    }
    answers = {
        "NONE": today,
        "LEADER_NOT_AVAILABLE": offline,
        "NOT_ENOUGH_REPLICAS": c("n_under"),
        "UNKNOWN": pl.lit("0"),
    }
    return json_object(
        {
            "acks": _entries(),
            "smallest_min_insync_replicas": smallest,
            "with_min_insync_racks": pl.when("racks_would_do").then(pair),
            "partition": c("w_partition"),
            "effective_min_insync_replicas": c("w_effective"),
            "readings": pl.lit("null"),
            "partitions_by_answer": json_object({"today": json_object(answers), "proposed": json_object(proposed)}),
        }
    )


def _answers() -> dict[str, pl.Expr]:
    """Of acks=all: today's error, that of the proposals, and whether a retry can succeed while the configuration stays."""
    led, few, settled = ~c("w_offline"), c("w_under"), ~c("w_under") | (c("w_isr_count") >= c("w_rf"))
    proposed = (
        pl.when(~led)
        .then(quoted("LEADER_NOT_AVAILABLE"))
        .when("w_inconsistent")
        .then(quoted("INCONSISTENT_REPLICATION_FACTOR"))
        .when(few)
        .then(quoted("NOT_ENOUGH_REPLICAS"))
        .when("w_few_racks_answer")
        .then(quoted("NOT_ENOUGH_RACKS"))
    )
    retriable = (
        pl.when(~led)
        .then(True)
        .when(few)
        .then((c("min_isr") <= c("w_rf")) | c("caps"))
        .when(settled & c("w_inconsistent"))
        .then(False)
        .when(settled & c("w_few_racks_answer"))
        .then(c("w_kip_span") >= c("min_insync_racks"))
    )
    return {"error": _error(), "proposed_error": proposed, "retriable": retriable}


def _error() -> pl.Expr:
    leaderless = pl.when("w_offline").then(quoted("LEADER_NOT_AVAILABLE"))
    return leaderless.when("w_under").then(quoted("NOT_ENOUGH_REPLICAS")).otherwise(pl.lit("null"))


def _entries() -> pl.Expr:
    """The table by acks value."""
    led, isr, effective = ~c("w_offline"), c("w_isr_count"), c("w_effective")
    accepted = led & (isr >= effective)
    no, zero, leaderless = pl.lit("false"), pl.lit("0"), pl.when("w_offline").then(quoted("LEADER_NOT_AVAILABLE"))
    alone = leaderless.otherwise(pl.lit("null"))
    unasked = {"accepted": led, "error": alone, "proposed_error": alone, "retriable": pl.when(~led).then(True)}
    visible = {"visible_now": led & ((isr >= effective) | ~c("caps")), "survives_leader_loss": no}
    worst = {"copies_worst": c("w_copies"), "racks_worst": c("w_racks_worst")}

    def held(value: pl.Expr) -> pl.Expr:
        return pl.when(accepted).then(value).otherwise(0)

    entries = {
        "0": unasked
        | dict.fromkeys(("copies_now", "racks_now", "copies_worst", "racks_worst", "waits_for"), zero)
        | visible,
        "1": unasked
        | {"copies_now": led.cast(pl.Int8), "racks_now": (led & c("w_leader_racked")).cast(pl.Int8)}
        | {"copies_worst": pl.lit("1"), "racks_worst": (~c("w_unracked")).cast(pl.Int8), "waits_for": zero}
        | visible,
        "all": {"accepted": accepted, **_answers()}
        | {"copies_now": held(isr), "racks_now": held(c("w_racks_now"))}
        | worst
        | {"waits_for": held(isr - 1), "visible_now": accepted}
        | {"survives_leader_loss": (c("w_copies") >= 2) & ~c("unclean")},
        "min.insync.replicas": {"accepted": no, "error": leaderless.otherwise(quoted("INVALID_REQUIRED_ACKS"))}
        | {"proposed_error": _error(), "retriable": ~led}
        | {"copies_now": held(effective), "racks_now": held(c("w_fastest"))}
        | worst
        | {"waits_for": held(effective - 1), "fewer_than_all": held(isr - effective)}
        | {"visible_now": accepted, "survives_leader_loss": no},
    }
    return json_object({acks: json_object(entry) for acks, entry in entries.items()})
