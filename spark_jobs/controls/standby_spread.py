"""standby-spread: a task's active and standbys are closer together in their rack-aware tags than they can be (KIP-708).

`durability.streams.placement` finds the category of a placement by a search:

- below-achievable (warning): Kafka's ClientTagAwareStandbyTaskAssignor could not place the tasks like that if the application
  were configured as the policy says. That holds for any order and tie-break, and even if tasks were moved off a client without a
  tag later.
- below-ideal (info): Kafka's assignor may have placed them like that, but a better placement exists.
- tag-limits (warning): there are more tags than Kafka accepts.

In a group of type `streams` (KIP-1071) the broker places tasks and ignores client tags, so nothing can be compared or set.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.streams.judgement import BELOW_ACHIEVABLE, BELOW_IDEAL, TAG_LIMITS
from spark_jobs.frames import applications, base
from spark_jobs.frames.columns import possible

CONTROL = "standby-spread"
STREAMS = "streams"


def application_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `p`, an application's placement."""
    p = F.col("p")
    tagged = F.size("p.rack_aware_tags") > 0
    worst = (
        F.when(p["below_achievable"] > 0, BELOW_ACHIEVABLE)
        .when(F.size("p.limits") > 0, TAG_LIMITS)
        .when(p["below_ideal"] > 0, BELOW_IDEAL)
    )
    outcome = applications.outcome(
        F.when(worst.isin(BELOW_ACHIEVABLE, TAG_LIMITS), base.FAIL)
        .when(p["undecided"].isNotNull(), base.UNKNOWN)
        .when(worst.isNotNull(), base.FAIL)
        .otherwise(base.PASS),
        required=tagged & possible(p["type"] != STREAMS),
    )
    category = F.when(outcome == base.FAIL, worst)
    yield base.verdict(
        CONTROL,
        outcome,
        category=category,
        cause=F.when(outcome == base.UNKNOWN, "streams-unsettled")
        .when(worst == TAG_LIMITS, "configuration:client.tag")
        .when(worst == BELOW_IDEAL, "standby-placement")
        .otherwise("configuration:rack.aware.assignment.tags"),
        observed={
            "category": category,
            "tasks": p["spread"],
            "more_tasks": p["below_achievable"] + p["below_ideal"] - F.size("p.spread"),
            "tag_limits": p["limits"],
            "undecided": p["undecided"],
            "losses": p["losses"],
        },
        required={"rack_aware_tags": p["rack_aware_tags"]},
        evidence={
            **applications.evidence(),
            "below_achievable": p["below_achievable"],
            "below_ideal": p["below_ideal"],
            "tasks": p["tasks"],
            "by_broker": (p["type"] == STREAMS) & tagged,
            "unknown": F.coalesce(p["unknown"], p["undecided"]),
        },
        evidence_of=base.NOT_PASSED,
    )


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    return applications.unlisted(CONTROL, plan)
