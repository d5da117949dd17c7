"""What the rules need to know of a partition: its health (KIP-427), what its leader enforces, the racks it spans.

Each step is one select over the one before it, so that Spark computes a shared expression once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import acks, base, settings
from spark_jobs.frames.effective_min_isr import effective_min_isr, enough_in_sync
from spark_jobs.frames.facts import unlisted
from spark_jobs.frames.rack_health import (
    AT,
    UNDER,
    acks_all_error,
    isr_category,
    kip_579_error,
    kip_1290_error,
    rack_category,
    racks_wanted,
)
from spark_jobs.frames.racks import against, kip_1290_rack_span, layout, rack_span

TOPIC_SETTINGS = (
    "min_isr_readable",
    "own_min_isr",
    "own_min_isr_source",
    "has_observers",
    "min_racks",
    "min_racks_known",
    "elr_on",
    *settings.columns(),
)
"""All that rules may look at of a partition's topic, beside `required`; by these large runs tell topics apart."""


def facts(partitions: DataFrame, topics: DataFrame, clusters: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """Partitions beside their topic's settings, with each replica id turned into its broker (`brokers`, `leading`).

    partitions: rows that stand for the partitions `ids`, led by `leaders` in that order (`spark_jobs.scale.groups`), with
    `unchanged_reassignment`, whether the last snapshot showed it just the same; the columns `keep` of theirs stay.
    """
    per_topic = topics.select("cluster", "topic", "required", *TOPIC_SETTINGS)
    per_cluster = clusters.select(
        *("cluster", "broker", "reassignments_known", "provider", "recorded_min_isr"),
        F.col("lost_racks")["rack"].alias("lost_racks"),
    )
    joined = partitions.join(F.broadcast(per_topic), ["cluster", "topic"]).join(F.broadcast(per_cluster), "cluster")
    moving = F.col("reassignments_known")
    return joined.select(
        "cluster",
        "topic",
        "partition",
        "ids",
        "leaders",
        "partition_group",
        *keep,
        "unchanged_reassignment",
        "required",
        *TOPIC_SETTINGS,
        "recorded_min_isr",
        base.providers_duty("isr-rack-spread").alias("racks_hidden"),
        "lost_racks",
        "leader",
        "replicas",
        "isr",
        "elr",
        "last_known_elr",
        F.when(moving, F.col("adding")).alias("adding"),
        F.when(moving, F.col("removing")).alias("removing"),
        (~F.coalesce(F.array_contains("unreadable", "leader"), F.lit(False))).alias("leader_known"),
        F.try_element_at("broker", F.col("leader")).alias("leading"),
        F.transform("replicas", lambda id: F.coalesce(F.try_element_at("broker", id), unlisted(id))).alias("brokers"),
    )


def shape(facts: DataFrame) -> DataFrame:
    """Counts and sets: replicas, in sync and not, offline or led, the min ISR that applies, the replicas to judge by.

    `rf` is |replicas minus adding|, what KIP-427's under-replicated compares with. `judged` and `judged_rf` are the worse
    of replicas minus adding and replicas minus removing. All are NULL where a reassignment can't be excluded or
    Confluent observers inflate the replica list.
    """
    brokers, isr = F.col("brokers"), F.col("isr")
    replicas = F.size("replicas")
    in_sync = F.filter(brokers, lambda b: F.array_contains(isr, b["broker"]))
    moving = F.coalesce(F.size("adding") + F.size("removing") > 0, F.lit(False))
    at_rest = F.coalesce((F.size("adding") + F.size("removing") == 0) | (F.size(isr) >= replicas), F.lit(False))
    countable = ~F.col("has_observers")
    after, before = _without("adding"), _without("removing")
    return facts.select(
        "*",
        replicas.alias("replica_count"),
        F.size(isr).alias("isr_count"),
        F.when(isr.isNotNull(), in_sync).alias("in_sync"),
        F.when(
            isr.isNotNull(),
            F.filter(
                brokers,
                lambda b: (
                    ~F.array_contains(isr, b["broker"])
                    & ~F.coalesce(F.array_contains("adding", b["broker"]), F.lit(False))
                ),
            ),
        ).alias("out_of_sync"),
        F.when(
            F.col("leader_known"), F.when(F.col("leader").isNull(), True).otherwise(~F.col("leading")["live"])
        ).alias("offline"),
        moving.alias("reassigning"),
        F.when(countable, F.when(moving, F.size(after)).when(at_rest, replicas)).alias("rf"),
        F.when(countable, F.when(moving, F.least(F.size(after), F.size(before))).when(at_rest, replicas)).alias(
            "judged_rf"
        ),
        F.when(moving, after).when(at_rest, brokers).alias("after_adding"),
        F.when(moving, before).when(at_rest, brokers).alias("before_removing"),
        _min_isr().alias("min_isr"),
        _min_isr_source().alias("min_isr_source"),
        # Where those who may lead differ neither release is the worse one in all: one refuses, one keeps fewer copies.
        _leaders("caps").alias("caps"),
    )


def _without(ids: str) -> Column:
    return F.filter("brokers", lambda b: ~F.array_contains(ids, b["broker"]))


def _leaders(field: str) -> Column:
    """What the leader's broker has; without a leader, or while it can't be read who leads, what all the replicas' brokers
    agree on, since any of them may be the one. NULL where they differ."""
    held = F.transform("brokers", lambda b: b[field])
    agreed = F.when(F.size(F.array_distinct(held)) == 1, F.element_at(held, 1))
    return F.when(F.col("leader").isNotNull(), F.col("leading")[field]).otherwise(agreed)


def _min_isr() -> Column:
    """min.insync.replicas as it applies to a partition: an override or cluster-wide value as stated; a value that
    brokers hold themselves is the leader's (`_leaders`), certainly without a leader the weakest, and where the answer came
    from one broker's static settings the weakest over the brokers that hold replicas.

    Of the last, a live broker whose settings could not be read may hold a weaker one, so that only 1 is certain. One
    that is down is left out on purpose: its settings can't be read by anybody, it leads nothing now, and it would leave
    every topic with a replica there undecided.

    With ELR on, what controllers state stands in a cluster-wide record and beats all that brokers hold (`_recorded`). An
    answer for the topic that says otherwise is a contradiction, and the value unknown.
    """
    held = F.transform("brokers", lambda b: b["min_isr"])
    known = F.array_min(held)
    weakest = F.when(F.forall(held, lambda v: v.isNotNull()) | (known == 1), known)
    own = F.col("own_min_isr")
    inherited = F.least(own, known)
    read = F.forall("brokers", lambda b: b["min_isr"].isNotNull() | ~F.coalesce(b["live"], F.lit(True)))
    leaders = F.when(F.col("leader_known") & F.col("leader").isNull(), weakest).otherwise(_leaders("min_isr"))
    brokers_own = F.when(own.isNotNull(), F.when(read | (inherited == 1), inherited)).when(
        F.col("own_min_isr_source").isNull(), leaders
    )
    recorded = F.when(F.size("recorded_min_isr") == 1, F.element_at("recorded_min_isr", 1))
    either = F.when(recorded == brokers_own, recorded)
    return F.when(
        F.col("min_isr_readable"),
        F.when(F.col("own_min_isr_source").isin("topic", "cluster-default"), own)
        .when(~_recorded(), brokers_own)
        .otherwise(F.when(_recorded() & own.isNull(), recorded).otherwise(either)),
    )


def _recorded() -> Column:
    """Does a record that controllers made decide min.insync.replicas where a topic has no value? NULL: ELR may be on.

    Brokers that name a cluster-wide value themselves have read that record, as it stands by now."""
    read = F.exists("brokers", lambda b: b["min_isr_source"] == "cluster-default")
    return F.when((F.size("recorded_min_isr") == 0) | F.coalesce(read, F.lit(False)), False).otherwise(F.col("elr_on"))


def _min_isr_source() -> Column:
    holder = F.coalesce(F.col("leading"), F.try_element_at("brokers", F.lit(1)))
    brokers_own = ~F.coalesce(F.col("own_min_isr_source").isin("topic", "cluster-default"), F.lit(False))
    return F.when(
        F.col("min_isr_readable"),
        F.when(brokers_own & _recorded(), "cluster-default").otherwise(
            F.coalesce("own_min_isr_source", holder["min_isr_source"])
        ),
    )


def spans(shape: DataFrame) -> DataFrame:
    """The effective min ISR, and the racks that replicas and ISR span, as intervals.

    `span` counts racks as placement does, `replica_span` and `isr_span` as KIP-1290 does; those of replicas are the worse
    of replicas minus adding and replicas minus removing. `ends`: the layout of the replicas, while a reassignment runs
    those of three sets (`acks.guaranteed`); NULL where one can't be excluded.
    """
    # In between the ISR is drawn from old and new replicas together.
    ends = F.when(F.col("reassigning"), F.array("after_adding", "brokers", "before_removing")).when(
        F.col("after_adding").isNotNull(), F.array("after_adding")
    )
    counts = F.col("min_isr"), F.col("replica_count")
    laid_out = shape.select(
        "*",
        F.transform(ends, layout).alias("ends"),
        layout(F.col("in_sync")).alias("isr_layout"),
        effective_min_isr(*counts, F.col("caps")).alias("effective_min_isr"),
    )
    return laid_out.select(
        "*",
        enough_in_sync(F.col("isr_count"), *counts, F.col("effective_min_isr")).alias("enough"),
        _worse(rack_span).alias("span"),
        _worse(kip_1290_rack_span).alias("replica_span"),
        kip_1290_rack_span(F.col("isr_layout")).alias("isr_span"),
    )


def _worse(count: Callable[[Column], Column]) -> Column:
    ends = F.col("ends")
    after, before = count(F.element_at(ends, 1)), count(F.element_at(ends, -1))
    least, most = F.least(after["least"], before["least"]), F.least(after["most"], before["most"])
    return F.when(ends.isNotNull(), F.struct(least.alias("least"), most.alias("most")))


def judged(spans: DataFrame) -> DataFrame:
    """Per partition what each topic control compares, and KIP-427's categories.

    A category is NULL where a fact it needs is missing; all but `offline` need a live leader (KIP-427).
    """
    led, enough = ~F.col("offline"), F.col("enough")
    isr, rf, effective = F.col("isr_count"), F.col("rf"), F.col("effective_min_isr")
    required = F.col("required")
    wanted, span = racks_wanted(F.col("min_racks")), F.col("isr_span")
    frame = spans.select(
        "*",
        (led & ~enough).alias("under_min_isr"),
        (led & enough & (isr == effective)).alias("at_min_isr"),
        (led & (isr < rf)).alias("under_replicated"),
        F.coalesce(isr >= rf, F.lit(False)).alias("isr_whole"),
        (F.col("judged_rf") - effective).alias("write_headroom"),
        _acked().alias("acked"),
        against(F.col("span"), required["replica_racks"]).alias("replica_racks"),
        against(span, wanted).alias("isr_racks"),
        F.when(span["least"] == span["most"], span["least"]).alias("isr_rack_count"),
        isr_category(span, F.col("min_racks"), F.col("min_racks_known")).alias("isr_category"),
    )
    at_min_racks = F.col("isr_category") == AT
    return frame.select(
        "*",
        (F.col("isr_category") == UNDER).alias("under_min_racks"),
        _causes().alias("causes"),
        _cli_differs().alias("cli_differs"),
    ).withColumn(
        # At the minimum by shrinkage, not by placement: the replicas span more racks than the ISR does.
        "at_min_racks",
        F.when(~at_min_racks, False)
        # A whole ISR spans what the replicas span, whatever an unknown rack is.
        .when((F.col("isr_count") >= F.col("replica_count")) & F.col("isr_racks").isNotNull(), False)
        .when(
            at_min_racks,
            F.when(F.col("replica_span")["least"] > F.col("min_racks"), True).when(
                F.col("replica_span")["most"] <= F.col("min_racks"), False
            ),
        ),
    )


def _acked() -> Column:
    """What acks=all guarantees at worst (`acks.guaranteed`); where the replicas to judge by are unknown, at most as many
    copies and racks as there are replicas."""
    required, min_isr = F.col("required"), F.col("min_isr")
    copies, racks = required["acked_copies"], required["acked_racks"]
    # Observers are in the replica list and may never be in the ISR.
    ends = F.when(~F.col("has_observers"), F.col("ends"))
    known = acks.guaranteed(ends, min_isr, F.col("caps"), copies, racks)
    return F.coalesce(known, acks.undecided(F.least(min_isr, "replica_count")))


def _causes() -> Column:
    """Why the ISR is short or the leader gone: brokers or racks down, else replicas that lag, else a reassignment.

    While the ISR is whole but for replicas being added, which count in the effective min ISR already, those are missing.
    """
    missing = F.when(F.col("offline") | (F.size("out_of_sync") == 0), F.col("brokers")).otherwise(F.col("out_of_sync"))
    absent = F.filter(missing, lambda b: F.col("offline") | ~F.array_contains("isr", b["broker"]))
    down = F.filter(F.transform(absent, lambda b: b["down"]), lambda d: d.isNotNull())
    lagging = F.transform("out_of_sync", lambda b: b["lag_cause"])
    return (
        F.when(F.size(down) > 0, F.array_distinct(down))
        .when(F.size(lagging) > 0, lagging)
        .when(F.col("offline"), F.array(F.lit("no-leader")))
        .when(F.col("reassigning"), F.array(F.lit("reassignment")))
        .otherwise(F.array())
    )


def _cli_differs() -> Column:
    """Where kafka-topics shows a partition otherwise than KIP-427's categories do, as codes; NULL where they agree.

    `TopicCommand` compares min.insync.replicas as configured, and counts leaderless partitions. Codes, joined by ";":
    `leaderless`; `under:<configured>:<enforced>`, listed as under min ISR; `not-at`, left out of those at min ISR.
    """
    raw, isr, effective = F.col("min_isr"), F.col("isr_count"), F.col("effective_min_isr")
    led = ~F.col("offline")
    codes = F.array_compact(
        F.array(
            F.when(F.col("offline"), "leaderless"),
            F.when(
                led & (raw > effective) & (isr >= effective) & (isr < raw),
                F.concat_ws(":", F.lit("under"), raw.cast("string"), effective.cast("string")),
            ),
            F.when(led & (raw != effective) & (isr == effective), "not-at"),
        )
    )
    return F.when(F.size(codes) > 0, F.array_join(codes, ";"))


def in_racks(judged: DataFrame) -> DataFrame:
    """What KIP-1290's metrics and its broker would say (`spark_jobs.frames.rack_health`); NULL where a provider hides racks.

    `acks_all_proposed_error`: what a broker of all the proposals would answer, KIP-579's check first.
    """
    category = rack_category(~F.col("offline"), F.col("isr_category"))
    with_racks = kip_1290_error(F.col("acks_all_error"), F.col("rack_category"))
    above = F.col("min_isr") > F.coalesce("rf", "replica_count")
    return judged.select(
        "*",
        F.when(~F.col("racks_hidden"), category).alias("rack_category"),
        acks_all_error(F.col("offline"), F.col("under_min_isr")).alias("acks_all_error"),
    ).select(
        "*",
        with_racks.alias("acks_all_kip_1290_error"),
        kip_579_error(F.col("offline"), above, with_racks).alias("acks_all_proposed_error"),
    )


def of_brokers(judged: DataFrame) -> DataFrame:
    """What topics are measured by and only a partition's brokers tell.

    `missing_racks`: the lost racks in which it has replicas that are out of sync, or all of them when it is offline.
    `mixed_releases`: some of its brokers cap min.insync.replicas and some don't.
    `waits_for_dead`: replicas are being added on brokers that are down. `replicas_down`: the brokers of it that are.
    """
    away = F.filter(
        "brokers",
        lambda b: (
            F.array_contains("lost_racks", b["rack"]) & (F.col("offline") | ~F.array_contains("isr", b["broker"]))
        ),
    )
    waiting = F.filter(
        "brokers", lambda b: F.array_contains("adding", b["broker"]) & ~F.array_contains("isr", b["broker"])
    )
    return judged.withColumns(
        {
            "missing_racks": F.array_distinct(F.transform(away, lambda b: b["rack"])),
            "mixed_releases": F.exists("brokers", lambda b: b["caps"]) & F.exists("brokers", lambda b: ~b["caps"]),
            "replicas_down": F.transform(F.filter("brokers", lambda b: ~b["live"]), lambda b: b["broker"]),
            "waits_for_dead": F.exists(waiting, lambda b: ~F.coalesce(b["live"], F.lit(True))),
        }
    )


def build(partitions: DataFrame, topics: DataFrame, clusters: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """All steps, one after the other; see `facts`."""
    return of_brokers(in_racks(judged(spans(shape(facts(partitions, topics, clusters, keep))))))
