"""unclean-leader-election: enabled where the tier forbids it.

A topic override counts first, then the cluster-wide dynamic value, then the controllers' static one. Where the
controllers can't be asked, topics that depend on them have no verdict of their own: the cluster is UNKNOWN, once.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "unclean-leader-election"
SETTING = "unclean.leader.election.enable"


def measures() -> dict[str, Column]:
    """Nothing of it depends on partitions."""
    return {}


def outcome() -> Column:
    """NULL: the cluster's controllers decide and are unknown; see `cluster_finding`."""
    forbidden = F.coalesce(~F.col("required")["unclean_leader_election"], F.lit(False))
    return (
        F.when(~forbidden, base.NOT_APPLICABLE)
        .when(F.col("unclean"), base.FAIL)
        .when(~F.col("unclean"), base.PASS)
        .when(~F.col("unclean_readable"), base.UNKNOWN)
    )


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, F.col("unclean").cast("int"), F.lit(0))


def finding() -> Column:
    own = F.coalesce(F.col("unclean_source") == "topic", F.lit(False))
    source = F.when(F.col("own_unclean").isNotNull(), F.col("unclean_source")).otherwise("controller")
    off = F.lit("false")
    return base.finding(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.when(own, "configuration:topic").otherwise("configuration:cluster-default"),
        observed=base.as_json(unclean_leader_election=F.col("unclean"), source=source),
        required=base.as_json(unclean_leader_election=F.col("required")["unclean_leader_election"]),
        message=base.say(
            "unclean leader election is on (from %s): a replica out of sync may become leader, and what acks=all"
            " acknowledged is lost",
            source,
        ),
        remediation=F.when(own, base.topic_config(SETTING, off)).otherwise(base.cluster_config(SETTING, off)),
    )


def cluster_finding() -> Column:
    """One UNKNOWN a cluster. `unclean_undecided`: how many of its topics wait for what its controllers would say."""
    waiting = F.col("unclean_undecided")
    return base.finding(
        CONTROL,
        F.when(waiting > 0, base.UNKNOWN),
        cause="controllers can't be asked",
        observed=base.as_json(topics=waiting),
        required=base.as_json(unclean_leader_election=F.lit(False)),
        message=base.say(
            f"%s topic(s) have no override of {SETTING}, and what the controllers would do is unknown", waiting
        ),
        remediation=base.script(
            base.comment("States it cluster-wide, where it can be read:"), base.cluster_config(SETTING, F.lit("false"))
        ),
    )
