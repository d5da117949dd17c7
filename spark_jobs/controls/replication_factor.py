"""replication-factor: a partition has fewer replicas than its tier requires, or more than it allows.

During a reassignment there are two numbers: replicas without those being added, and without those being removed. The smaller
one counts for the minimum, the larger one for the maximum.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import AT_MOST
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain
from spark_jobs.frames.flagged import Flagged, each
from spark_jobs.frames.partition_minimum import PartitionMinimum

CONTROL = "replication-factor"
RULE = PartitionMinimum(CONTROL, "judged_rf", key="replication_factor")
ABOVE = "above-maximum"
ABOVE_IDS, MOST = "replication_factor_above", "replication_factor_most"


def maximum() -> Column:
    """The most replicas that the tier allows; NULL for any number."""
    return F.col("required")[f"replication_factor{AT_MOST}"]


def measures() -> dict[str, Column | Flagged]:
    above = F.col("most_rf") > maximum()
    most = Flagged(above, lambda flagged: F.array_max(each(flagged, "most_rf")))
    return RULE.measures() | {ABOVE_IDS: base.partition_ids(above), MOST: most}


def _within_maximum() -> Column:
    return (
        F.when(maximum().isNull(), base.NOT_APPLICABLE)
        .when(F.size(ABOVE_IDS) > 0, base.FAIL)
        .when(RULE.unknown, base.UNKNOWN)
        .otherwise(base.PASS)
    )


def outcome() -> Column:
    return base.worse(RULE.outcome(), _within_maximum())


def check() -> Column:
    """The minimum only."""
    return base.check(CONTROL, RULE.worst, RULE.required, RULE.outcome())


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    fails = base.outcome_of(CONTROL) == base.FAIL
    above = fails & ~certain(RULE.worst < RULE.required)
    own = F.lit("configuration:topic")
    yield base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        category=F.when(above, ABOVE),
        cause=F.when(above, own).otherwise(F.coalesce(target.infeasible(), own)),
        observed={"replication_factor": F.when(above, F.col(MOST)).otherwise(RULE.worst)},
        required={"replication_factor": RULE.required},
        also_required={f"replication_factor{AT_MOST}": maximum()},
        evidence={"target": F.col(target.TARGET), **base.unknown_because()},
        partitions=F.when(above, F.col(ABOVE_IDS)).otherwise(RULE.failing),
    )
