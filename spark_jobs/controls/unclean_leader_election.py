"""unclean-leader-election: it is enabled, but the tier forbids it.

A topic's override applies first, then the cluster-wide dynamic value, then the static value of the controllers. If that value
is needed and can't be read, the topics have no verdict, and their cluster has one UNKNOWN. Kafka's default was true before 0.11
(KIP-106).
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain

CONTROL = "unclean-leader-election"


def outcome() -> Column:
    """NULL if the controllers' value is needed and unknown; see `cluster_verdicts`."""
    enabled = F.col("unclean")
    return (
        F.when(~certain(~F.col("required")["unclean_leader_election"]), base.NOT_APPLICABLE)
        .when(enabled, base.FAIL)
        .when(~enabled, base.PASS)
        .when(~F.col("unclean_readable"), base.UNKNOWN)
    )


def check() -> Column:
    return base.check(CONTROL, F.col("unclean").cast("int"), F.lit(0))


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    own = certain(F.col("unclean_source") == "topic")
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause=F.when(own, "configuration:topic").otherwise("configuration:cluster-default"),
        observed={
            "unclean_leader_election": F.col("unclean"),
            "source": F.when(F.col("own_unclean") == F.col("unclean"), F.col("unclean_source"))
            .when(certain(F.col("unclean") & F.col("unclean_by_default")), "default")
            .otherwise(F.col("unclean_default_source")),
        },
        required={"unclean_leader_election": F.col("required")["unclean_leader_election"]},
        evidence={
            "own": own,
            "ignored": certain(F.col("ignores_unclean")),
            **{
                name: F.when(~own & (F.size(name) > 0), F.col(name))
                for name in ("unclean_brokers", "unclean_controllers")
            },
        },
    )


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `unclean_undecided`: the number of the cluster's topics that inherit a value that is needed and unknown.

    It is the controllers' value, or Kafka's default, which depends on the release (`unclean_by_default`).
    """
    undecided = F.col("unclean_undecided")
    reason = F.when(certain("unclean_by_default"), "release-unknown").otherwise("controllers-unreadable")
    yield base.verdict(
        CONTROL,
        F.when(undecided > 0, base.UNKNOWN),
        cause=reason,
        observed={"topics": undecided},
        required={"unclean_leader_election": F.lit(False)},
        evidence={base.REASON: reason, "kafka_version": F.col("kafka_version")},
    )
