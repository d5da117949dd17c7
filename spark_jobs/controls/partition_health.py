"""partition-health: offline, under-min-isr, at-min-isr and under-replicated partitions (KIP-427), one finding per category.

All categories but offline need a live leader. A dead broker isn't in sync, even if the ISR lists it. A partition can be both
at-min-isr and under-replicated. A partition at min ISR with all its replicas in sync is healthy: the configuration alone puts
it there, so its severity is info.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, causes, reassignment, target
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.flagged import Flagged, each

CONTROL = "partition-health"
SHOWN = 5
"""The most contradicting readings that a verdict has."""
ELECTED = 10
"""The most partitions for which a remedy asks for an election."""
OF_OFFLINE = {
    "first": "offline_first",
    "unclean": "elects_unclean",
    "electable": "electable",
    "only_electable": "only_electable",
    "outdated": "outdated_leader",
    "overtaken": "overtaken",
    "last_known": "led_last",
}
"""Evidence on partitions without a leader, with the columns that have it."""
CATEGORIES = ("offline", "under-min-isr", "at-min-isr", "under-replicated")


def flag(category: str) -> Column:
    """Is the partition in this category?"""
    return F.col(base.column(category))


def known() -> Column:
    """Is it known for every category whether the partition is in it?"""
    decided = reduce(Column.__and__, (flag(category).isNotNull() for category in CATEGORIES))
    return certain(F.col("offline") | decided)


def measures() -> dict[str, Flagged]:
    """By category: its partitions, whether any ISR shrank, the causes, the numbers of the partition with the smallest ISR, the
    dead brokers that leaders wait for, and how kafka-topics differs."""
    unknown = ~known()
    columns = {
        "health_unknown": base.partition_ids(unknown),
        "health_contradictions": Flagged(unknown, _contradictions),
    }
    for category in CATEGORIES:
        name, found = base.column(category), flag(category)
        # The leader counts replicas being added, so an ISR can be complete and still below the minimum.
        growing = reassignment.cancel_restores() if category == "under-min-isr" else F.lit(False)
        # Replicas that come back don't help where the minimum is above their number.
        above = base.minimum_above_replicas() if category == "under-min-isr" else F.lit(False)
        columns |= {
            f"{name}_ids": base.partition_ids(found),
            f"{name}_shrunk": Flagged(
                found & ~above & (~F.col("isr_whole") | growing), lambda flagged: F.size(flagged) > 0
            ),
            f"{name}_isr_whole": Flagged(
                found, lambda flagged: (F.size(flagged) > 0) & F.forall(flagged, lambda p: p["isr_whole"])
            ),
            f"{name}_causes": base.causes_where(found),
            f"{name}_worst": Flagged(found, lambda flagged: F.array_min(F.transform(flagged, _numbers))),
            f"{name}_blocking": Flagged(
                found, lambda flagged: F.array_sort(F.array_distinct(F.flatten(each(flagged, "blocking"))))
            ),
            f"{name}_leaving": reassignment.removes_dead(found),
            f"{name}_cli": Flagged(found, lambda flagged: F.array_sort(F.array_distinct(each(flagged, "cli_differs")))),
        }
        if category == "under-min-isr":
            columns["growing"] = Flagged(found & growing, lambda flagged: F.size(flagged) > 0)
            columns["lagging_too"] = Flagged(
                found & ~above, lambda flagged: F.array_sort(F.array_distinct(F.flatten(each(flagged, "lagging"))))
            )
        if category == "offline":
            columns["offline_first"] = Flagged(found, _first)
            electable = found & causes.electable()
            columns["electable"] = base.partition_ids(electable)
            columns["only_electable"] = Flagged(electable, _only_electable)
            columns["overtaken"] = base.partition_ids(found & causes.overtaken())
            columns["led_last"] = base.partition_ids(found & causes.led_last())
            columns["outdated_leader"] = base.partition_ids(found & causes.outdated_leader())
    return columns


def _first(flagged: Column) -> Column:
    """The brokers that have to start before others, with the partitions that need them: the first SHOWN."""
    brokers = F.array_sort(F.array_distinct(each(flagged, "starts_first")))
    of_brokers = F.slice(brokers, 1, SHOWN)

    def needing(first: Column) -> Column:
        ids = F.flatten(F.filter(flagged, lambda p: certain(p["starts_first"] == first))["ids"])
        return F.struct(first.alias("brokers"), F.sort_array(ids).alias("partitions"))

    return F.transform(of_brokers, needing)


def _only_electable(flagged: Column) -> Column:
    """The first ELECTED partitions for whose election only one broker is up, each with that broker."""
    alone = F.filter(flagged, lambda p: p["only_electable"].isNotNull())

    def each_id(partition: Column) -> Column:
        broker = partition["only_electable"].alias("broker")
        return F.transform(partition["ids"], lambda id: F.struct(id.alias("partition"), broker))

    return F.slice(F.array_sort(F.flatten(F.transform(alone, each_id))), 1, ELECTED)


def _contradictions(flagged: Column) -> Column:
    """The first SHOWN partitions whose facts contradict each other, with both readings."""
    found = F.filter(flagged, lambda p: p["contradiction"].isNotNull())
    return F.slice(F.array_sort(F.transform(found, lambda p: F.struct(p["partition"], p["contradiction"]))), 1, SHOWN)


def _numbers(partition: Column) -> Column:
    """The numbers of one partition for a finding. They sort by ISR, unread ones last."""
    isr = partition["isr_count"]
    names = ("rf", "min_isr", "effective_min_isr", "min_isr_source", "replica_count", "caps")
    return F.struct(isr.isNull().alias("unread"), isr.alias("isr"), *(partition[name].alias(name) for name in names))


def outcome() -> Column:
    """The topic as a whole: UNKNOWN if a partition's health is unknown, PASS if no category applies, else NULL."""
    unread = possible(F.size("health_unknown") > 0) | ~F.col("partitions_known")
    healthy = reduce(Column.__and__, (F.size(f"{base.column(category)}_ids") == 0 for category in CATEGORIES))
    return F.when(unread, base.UNKNOWN).when(healthy, base.PASS)


