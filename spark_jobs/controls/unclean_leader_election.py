"""unclean-leader-election: enabled where the tier forbids it.

A topic override counts first, then the cluster-wide dynamic value, then the controllers' static one. Where the
controllers can't be asked, topics that depend on them have no verdict of their own: the cluster is UNKNOWN, once.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "unclean-leader-election"


def measures() -> dict[str, Column]:
    """Nothing of it depends on partitions."""
    return {}


def outcome() -> Column:
    """NULL: the cluster's controllers decide and are unknown; see `cluster_verdicts`."""
    forbidden = F.coalesce(~F.col("required")["unclean_leader_election"], F.lit(False))
    return (
        F.when(~forbidden, base.NOT_APPLICABLE)
        .when(F.col("unclean"), base.FAIL)
        .when(~F.col("unclean"), base.PASS)
        .when(~F.col("unclean_readable"), base.UNKNOWN)
    )


def check() -> Column:
    return base.check(CONTROL, F.col("unclean").cast("int"), F.lit(0))


def topic_verdicts(plan: Plan) -> list[Column]:
    own = F.coalesce(F.col("unclean_source") == "topic", F.lit(False))
    source = F.when(F.col("own_unclean").isNotNull(), F.col("unclean_source")).otherwise("controller")
    verdict = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.when(own, "configuration:topic").otherwise("configuration:cluster-default"),
        observed={"unclean_leader_election": F.col("unclean"), "source": source},
        required={"unclean_leader_election": F.col("required")["unclean_leader_election"]},
        evidence={"own": own},
    )
    return [verdict]


def cluster_verdicts(plan: Plan) -> list[Column]:
    """One UNKNOWN a cluster. `unclean_undecided`: how many of its topics wait for what its controllers would say."""
    waiting = F.col("unclean_undecided")
    verdict = base.verdict(
        CONTROL,
        F.when(waiting > 0, base.UNKNOWN),
        cause="controllers-unreadable",
        observed={"topics": waiting},
        required={"unclean_leader_election": F.lit(False)},
        evidence={base.REASON: F.lit("controllers-unreadable")},
    )
    return [verdict]
