"""reassignment-leftovers: a throttle without a reassignment, or a reassignment that makes no progress.

A throttle that `kafka-reassign-partitions --verify` never removed keeps slowing replication down, quietly. A reassignment
makes no progress when the broker it adds is down, or when nothing of it has changed since the last snapshot.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "reassignment-leftovers"
PATIENCE = "1 hour"
"""How long a reassignment may look the same before it counts as stuck: large partitions take a while."""


def stuck() -> Column:
    """Of a partition: is its reassignment stuck? Reads `waits_for_dead` and `unchanged_reassignment`."""
    dead = F.col("waits_for_dead")
    return F.coalesce(
        F.col("reassigning") & (dead | F.coalesce(F.col("unchanged_reassignment"), F.lit(False))), F.lit(False)
    )


def _commands(on_topics: Column, throttled: Column) -> Column:
    """What removes the throttles of topics and brokers."""
    # kafka-configs refuses to delete what isn't set, so each command names just the settings that are.
    topic_command = f"{base.CONFIGS_COMMAND} --entity-type topics --entity-name %s --delete-config %s"
    broker_command = f"{base.CONFIGS_COMMAND} --entity-type brokers --entity-name %s --delete-config %s"
    each_topic = F.transform(
        F.slice(on_topics, 1, base.IDS_SHOWN),
        lambda t: base.say(topic_command, t["topic"], F.array_join(t["throttles"], ",")),
    )
    each_broker = F.transform(
        F.slice(throttled, 1, base.IDS_SHOWN),
        lambda b: base.say(broker_command, b["broker"], F.array_join(b["throttles"], ",")),
    )
    return F.concat(each_topic, each_broker)


def finding() -> Column:
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
    words = F.array_compact(
        F.array(
            F.when(F.size(stuck_names) > 0, base.listed(stuck_names, "no progress: ")),
            F.when(left & (F.size(ids) > 0), base.listed(ids, "replication throttles left on broker ")),
            F.when(left & (F.size(topics) > 0), base.listed(topics, "throttled replicas left on topic ")),
        )
    )
    return base.finding(
        CONTROL,
        outcome,
        cause=F.when(F.size(stuck_names) > 0, "reassignment").otherwise("configuration:throttle"),
        observed=base.as_json(
            throttled_brokers=ids,
            throttled_topics=topics,
            stuck=stuck_names,
            reassigning=F.coalesce("reassigning", F.lit(0)),
        ),
        required=base.as_json(throttled_brokers=F.array(), throttled_topics=F.array(), stuck=F.array()),
        message=F.when(outcome == base.FAIL, F.array_join(words, "; ")).when(
            outcome == base.UNKNOWN, "reassignments or the configs that would hold throttles could not be read"
        ),
        remediation=F.when(
            F.size(stuck_names) > 0,
            base.script(
                base.comment(
                    "Bring back the brokers being added, or take back what runs: --cancel, with the file it was started from."
                ),
                base.RUNNING,
            ),
        )
        .when(outcome == base.FAIL, F.array_join(_commands(on_topics, throttled), "\n"))
        .otherwise("Give the auditor Describe and DescribeConfigs on cluster and topics"),
    )
