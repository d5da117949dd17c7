"""The columns of a partition that rules read: its health (KIP-427), what its leader enforces, and the racks it spans.

Each step selects from the step before, so that Spark computes shared expressions once.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.policy.numbers import BELOW_RF
from spark_jobs.frames import acks, base, causes, min_isr, rack_health, settings
from spark_jobs.frames.columns import certain, possible, struct
from spark_jobs.frames.effective_min_isr import effective_min_isr, enough_in_sync
from spark_jobs.frames.facts import unlisted
from spark_jobs.frames.losses import sure
from spark_jobs.frames.rack_health import AT, NEITHER, UNDER, isr_category, racks_wanted
from spark_jobs.frames.racks import against, balance, kip_1290_rack_span, layout, own_racks, rack_span

TOPIC_SETTINGS = (
    "min_isr_readable",
    "own_min_isr",
    "own_min_isr_source",
    "has_observers",
    "diskless",
    "min_racks",
    "min_racks_known",
    "elr_on",
    *settings.columns(),
)
"""The columns of a partition's topic that rules may read, besides `required`. Topics that differ in one of them aren't equal
(`spark_jobs.scale.groups`)."""


def facts(partitions: DataFrame, topics: DataFrame, clusters: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """Partitions joined with their topic's settings, and with brokers instead of replica ids (`brokers`, `leading`).

    Leaders and replicas of a diskless topic have no meaning, so they are NULL.

    partitions: each row represents the partitions `ids`, with their leaders in `leaders` (`spark_jobs.scale.groups`).
        `unchanged_reassignment`: did the previous snapshot have the same reassignment?
    keep: columns of `partitions` to keep.
    """
    per_topic = topics.select("cluster", "topic", "required", *TOPIC_SETTINGS)
    per_cluster = clusters.select(
        *("cluster", "broker", "reassignments_known", "provider", "recorded_min_isr"),
        F.col("lost_racks")["rack"].alias("lost_racks"),
        F.size("racks").alias("cluster_racks"),
        "unknown_racks",
    )
    joined = partitions.join(F.broadcast(per_topic), ["cluster", "topic"]).join(F.broadcast(per_cluster), "cluster")
    moving = F.col("reassignments_known")
    replicated = ~F.col("diskless")
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
        "cluster_racks",
        "unknown_racks",
        *(
            F.when(replicated, F.col(name)).alias(name)
            for name in ("leader", "replicas", "isr", "elr", "last_known_elr")
        ),
        "contradiction",
        *(F.when(replicated & moving, F.col(name)).alias(name) for name in ("adding", "removing")),
        (~certain(F.array_contains("unreadable", "leader"))).alias("leader_known"),
        F.try_element_at("broker", F.col("leader")).alias("leading"),
        F.when(
            replicated,
            F.transform("replicas", lambda id: F.coalesce(F.try_element_at("broker", id), unlisted(id))),
        ).alias("brokers"),
    )


def live_members(facts: DataFrame) -> DataFrame:
    """`offline`, and the ISR without dead brokers: `live_isr`. `dead_in_isr` has the ids of its dead members.

    A dead broker isn't in sync, even if the ISR lists it. The leader removes it after replica.lag.time.max.ms, the KRaft
    controller after broker.session.timeout.ms, unless the quorum has lost its majority. Without a leader the ISR is used
    unchanged, because its last members stay in it when they fail.

    `starts_first`, `leaving`: see `_starts_first`, `_leaving`.
    """
    offline = F.when(F.col("leader").isNull(), True).otherwise(~F.col("leading")["live"])
    offline = F.when(F.col("diskless"), False).when(F.col("leader_known"), offline)
    dead = F.filter("brokers", lambda b: certain(~b["live"]) & F.array_contains("isr", b["broker"]))["broker"]
    found = facts.select(
        "*",
        offline.alias("offline"),
        F.when(possible(~offline), dead).alias("dead_in_isr"),
        F.when(offline, _starts_first()).alias("starts_first"),
        _leaving(offline).alias("leaving"),
    )
    without = F.filter("isr", lambda id: ~F.array_contains("dead_in_isr", id))
    return found.withColumn("live_isr", F.when(F.size("dead_in_isr") > 0, without).otherwise(F.col("isr")))


def _starts_first() -> Column:
    """Of an offline partition: the sorted ids of the brokers that have all its acknowledged records, if others may start first.

    If neither its ISR nor its ELR has a member, it is the broker that led last (KIP-966). NULL if a broker of them is up, if no
    other replica is down, or if it is unknown. The same partitions have the same ids in a group of equal partitions.
    """
    known = F.col("elr_on").isNotNull() | (F.size("elr") == 0)
    copies = F.when(known, F.when(F.size(sure()) > 0, sure()).otherwise(F.col("last_known_elr")))
    up = F.filter("brokers", lambda b: certain(b["live"]))["broker"]
    others = F.exists("brokers", lambda b: possible(~b["live"]) & ~F.array_contains(copies, b["broker"]))
    return F.when((F.size(copies) > 0) & ~F.arrays_overlap(copies, up) & others, F.sort_array(copies))


def _leaving(offline: Column) -> Column:
    """Will a running reassignment remove all replicas of a partition that are down? NULL if none is down.

    It doesn't end without a leader.
    """
    down = F.filter("brokers", lambda b: certain(~b["live"]))
    removed = F.forall(down, lambda b: certain(F.array_contains("removing", b["broker"])))
    return F.when(F.size(down) > 0, certain(~offline) & removed)


def shape(facts: DataFrame) -> DataFrame:
    """Replicas in sync and out of sync, as counts and as brokers, and min.insync.replicas. facts: with `live_members`.

    - `rf`: the number of replicas that are not being added. KIP-427's under-replicated compares the ISR with it.
    - `judged_rf`, `most_rf`: the smaller and the larger of `rf` and the number of replicas that are not being removed.
    - `after_adding`, `before_removing`: the brokers of these two sets.

    The first three are NULL if a reassignment can't be ruled out, or if Confluent observers are among the replicas.
    """
    brokers, isr = F.col("brokers"), F.col("live_isr")
    replicas, changing = F.size("replicas"), F.size("adding") + F.size("removing")
    moving = certain(changing > 0)
    # If all replicas are in sync, it doesn't matter whether a reassignment could be read.
    at_rest = certain((changing == 0) | (F.size(isr) >= replicas))
    countable = ~F.col("has_observers")
    without_adding = F.filter("brokers", lambda b: ~F.array_contains("adding", b["broker"]))
    without_removing = F.filter("brokers", lambda b: ~F.array_contains("removing", b["broker"]))
    ends = F.size(without_adding), F.size(without_removing)
    in_sync = F.filter(brokers, lambda b: F.array_contains(isr, b["broker"]))
    out_of_sync = F.filter(
        brokers, lambda b: ~F.array_contains(isr, b["broker"]) & ~certain(F.array_contains("adding", b["broker"]))
    )
    return facts.select(
        "*",
        replicas.alias("replica_count"),
        F.size(isr).alias("isr_count"),
        F.when(isr.isNotNull(), in_sync).alias("in_sync"),
        F.when(isr.isNotNull(), out_of_sync).alias("out_of_sync"),
        moving.alias("reassigning"),
        F.when(countable, F.when(moving, F.size(without_adding)).when(at_rest, replicas)).alias("rf"),
        F.when(countable, F.when(moving, F.least(*ends)).when(at_rest, replicas)).alias("judged_rf"),
        F.when(countable, F.when(moving, F.greatest(*ends)).when(at_rest, replicas)).alias("most_rf"),
        F.when(moving, without_adding).when(at_rest, brokers).alias("after_adding"),
        F.when(moving, without_removing).when(at_rest, brokers).alias("before_removing"),
        min_isr.acked().alias("acked_min_isr"),
        min_isr.source().alias("min_isr_source"),
        # Possible leaders may have different releases. Neither is always worse: one rejects writes, the other keeps fewer copies.
        min_isr.of_leader("caps").alias("caps"),
    )


def spans(shape: DataFrame) -> DataFrame:
    """The effective min ISR, and the racks that the replicas and the ISR span, each as struct<least, most>.

    - `blocking`: the dead brokers in the ISR that a leader waits for before it acknowledges an acks=all write; NULL if there are
      none. A leader with too few replicas in the ISR doesn't wait, it rejects the write.
    - `span`: the racks of the replicas, counted as for placement.
    - `replica_span`, `isr_span`: racks as KIP-1290 counts them.
    - `ends`: the layouts of the replicas for `acks.guaranteed`; NULL if a reassignment can't be ruled out.

    During a reassignment, `span` and `replica_span` are the worse of two counts: without the replicas being added, and without
    those being removed.
    """
    # During a reassignment the ISR may consist of old and new replicas.
    ends = F.when(F.col("reassigning"), F.array("after_adding", "brokers", "before_removing")).when(
        F.col("after_adding").isNotNull(), F.array("after_adding")
    )
    counts = F.col("min_isr"), F.col("replica_count")
    laid_out = shape.withColumn("min_isr", min_isr.enforced()).select(
        "*",
        F.transform(ends, layout).alias("ends"),
        layout(F.col("in_sync")).alias("isr_layout"),
        effective_min_isr(*counts, F.col("caps")).alias("effective_min_isr"),
        effective_min_isr(F.col("acked_min_isr"), F.col("replica_count"), F.col("caps")).alias(
            "acked_effective_min_isr"
        ),
    )
    appended = possible(enough_in_sync(F.size("isr"), *counts, F.col("effective_min_isr")))
    return laid_out.select(
        "*",
        enough_in_sync(F.col("isr_count"), *counts, F.col("effective_min_isr")).alias("enough"),
        F.when((F.size("dead_in_isr") > 0) & appended, F.col("dead_in_isr")).alias("blocking"),
        _worse(rack_span).alias("span"),
        _worse(kip_1290_rack_span).alias("replica_span"),
        kip_1290_rack_span(F.col("isr_layout")).alias("isr_span"),
        *(column.alias(name) for name, column in _placement().items()),
    )


def _placement() -> dict[str, Column]:
    """Columns for tiers with `replica_racks: all` or `replica_rack_balance`; NULL for other tiers. Observers don't count.

    `own_racks`: see `racks.own_racks`. `balance`: see `racks.balance`.
    """
    ends, required = F.when(~F.col("has_observers"), F.col("ends")), F.col("required")
    below = required[f"replica_racks{BELOW_RF}"]
    even = balance(ends, F.col("cluster_racks"), F.col("unknown_racks"))
    return {
        "own_racks": F.when(below.isNotNull(), own_racks(ends, below)),
        "balance": F.when(required["replica_rack_balance"], even),
    }


def _required(key: str, relative: Column) -> Column:
    """A partition's minimum under a key of its tier: the stated number, or one relative to its replication factor."""
    stated = F.col("required")[key]
    return F.when(stated.isNull(), relative).otherwise(stated)


