"""unclean-leader-election: enabled where the tier forbids it.

A topic override counts first, then the cluster-wide dynamic value, then the controllers' static one. Where the
controllers can't be asked, topics that depend on them have no verdict of their own: the cluster is UNKNOWN, once.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "unclean-leader-election"


def forbidden() -> Column:
    return ~F.col("required")["unclean_leader_election"]


def outcome() -> Column:
    """NULL: the cluster's controllers decide and are unknown; see `cluster_finding`."""
    applies = F.coalesce(forbidden(), F.lit(False))
    return (
        F.when(~applies, base.NOT_APPLICABLE)
        .when(F.col("unclean"), base.FAIL)
        .when(~F.col("unclean"), base.PASS)
        .when(~F.col("unclean_readable"), base.UNKNOWN)
    )


def posture() -> dict[str, Column]:
    return base.scalar_columns(CONTROL, F.coalesce(outcome(), F.lit("")), F.col("unclean").cast("int"), F.lit(0))


def finding() -> Column:
    own = F.col("unclean_source") == "topic"
    source = F.when(F.col("own_unclean").isNotNull(), F.col("unclean_source")).otherwise("controller")
    fix = F.when(own, base.topic_config("unclean.leader.election.enable", F.lit("false"))).otherwise(
        base.cluster_config("unclean.leader.election.enable", F.lit("false"))
    )
    return base.finding(
        CONTROL,
        outcome(),
        cause=F.when(own, "configuration:topic").otherwise("configuration:cluster-default"),
        observed=base.as_json(unclean_leader_election=F.col("unclean"), source=source),
        required=base.as_json(unclean_leader_election=F.when(F.col("required").isNotNull(), ~forbidden())),
        message=F.when(
            outcome() == base.FAIL,
            base.say(
                "unclean leader election is on (from ",
                source,
                "): a replica out of sync may become leader, and what acks=all acknowledged is lost",
            ),
        )
        .when(outcome() == base.UNKNOWN, base.missing_facts(CONTROL))
        .when(outcome() == base.NOT_APPLICABLE, base.not_required("unclean leader election to be off")),
        remediation=fix,
    )


def measures() -> dict[str, Column]:
    """Nothing of it depends on partitions."""
    return {}


def undecided() -> Column:
    """Does this topic wait for what the controllers would say?"""
    return outcome().isNull()


def cluster_finding() -> Column:
    """One UNKNOWN a cluster. `unclean_undecided`: how many of its topics wait; NULL where none does."""
    waiting = F.col("unclean_undecided")
    return base.finding(
        CONTROL,
        F.when(waiting > 0, base.UNKNOWN),
        cause="controllers can't be asked",
        observed=base.as_json(topics=waiting),
        required=base.as_json(unclean_leader_election=F.lit(False)),
        message=base.say(
            waiting,
            " topic(s) have no override of unclean.leader.election.enable, and what the controllers would do is unknown",
        ),
        remediation=base.say(
            "State it cluster-wide, where it can be read: ",
            base.cluster_config("unclean.leader.election.enable", F.lit("false")),
        ),
    )
