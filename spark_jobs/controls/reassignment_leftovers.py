"""reassignment-leftovers: a throttle without a reassignment, or a reassignment that makes no progress.

A throttle that `kafka-reassign-partitions --verify` never removed keeps slowing replication down, quietly. A reassignment
makes no progress when the broker it adds is down, or when nothing of it has changed since the last snapshot.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "reassignment-leftovers"
PATIENCE = "1 hour"
"""How long a reassignment may look the same before it counts as stuck: large partitions take a while."""
SHOWN = 10
"""Topics and brokers with a throttle of which a remedy removes it, of each."""


def stuck() -> Column:
    """Of a partition: is its reassignment stuck? Reads `waits_for_dead` and `unchanged_reassignment`."""
    dead = F.col("waits_for_dead")
    return F.coalesce(
        F.col("reassigning") & (dead | F.coalesce(F.col("unchanged_reassignment"), F.lit(False))), F.lit(False)
    )


def cluster_verdicts(plan: Plan) -> list[Column]:
    """Reads a cluster's `brokers`, `reassigning` (partitions), `stuck` (names), `throttled` (topics), `reassignments_known`."""
    throttled = F.filter("brokers", lambda b: F.size(b["throttles"]) > 0)
    ids = F.transform(throttled, lambda b: b["broker"])
    running = F.coalesce(F.col("reassigning"), F.lit(0)) > 0
    on_topics = F.coalesce("throttled", F.array().cast("array<struct<topic:string,throttles:array<string>>>"))
    topics = F.transform(on_topics, lambda t: t["topic"])
    stuck_names = F.coalesce("stuck", F.array().cast("array<string>"))
    left = ~running & ((F.size(ids) > 0) | (F.size(topics) > 0))
    unread = (
        ~F.col("reassignments_known")
        | ~F.col("brokers_known")
        | ~F.col("topics_known")
        | F.exists("brokers", lambda b: F.coalesce(b["live"], F.lit(True)) & ~b["throttles_known"])
        | (F.coalesce("unread_throttles", F.lit(0)) > 0)
    )
    outcome = (
        F.when(F.size(stuck_names) > 0, base.FAIL)
        .when(F.coalesce(unread, F.lit(True)), base.UNKNOWN)
        .when(left, base.FAIL)
        .otherwise(base.PASS)
    )
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=F.when(F.size(stuck_names) > 0, "reassignment").otherwise("configuration:throttle"),
        observed={
            "throttled_brokers": ids,
            "throttled_topics": topics,
            "stuck": stuck_names,
            "reassigning": F.coalesce("reassigning", F.lit(0)),
        },
        required={"throttled_brokers": F.array(), "throttled_topics": F.array(), "stuck": F.array()},
        evidence={
            "left": left,
            "topics": F.slice(on_topics, 1, SHOWN),
            "brokers": F.slice(F.transform(throttled, lambda b: F.struct(b["broker"], b["throttles"])), 1, SHOWN),
        },
    )
    return [verdict]