def _of_category(category: str) -> Column:
    name = base.column(category)
    worst, ids, whole = F.col(f"{name}_worst"), F.col(f"{name}_ids"), F.col(f"{name}_isr_whole")
    # If the replicas are unknown, it is unknown whether an ISR is short.
    unknown = F.when(worst["replica_count"].isNull(), "unreadable").otherwise("replicas lagging")
    missing = F.coalesce(base.dominant(f"{name}_causes"), unknown)
    offline = category == "offline"
    shrunk = F.lit(True) if offline else F.col(f"{name}_shrunk")
    blocking = F.col(f"{name}_blocking")
    return base.verdict(
        CONTROL,
        F.when((F.size(ids) > 0) & ~_provided(), base.FAIL),
        category=category,
        severity_of=_severity_of(category, blocking, shrunk),
        cause=F.when(shrunk, missing).otherwise(base.min_isr_cause(worst["min_isr_source"])),
        observed={
            "category": F.lit(category),
            "cause": F.lit("shrunk") if offline else F.when(whole, "configuration").otherwise("shrunk"),
            "isr": worst["isr"],
            "replication_factor": worst["rf"],
            "min_insync_replicas": worst["min_isr"],
            "effective_min_insync_replicas": worst["effective_min_isr"],
        },
        evidence={
            "replicas": worst["replica_count"],
            "caps": worst["caps"],
            "blocking": blocking,
            "cli_differs": F.col(f"{name}_cli"),
            "shrunk": shrunk,
            "missing": base.dominant(f"{name}_causes"),
            "growing": F.col("growing"),
            "leaving": F.col(f"{name}_leaving"),
            "cancel_harms": F.size("cancel_harms") > 0,
            "target": F.col(target.TARGET),
            **({"lagging": F.col("lagging_too")} if category == "under-min-isr" else {}),
            **({name: F.col(column) for name, column in OF_OFFLINE.items()} if offline else {}),
        },
        partitions=ids,
    )


def _provided() -> Column:
    """Is the provider responsible for this control, or does the platform hide what it needs? Then categories say nothing."""
    return base.providers_duty(CONTROL) | base.platform_hides(F.lit(CONTROL), CONTROL)


def _severity_of(category: str, blocking: Column, shrunk: Column) -> Column | str:
    """The category whose severity applies. A partition whose leader waits for a dead broker takes no acks=all writes now."""
    if category not in ("at-min-isr", "under-replicated"):
        return category
    waiting = F.when(F.size(blocking) > 0, "waiting")
    if category == "at-min-isr":
        waiting = waiting.when(~shrunk, "at-min-isr/configuration")
    return waiting.otherwise(category)


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    """One per category that applies, else one PASS or UNKNOWN for the topic."""
    none = F.lit(None).cast("string")
    rest = base.verdict(
        CONTROL,
        F.when(_provided(), base.UNKNOWN).otherwise(base.outcome_of(CONTROL)),
        cause="unreadable",
        observed={"category": none, "cause": none},
        evidence={**base.unknown_because(), "contradictions": F.col("health_contradictions")},
        partitions=F.col("health_unknown"),
    )
    return [*(_of_category(category) for category in CATEGORIES), rest]


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """One UNKNOWN if topics or brokers could not be listed, or if topics are or may be hidden from the auditor.

    DescribeLogDirs lists every partition, including those of topics that Metadata omits. `hidden_partitions` is NULL if log
    dirs could not be read. Some providers never show them.
    """
    hidden = F.col("hidden_partitions")
    unlisted = ~F.col("topics_known") | ~F.col("brokers_known")
    reason = (
        F.when(hidden > 0, "topics-hidden")
        .when(hidden.isNull() & base.providers_duty("log-dirs"), "provider-hides")
        .when(hidden.isNull(), "topics-may-be-hidden")
        .otherwise("unlisted")
    )
    yield base.verdict(
        CONTROL,
        F.when(unlisted | ~base.all_topics_shown(), base.UNKNOWN),
        cause=F.when(reason == "unlisted", "unreadable").otherwise(base.TOPICS_HIDDEN),
        observed={"hidden_partitions": hidden},
        required={"hidden_partitions": F.lit(0)},
        evidence={base.REASON: reason},
    )