def _worse(count: Callable[[Column], Column]) -> Column:
    ends = F.col("ends")
    after, before = count(F.element_at(ends, 1)), count(F.element_at(ends, -1))
    worse = struct({bound: F.least(after[bound], before[bound]) for bound in ("least", "most")})
    return F.when(ends.isNotNull(), worse)


def judged(spans: DataFrame) -> DataFrame:
    """The numbers that controls for topics compare, and KIP-427's categories.

    A category is NULL if a fact that it needs is missing. All categories but `offline` need a live leader. A diskless topic has
    no leaders by design, so no category applies.
    """
    led, enough = ~F.col("offline") & ~F.col("diskless"), F.col("enough")
    isr, effective, isr_span = F.col("isr_count"), F.col("effective_min_isr"), F.col("isr_span")
    min_racks, required = F.col("min_racks"), F.col("required")
    below = required[f"min_insync_replicas{BELOW_RF}"]
    relative = F.when(
        F.col("judged_rf").isNotNull() & below.isNotNull(), F.greatest(F.lit(1), F.col("judged_rf") - below)
    )
    # Observers are among the replicas and add no rack. The other replicas span one rack or more.
    fewest = F.when(F.col("has_observers"), F.least(F.lit(1), F.col("span")["most"])).otherwise(F.col("span")["least"])
    span = against(struct({"least": fewest, "most": F.col("span")["most"]}), required["replica_racks"])
    # A dead replica that is being added may be in the ISR. `rf` doesn't count it, but the leader waits for it.
    dead = certain(F.size("dead_in_isr") > 0)
    frame = spans.select(
        "*",
        (led & ~enough).alias("under_min_isr"),
        (led & enough & (isr == effective)).alias("at_min_isr"),
        (led & ((isr < F.col("rf")) | dead)).alias("under_replicated"),
        (certain(isr >= F.col("rf")) & ~dead).alias("isr_whole"),
        # Another leader may have another value.
        F.when(F.col("acked_effective_min_isr").isNotNull(), F.col("judged_rf") - effective).alias("write_headroom"),
        _acked().alias("acked"),
        F.when(F.col("own_racks").isNotNull(), F.col("own_racks")["racks"]).otherwise(span).alias("replica_racks"),
        _required("replica_racks", F.col("own_racks")["required"]).alias("required_replica_racks"),
        _required("min_insync_replicas", relative).alias("required_min_insync_replicas"),
        against(isr_span, racks_wanted(min_racks)).alias("isr_racks"),
        F.when(isr_span["least"] == isr_span["most"], isr_span["least"]).alias("isr_rack_count"),
        isr_category(isr_span, min_racks, F.col("min_racks_known")).alias("isr_category"),
    )
    at, replica_span = F.col("isr_category") == AT, F.col("replica_span")
    # A complete ISR spans the same racks as the replicas, even if some racks are unknown.
    whole = (isr >= F.col("replica_count")) & F.col("isr_racks").isNotNull()
    # At the minimum because of missing replicas: the replicas span more racks than the ISR.
    by_shrinking = F.when(replica_span["least"] > min_racks, True).when(replica_span["most"] <= min_racks, False)
    return frame.select(
        "*",
        (F.col("isr_category") == UNDER).alias("under_min_racks"),
        F.when(~at | whole, False).when(at, by_shrinking).alias("at_min_racks"),
        causes.causes().alias("causes"),
        causes.cli_differs().alias("cli_differs"),
    )


