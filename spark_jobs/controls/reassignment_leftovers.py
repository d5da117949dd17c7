"""reassignment-leftovers: a throttle without a reassignment, or a reassignment without progress.

A throttle that `kafka-reassign-partitions --verify` didn't remove keeps slowing down replication. A throttle of moves between log
dirs of a broker (KIP-113) is in use while replicas move there. A reassignment makes no progress if it waits for a replica on a
dead broker, or if it looks the same as in the last snapshot.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.facts import LOG_DIRS_THROTTLE

CONTROL = "reassignment-leftovers"
PATIENCE = "1 hour"
"""A reassignment that looks the same for so long counts as stuck. Large partitions take a while."""
SHOWN = 10
"""The most topics, and the most brokers, from which a remedy removes the throttle."""


def stuck() -> Column:
    """Is a partition's reassignment stuck? Reads `reassigning`, `awaited_dead` and `unchanged_reassignment`."""
    return certain(F.col("reassigning") & ((F.size("awaited_dead") > 0) | certain("unchanged_reassignment")))


def awaited(column: str) -> Column:
    """Measure: the brokers of a column, `awaited_dead` or `awaited_failed`, that stuck reassignments wait for."""
    return F.array_distinct(F.flatten(F.collect_list(F.when(stuck(), F.col(column)))))


def _moving(broker: Column) -> Column:
    """Do replicas certainly move between log dirs of the broker?"""
    return certain(broker["future_replicas"] > 0)


def _unused(throttles: Column, moving: Column) -> Column:
    """Throttles that nothing uses unless a reassignment runs. moving: do replicas move between log dirs?"""
    return F.when(moving, F.array_remove(throttles, LOG_DIRS_THROTTLE)).otherwise(throttles)


def _throttled(broker: Column) -> Column:
    """What the commands need to know of a throttled broker. in_file: the throttles that its server.properties states."""
    throttles = _unused(broker["throttles"], _moving(broker))
    in_file = F.array_intersect(throttles, broker["throttles_in_file"]).alias("in_file")
    return F.struct(broker["broker"], throttles.alias("throttles"), broker["live"], in_file)


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads a cluster's `brokers`, `throttled` topics, `unread_throttles` (topics), `reassigning` (partitions), `stuck`,
    `cancel_harms` and `below_minimum` (names), `awaited` and `awaited_failed` (brokers), and the columns that say which of
    these are known."""
    # The throttle of all brokers is in use if it is on one.
    anywhere = F.exists("brokers", _moving)
    own = F.filter(F.transform("brokers", _throttled), lambda b: F.size(b["throttles"]) > 0)
    by_default = F.filter("brokers", lambda b: F.size(_unused(b["default_throttles"], anywhere)) > 0)
    broker_ids = F.array_sort(F.array_union(own["broker"], by_default["broker"]))
    throttled_topics = F.coalesce("throttled", F.array().cast("array<struct<topic:string,throttles:array<string>>>"))
    topic_names = throttled_topics["topic"]
    names = ("stuck", "cancel_harms", "below_minimum")
    stuck_names, harmed, below = (F.coalesce(name, F.array().cast("array<string>")) for name in names)
    reassigning = F.coalesce("reassigning", F.lit(0))
    left = ~(reassigning > 0) & ((F.size(broker_ids) > 0) | (F.size(topic_names) > 0))
    unread = (
        ~F.col("reassignments_known")
        | ~F.col("brokers_known")
        | ~F.col("topics_known")
        | F.exists("brokers", lambda b: possible(b["live"]) & ~b["throttles_known"])
        | (F.coalesce("unread_throttles", F.lit(0)) > 0)
    )
    any_stuck = F.size(stuck_names) > 0
    outcome = (
        F.when(any_stuck, base.FAIL)
        .when(possible(unread), base.UNKNOWN)
        .when(left, base.FAIL)
        .when(~base.all_topics_shown(), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    yield base.verdict(
        CONTROL,
        outcome,
        cause=F.when(any_stuck, "reassignment")
        .when((outcome == base.UNKNOWN) & ~base.all_topics_shown(), base.TOPICS_HIDDEN)
        .otherwise("configuration:throttle"),
        observed={
            "throttled_brokers": broker_ids,
            "throttled_topics": topic_names,
            "stuck": stuck_names,
            "reassigning": reassigning,
        },
        required={"throttled_brokers": F.array(), "throttled_topics": F.array(), "stuck": F.array()},
        evidence={
            "left": left,
            "cancel_harms": F.slice(harmed, 1, SHOWN),
            "cancellable": F.slice(F.array_except(stuck_names, harmed), 1, SHOWN),
            "stuck_kept": F.slice(F.array_intersect(stuck_names, harmed), 1, SHOWN),
            "below_minimum": F.slice(F.array_intersect(stuck_names, below), 1, SHOWN),
            "waits_for": F.coalesce("awaited", F.array().cast("array<int>")),
            "failed_disks": F.coalesce("awaited_failed", F.array().cast("array<int>")),
            "topics": F.slice(throttled_topics, 1, SHOWN),
            "brokers": F.slice(own, 1, SHOWN),
            "default_throttles": _unused(F.array_distinct(F.flatten(by_default["default_throttles"])), anywhere),
        },
    )
