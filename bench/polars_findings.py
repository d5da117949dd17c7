"""The findings of topics about racks, acknowledged writes and partitions, worded; and all of them together."""

from __future__ import annotations

import polars as pl

from bench import polars_acks, polars_scalars, polars_sick
from bench.polars_rows import KEYS, by_min_isr, named, placement, plain, worded
from bench.polars_target import WAIT, place
from bench.polars_topics import PROBLEMS
from bench.polars_words import (
    INFEASIBLE,
    bring_back,
    comment,
    in_quotes,
    json_list,
    json_object,
    partitions,
    quoted,
    script,
    text,
)
from durability.policy.catalogue import severity_of

HEALTH = {
    "offline": "no live leader: neither reads nor writes",
    "under-min-isr": "acks=all writes are refused (NOT_ENOUGH_REPLICAS)",
    "at-min-isr": "one more replica out of sync refuses acks=all writes",
    "under-replicated": "fewer copies than meant",
}
SINGLE = HEALTH | {"at-min-isr": "its broker holds the only copy, and while it is away nobody reads or writes"}
NO_HEADROOM_WANTED = (
    "Nothing to mend while the topic's tier asks for no headroom; if writes shall go on without one of its brokers, give it"
    " a tier with write_headroom"
)
ANSWERS = {
    "LEADER_NOT_AVAILABLE": "without a leader writes are answered LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_RACKS": "KIP-1290 would answer NOT_ENOUGH_RACKS",
    "NOT_ENOUGH_REPLICAS": "KIP-1290 checks replicas first: NOT_ENOUGH_REPLICAS",
}
ADD_RACKS = "Add brokers or racks, or give these topics a tier that the cluster can meet"
GIVE_RACKS = "Give every broker its broker.rack, then audit again: without it no placement guarantees racks"
c = pl.col


def findings(judged: pl.DataFrame, each: pl.DataFrame) -> pl.DataFrame:
    """The rows of `findings` of topics; judged: `polars_target.remedied`, each: `polars_sick.listed`."""
    topics, sick = judged.lazy(), each.lazy()
    controls = (*polars_scalars.ALL, _isr_rack_spread, _min_insync_racks_valid, _acked_durability)
    frames = [frame for control in controls for frame in control(topics)]
    health = [_of_category(topics, sick, flag, category) for flag, category in polars_sick.FLAGS.items()]
    sound = topics.join(sick.filter(pl.any_horizontal(*polars_sick.FLAGS)), on="topic_no", how="anti")
    passed = plain(sound, "partition-health", pl.lit("PASS"), pl.lit('{"category": null, "cause": null}'), pl.lit("{}"))
    return named(pl.concat([*frames, *health, passed], how="diagonal").collect())