def _acked() -> Column:
    """What acks=all guarantees in the worst case (`acks.guaranteed`).

    If the replicas are unknown, it guarantees at most as many copies and racks as there are replicas.
    """
    required, minimum = F.col("required"), F.col("acked_min_isr")
    # Observers are among the replicas and may never join the ISR.
    ends = F.when(~F.col("has_observers"), F.col("ends"))
    known = acks.guaranteed(ends, minimum, F.col("caps"), required["acked_copies"], required["acked_racks"])
    return F.coalesce(known, acks.undecided(F.least(minimum, "replica_count")))


def in_racks(judged: DataFrame) -> DataFrame:
    """KIP-1290's category (NULL if a provider hides racks) and the answers to an acks=all write (`rack_health.answers`)."""
    offline = F.col("offline")
    # The proposal's metrics belong to the leader.
    category = F.when(offline | F.col("diskless"), NEITHER).when(~offline, F.col("isr_category"))
    above = F.col("min_isr") > F.coalesce("rf", "replica_count")
    states = F.col("under_min_isr"), F.col("blocking").isNotNull()
    answers = rack_health.answers(offline, *states, F.col("rack_category"), above)
    with_category = judged.select("*", F.when(~F.col("racks_hidden"), category).alias("rack_category"))
    return with_category.select("*", *(answer.alias(name) for name, answer in answers.items()))


