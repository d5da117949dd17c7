"""What a topic should become and the way there, as `bench.in_polars` words it: the target that all its remedies speak of."""

from __future__ import annotations

import polars as pl

from bench.polars_words import cluster_config, comment, ids_listed, script, topic_config

MORE = 8
"""Replicas tried above those that are needed otherwise."""
WAIT = (
    "Don't change min.insync.replicas now: with eligible leader replicas on, the change would wipe the ELR and could leave "
    "partitions without a leader. Bring the brokers back first, then audit again."
)
DEFAULT_FOR_ALL = (
    "The default of every topic without a value of its own: one with fewer replicas in sync than that will refuse acks=all"
    " writes."
)
UNTIL_THEN = "Until the new replicas are in sync acks=all writes are refused: min.insync.replicas is above the ISR."
PLAN = "The plan stands in the report's folder: read it, and run this there in a quiet hour."
TOOL = 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"'
DIFFERENT = "Give all brokers the same min.insync.replicas: partitions of this topic have different ones"
SPREAD = ["cluster", "acked_racks", "copies_wanted", "room_wanted", "needed"]
c = pl.col


def aimed(topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """`topics` with their targets, whether a reassignment leads there, and what can't be had."""
    kept = pl.max_horizontal("copies_wanted", "smallest_min_isr")
    stays = (c("needed") == c("rf_worst")) & (kept + c("room_wanted") <= c("needed"))
    frame = topics.with_columns(
        pl.max_horizontal(1, "min_insync_replicas", "acked_copies", "acked_racks", pl.when("survives").then(2)).alias(
            "copies_wanted"
        ),
        pl.max_horizontal(0, "write_headroom", pl.when("survives").then(1)).alias("room_wanted"),
        pl.max_horizontal(
            1, "replica_racks", "min_insync_racks", "acked_racks", pl.when("survives_rack").then(2)
        ).alias("target_racks"),
    ).with_columns(
        pl.max_horizontal(
            "rf_worst",
            "replication_factor",
            pl.min_horizontal("target_racks", "racks"),
            c("copies_wanted") + c("room_wanted"),
        ).alias("needed")
    )
    frame = frame.join(_evenly(frame, brokers), on=SPREAD, how="left").with_columns(
        pl.when((c("acked_racks") > 1) & c("smallest_min_isr").is_not_null() & stays).then(kept).alias("kept")
    )
    evenly = (c("acked_racks") > 1) & c("kept").is_null() & (c("racks") >= c("acked_racks"))
    frame = frame.with_columns(
        pl.when(evenly & c("spread_rf").is_not_null()).then("acked_racks").alias("target_acked_racks")
    ).with_columns(
        pl.when(c("target_acked_racks").is_null())
        .then("needed")
        .otherwise("spread_rf")
        .alias("target_replication_factor"),
        pl.when(c("target_acked_racks").is_not_null()).then("spread_min_isr").alias("spread_min_isr"),
    )
    fits = pl.min_horizontal("min_isr", c("target_replication_factor") - c("room_wanted"))
    least = pl.max_horizontal("copies_wanted", "kept", "spread_min_isr", fits)
    return _moving(frame.with_columns(least.alias("target_min_insync_replicas")))


def _moving(frame: pl.DataFrame) -> pl.DataFrame:
    racks = c("racks")
    frame = frame.with_columns(
        (c("target_replication_factor") > c("rf_worst")).alias("grows"),
        (c("target_racks") > racks).alias("too_few_racks"),
        (c("target_replication_factor") > c("broker_count")).alias("too_few_brokers"),
        (c("target_min_insync_replicas") < c("smallest_min_isr")).fill_null(False).alias("leans"),
    )
    placed = (c("o_racks") == "FAIL") | c("rack_by_placement")
    uneven = c("target_acked_racks").is_not_null() & ((c("o_acked") == "FAIL") | c("leans"))
    misplaced = (placed | uneven) & ~c("too_few_racks") & (racks > 0)
    frame = frame.with_columns(((c("grows") | misplaced) & ~c("too_few_brokers")).alias("reassign"))
    changed = c("target_min_insync_replicas") != c("min_isr")
    return frame.with_columns((c("reassign") | c("too_few_brokers") | changed).alias("differs"))


def _evenly(topics: pl.DataFrame, brokers: pl.DataFrame) -> pl.DataFrame:
    """By SPREAD the first number of replicas that, spread evenly over the racks, guarantees the acked ones with headroom, and
    the min.insync.replicas that does; and the brokers outside the racks that have most. A few a cluster: plain Python."""
    asked = topics.filter(c("acked_racks") > 1).select(SPREAD).unique()
    named = brokers.filter(c("rack").is_not_null()).group_by("cluster", "rack").len().sort("len", descending=True)
    sizes = dict(named.group_by("cluster", maintain_order=True).agg("len").iter_rows())
    found = []
    for cluster, acked, copies, room, needed in asked.iter_rows():
        racks = sizes.get(cluster, [])
        tried = ((n, _most_held(racks, n, acked - 1)) for n in range(needed, needed + MORE + 1))
        fits = ((n, max(copies, held + 1)) for n, held in tried if held is not None)
        n, least = next(((n, least) for n, least in fits if least + room <= n), (None, None))
        found.append((n, least, sum(racks[acked - 1 :])))
    schema = dict.fromkeys(("spread_rf", "spread_min_isr", "beside"), pl.Int32)
    return pl.concat([asked, pl.DataFrame(found, schema=schema, orient="row")], how="horizontal")


def _most_held(sizes: list[int], replicas: int, racks: int) -> int | None:
    """Replicas that some racks hold together when all stand as evenly as the brokers allow; None: there are too few."""

    def held(level: int, of: list[int] = sizes) -> int:
        return sum(min(size, level) for size in of)

    level = next((n for n in range(1, replicas + 1) if held(n) >= replicas), None)
    return None if level is None else held(level - 1, sizes[:racks]) + min(racks, replicas - held(level - 1))


def remedied(topics: pl.DataFrame) -> pl.DataFrame:
    """`topics` with `remedy`, the way to the target, of those that a finding asks it of, and `place`, to more racks."""
    # Names of a made-up fleet match no line of the policy but the one for Kafka's own topics and the last.
    last = topics.filter(~c("internal")).head(1)
    wanted = last.select(
        pl.max_horizontal("min_insync_replicas", "acked_copies", "acked_racks", pl.when("survives").then(2))
    )
    default = pl.lit(wanted.item() if wanted.height else None, pl.Int32)
    at_risk = (c("elr_at_risk").any().over("cluster") | c("hidden")) & c("elr_on")
    speaks = c("differs") | (c("o_rf") == "FAIL")
    frame = topics.with_columns(at_risk.alias("cluster_guarded"))
    words = frame.filter(speaks).select("topic_no", _remedy(default).alias("remedy"))
    return frame.join(words, on="topic_no", how="left").with_columns(c("remedy").fill_null(DIFFERENT))


def place() -> pl.Expr:
    """What mends replicas on too few racks."""
    return (
        pl.when(c("racks") == 0)
        .then("set_racks")
        .when("too_few_racks")
        .then(
            pl.format(
                "Add racks ({} are wanted, the cluster has {}), or give the topic a tier that asks for fewer",
                "target_racks",
                "racks",
            )
        )
        .when(c("target_racks") > c("target_replication_factor"))
        .then(pl.format("Want fewer racks than {} of this topic, or give it as many replicas", "target_racks"))
        .otherwise("remedy")
    )


def _remedy(default: pl.Expr) -> pl.Expr:
    rf, least, now, moves = c("target_replication_factor"), c("target_min_insync_replicas"), c("min_isr"), c("reassign")
    lowers, raises = least < now, least > now
    everywhere = raises & (c("min_isr_source") != "topic") & (least == default).fill_null(False)
    own = topic_config("min.insync.replicas", least)
    refused = pl.format(
        "# First bring back the replicas that are out of sync: with {} in sync, as now, acks=all writes would be refused.",
        "isr_least",
    )
    set_min = (
        pl.when(everywhere)
        .then(script(comment(DEFAULT_FOR_ALL), cluster_config("min.insync.replicas", least)))
        .otherwise(script(pl.when(c("isr_least") < least).then(refused), own))
    )
    wanted = pl.format(
        "# Target for {}: replication factor {}, min.insync.replicas {} (now {} and {}).",
        "topic",
        rf,
        least,
        "rf_worst",
        now,
    )
    places = pl.format("# {}: some of its replicas go to other racks.", "topic")
    at_once = raises & (~moves | (least <= c("rf_worst")))
    at_last = lowers & moves & c("target_acked_racks").is_not_null() & c("leans")
    steps = script(
        pl.when(~everywhere | moves).then(pl.when(lowers | raises | c("grows")).then(wanted).otherwise(places)),
        pl.when(lowers & ~at_last).then(script(_why_lower(least), own)),
        pl.when(moves).then(_reassign(least)),
        pl.when(at_once).then(set_min),
        pl.when((raises & ~at_once) | at_last).then(
            pl.format("# When it is complete, audit again: min.insync.replicas={} comes next.", least)
        ),
    )
    brokers = pl.format(
        "Give the cluster {} brokers (it has {}), or the topic a tier that asks for less", rf, "broker_count"
    )
    risky = pl.when(everywhere).then("cluster_guarded").otherwise("guarded")
    return (
        pl.when("too_few_brokers")
        .then(brokers)
        .when((lowers | raises) & risky)
        .then(pl.lit(WAIT))
        .when(lowers | raises | moves)
        .then(steps)
        .otherwise(pl.lit(DIFFERENT))
    )


def _why_lower(least: pl.Expr) -> pl.Expr:
    """What lowering min.insync.replicas costs, and what it leaves."""
    enforced = c("effective")
    costs = (
        pl.when(enforced <= least)
        .then(pl.lit("# Brokers enforce no more than this already."))
        .when(enforced > c("rf_worst"))
        .then(pl.lit("# No acks=all write can pass as it is."))
        .otherwise(pl.format("# Lowers what an acks=all write waits for from {} replicas to {}.", enforced, least))
    )
    none = pl.format(
        " It leaves no headroom: one replica out of sync, and acks=all writes are refused. With headroom: give the topic {}"
        " replicas.",
        least + 1,
    )
    left = pl.when(least == c("target_replication_factor")).then(none).otherwise(pl.lit(""))
    return pl.concat_str([costs, left])


def _reassign(least: pl.Expr) -> pl.Expr:
    """Executes the plan that the report writes; `cluster` is safe as a folder's name."""
    one, several = (
        "# Not before {} is back: the tool refuses a plan that names it.",
        ("# Not before {} are back: the tool refuses a plan that names one of them."),
    )
    ids = ids_listed("replicas_down", "broker ", "brokers ")
    waits = pl.when(c("replicas_down").list.len() == 1).then(pl.format(one, ids)).otherwise(pl.format(several, ids))
    file = pl.format("plans/{}/{}.json", "cluster", "topic")
    refused = c("grows") & (pl.min_horizontal(least, "min_isr") > c("rf_worst"))
    return script(
        pl.when(c("replicas_down").is_not_null()).then(waits),
        comment(PLAN),
        pl.when(refused).then(comment(UNTIL_THEN)),
        pl.format(f"{TOOL} --execute --throttle 50000000 --reassignment-json-file {{}}", file),
        pl.format(
            f"{TOOL} --verify --reassignment-json-file {{}} # again until it is complete, which removes the throttle",
            file,
        ),
    )