def _isr_rack_spread(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    control, under = "isr-rack-spread", c("o_under_racks") == "FAIL"
    fails, wanted = c("o_isr_racks") == "FAIL", pl.when(c("min_insync_racks") > 1).then("min_insync_racks")

    def either(of_under: str | pl.Expr, of_at: str | pl.Expr) -> pl.Expr:
        return pl.when(under).then(text(of_under)).otherwise(text(of_at))

    category = either("under-min-rack-isr", "at-min-rack-isr")
    by_category = json_object(
        {"under-min-rack-isr": json_list("under_racks"), "at-min-rack-isr": json_list("at_racks")}
    )
    causes, unnamed = c("rack_causes").fill_null("placement"), c("unracked").cast(pl.Int32)
    placed = pl.when(wanted > c("racks") + unnamed).then(INFEASIBLE).otherwise(placement())
    here = under & c("rack_by_placement")
    return worded(
        topics,
        control,
        "o_isr_racks",
        observed=json_object(
            {
                "isr_racks": pl.when(wanted.is_not_null()).then("isr_racks_worst"),
                "category": pl.when(fails).then(in_quotes(category)),
                "partitions_by_category": pl.when(fails).then(by_category),
            }
        ),
        required=json_object({"min_insync_racks": wanted}),
        category=category,
        severity=either(severity_of(control, "under-min-rack-isr"), severity_of(control, "at-min-rack-isr")),
        cause=pl.when(here).then(placed).otherwise(causes),
        ids=pl.when(under).then("under_racks").otherwise("at_racks"),
        message=pl.format(
            "{}: isr spans {} of {} racks required{}; {}",
            either(partitions("under_racks"), partitions("at_racks")),
            *("isr_racks_worst", wanted),
            pl.when(c("isr_names") != "").then(pl.format(" ({})", "isr_names")).otherwise(pl.lit("")),
            either(_under_racks(), "exactly the minimum, one more rack lost would be too many"),
        ),
        remediation=pl.when(here).then(place()).otherwise(bring_back(causes)),
    )


def _under_racks() -> pl.Expr:
    """What too few racks mean, what writes are answered, and which partitions are at the minimum beside."""
    said = [
        pl.when(c("rack_errors").list.contains(pl.lit(answer))).then(pl.lit(words)) for answer, words in ANSWERS.items()
    ]
    answers = pl.concat_str(said, separator="; ", ignore_nulls=True)
    besides = pl.format("; at exactly the minimum: {}", partitions("at_racks"))
    return pl.concat_str(
        pl.lit("acknowledged writes may be in no other rack"),
        pl.when(answers != "").then(pl.format(" ({})", answers)),
        pl.when(c("at_racks").is_not_null()).then(besides),
        ignore_nulls=True,
    )


def _min_insync_racks_valid(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    control, what, wanted = "min-insync-racks-valid", c("problems").list.first(), c("min_insync_racks")
    known, above_rf, above_span, unracked = (what == problem for problem in PROBLEMS)
    detail = (
        pl.when(known)
        .then(pl.format("racks in the cluster: {} (KIP-1290 would warn)", "racks"))
        .when(above_rf)
        .then(pl.format("{}: replication factor {}, no acks=all write could pass", partitions("above_rf"), "rf_worst"))
        .when(above_span)
        .then(pl.format("{}: the replicas don't span as many", partitions("above_span")))
        .otherwise(pl.format("without broker.rack: {}", "unracked_named"))
    )
    lower = "Lower min_insync_racks of tier {} to at most {}, the racks that this cluster has, or add racks"
    spread = pl.lit("Spread the topic's replicas over more racks, or want fewer racks of this topic")
    only_known = (c("problems").list.len() == 1) & known
    listed = pl.format('["{}"]', c("problems").list.join('","'))
    return worded(
        topics,
        control,
        "o_valid",
        observed=json_object(
            {
                "problem": in_quotes(what),
                "min_insync_racks": wanted,
                "problems": pl.when(what.is_not_null()).then(listed).otherwise(pl.lit("[]")),
            }
        ),
        required=json_object({"min_insync_racks": wanted}),
        severity=pl.when(only_known)
        .then(pl.lit(severity_of(control, "above-known-racks")))
        .otherwise(pl.lit(severity_of(control, "above-replication-factor"))),
        cause=pl.when(unracked)
        .then(pl.lit("configuration:broker.rack"))
        .when(known)
        .then(INFEASIBLE)
        .otherwise(pl.lit("placement")),
        ids=pl.when(above_rf).then("above_rf").when(above_span).then("above_span"),
        message=pl.format("min.insync.racks={} wanted; {}", wanted, detail),
        remediation=pl.when(unracked | (known & (c("racks") == 0)))
        .then("set_racks")
        .when(known)
        .then(pl.format(lower, "tier", "racks"))
        .when("reassign")
        .then("remedy")
        .otherwise(spread),
    )


def _acked_words(copies: pl.Expr, racks: pl.Expr) -> pl.Expr:
    """Such as "2 copies in 1 rack"; either may be NULL."""
    one_copy, one_rack = pl.lit("1 copy"), pl.lit("1 rack")
    return pl.concat_str(
        pl.when(copies == 1).then(one_copy).otherwise(pl.format("{} copies", copies)),
        pl.when(racks == 1).then(one_rack).otherwise(pl.format("{} racks", racks)),
        separator=" in ",
        ignore_nulls=True,
    )


def _acked_durability(topics: pl.LazyFrame) -> list[pl.LazyFrame]:
    copies, racks = c("acked_copies"), c("acked_racks")
    short_of_racks = (c("w_racks_worst") < racks).fill_null(False)
    few_racks = short_of_racks & ~(c("smallest_min_isr") < polars_acks.NEVER).fill_null(False)
    spreads = c("reassign") & c("target_acked_racks").is_not_null() & ~c("grows")
    beside = (c("room_wanted") + 1 > c("beside")).fill_null(False) & short_of_racks
    impossible = (racks > c("racks")).fill_null(False) | c("too_few_brokers") | beside
    by_value = (c("min_isr") < copies).fill_null(False) | (c("w_copies") == 0)
    shown = [
        pl.when(wanted.is_not_null()).then(has) for wanted, has in ((copies, "w_copies"), (racks, "w_racks_worst"))
    ]
    refused = pl.lit(": no acks=all write is ever accepted")
    return worded(
        topics,
        "acked-durability",
        "o_acked",
        observed=polars_acks.observed(),
        required=json_object({"acked_copies": copies, "acked_racks": racks}),
        cause=pl.when(impossible)
        .then(INFEASIBLE)
        .when(few_racks | spreads)
        .then(placement())
        .when(by_value)
        .then(by_min_isr())
        .otherwise(pl.lit("configuration:topic")),
        ids=c("short"),
        message=pl.format(
            "{}: acks=all guarantees at worst {}, {} required (min.insync.replicas {}, replicas {}){}",
            *(partitions("short"), _acked_words(*shown), _acked_words(copies, racks), "min_isr", "w_rf"),
            pl.when(c("w_copies") == 0).then(refused).otherwise(pl.lit("")),
        ),
        remediation=pl.when(few_racks & (c("racks") == 0))
        .then("set_racks")
        .when(impossible)
        .then(pl.lit(ADD_RACKS))
        .when("differs")
        .then("remedy")
        .otherwise(pl.lit(GIVE_RACKS)),
    )


def _of_category(topics: pl.LazyFrame, sick: pl.LazyFrame, flag: str, category: str) -> pl.LazyFrame:
    """partition-health of topics with partitions of a category."""
    control, ids = "partition-health", f"f_{flag}"
    frame = topics.join(polars_sick.by_category(sick, flag), on="topic_no").with_columns(
        c("causes").fill_null("replicas lagging"), c("shrunk") | (flag == "offline"), c("whole") & (flag != "offline")
    )
    severity = pl.lit(severity_of(control, category))
    if flag == "at_min":
        configured = pl.lit(severity_of(control, "at-min-isr/configuration"))
        severity = pl.when("shrunk").then(severity).otherwise(configured)
    says = pl.when(c("h_rf") == 1).then(pl.lit(SINGLE[category])).otherwise(pl.lit(HEALTH[category]))
    return frame.select(
        *KEYS,
        pl.lit(control).alias("control"),
        pl.lit("FAIL").alias("outcome"),
        json_object(
            {
                "category": quoted(category),
                "cause": pl.when("whole").then(quoted("configuration")).otherwise(quoted("shrunk")),
                "isr": c("h_isr_count"),
                "replication_factor": c("h_rf"),
                "min_insync_replicas": c("h_min_isr"),
                "effective_min_insync_replicas": c("h_effective"),
            }
        ).alias("observed"),
        pl.lit("{}").alias("required"),
        pl.lit(category).alias("category"),
        severity.alias("severity"),
        pl.when("shrunk").then("causes").otherwise(by_min_isr()).alias("cause"),
        c(ids).alias("partitions"),
        pl.format(
            "{}: isr {} of {} replicas, effective min.insync.replicas {}; {}{}",
            *(partitions(ids), "h_isr_count", "h_rf", "h_effective", says),
            pl.format("; {}", "cli").fill_null(""),
        ).alias("message"),
        _mend().alias("remediation"),
    )


def _mend() -> pl.Expr:
    """What mends a short ISR, or the topic's configuration where all are in sync."""
    back = bring_back(c("causes"))
    waits = (
        pl.when(back.str.starts_with("#"))
        .then(script(comment(WAIT), back))
        .otherwise(pl.format("{}. {}", back, pl.lit(WAIT)))
    )
    return (
        pl.when("shrunk")
        .then(pl.when("guarded").then(waits).otherwise(back))
        .when("differs")
        .then("remedy")
        .otherwise(pl.lit(NO_HEADROOM_WANTED))
    )