def of_brokers(judged: DataFrame) -> DataFrame:
    """The columns about a partition's brokers that rules read.

    - `missing_racks`: the lost racks with replicas out of sync, or with any replica of an offline partition.
    - `mixed_releases`: some brokers cap min.insync.replicas and some don't.
    - `awaited_dead`: the dead brokers that a reassignment waits for. KRaft completes it only when all replicas that stay are in
      sync (KAFKA-19975). Without a leader nothing is copied: then it waits for the ISR, too.
    - `awaited_failed`: the live brokers that a reassignment waits for and that have an offline log dir.
    - `lagging`: the live brokers whose replicas lag and stay, where a broker that is down or has a failed disk is the cause
      (`causes`). NULL if there are none, or if observers can be among them.
    - `only_electable`: see `causes.only_electable`.
    - `replicas_down`: the dead brokers.
    """
    missing = F.filter(
        "brokers",
        lambda b: (
            F.array_contains("lost_racks", b["rack"]) & (F.col("offline") | ~F.array_contains("live_isr", b["broker"]))
        ),
    )
    waiting = F.filter(
        "brokers",
        lambda b: (
            (~F.array_contains("removing", b["broker"]) & ~F.array_contains("live_isr", b["broker"]))
            | certain(F.col("offline") & F.array_contains("isr", b["broker"]))
        ),
    )
    failed = " disk-offline"
    stays = F.filter("out_of_sync", lambda b: ~certain(F.array_contains("removing", b["broker"])))
    behind = F.filter(stays, lambda b: certain(b["live"]) & certain(b["lag_cause"].endswith(" lagging")))
    explained = F.exists("out_of_sync", lambda b: certain(~b["live"]) | certain(b["lag_cause"].endswith(failed)))
    return judged.withColumns(
        {
            "missing_racks": F.array_distinct(missing["rack"]),
            "mixed_releases": F.exists("brokers", lambda b: b["caps"]) & F.exists("brokers", lambda b: ~b["caps"]),
            "replicas_down": F.filter("brokers", lambda b: ~b["live"])["broker"],
            "awaited_dead": F.filter(waiting, lambda b: ~possible(b["live"]))["broker"],
            "awaited_failed": F.filter(
                waiting, lambda b: certain(b["live"]) & certain(b["lag_cause"].endswith(failed))
            )["broker"],
            "only_electable": causes.only_electable(),
            "lagging": F.when(explained & (F.size(behind) > 0) & ~F.col("has_observers"), behind["broker"]),
        }
    )


def build(partitions: DataFrame, topics: DataFrame, clusters: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """Apply all steps in order. The arguments are those of `facts`."""
    return of_brokers(in_racks(judged(spans(shape(live_members(facts(partitions, topics, clusters, keep)))))))
