"""standby-spread: a task's active and standbys stand as far apart in their rack-aware tags as they could (KIP-708).

below-achievable (warning): no order and no tie-break of Kafka's ClientTagAwareStandbyTaskAssignor yields the placement,
nor does a movement afterwards off a client that lacks a tag, if the application is configured as the policy says: it
isn't, then. below-ideal (info): Kafka may have led there, and a better placement exists. tag-limits (warning): tags
beyond what Kafka accepts. Which it is was decided by a search, see `durability.streams.placement`. In a group of type
`streams` (KIP-1071) the broker places tasks and doesn't look at client tags: there is no walk to hold it against and
nothing an operator could set.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.streams.judgement import BELOW_ACHIEVABLE, BELOW_IDEAL, TAG_LIMITS
from spark_jobs.frames import applications, base

CONTROL = "standby-spread"
STREAMS = "streams"


def category() -> Column:
    """The worst of an application's categories; NULL: none. Reads `p`."""
    p = F.col("p")
    return (
        F.when(p["below_achievable"] > 0, BELOW_ACHIEVABLE)
        .when(F.size("p.limits") > 0, TAG_LIMITS)
        .when(p["below_ideal"] > 0, BELOW_IDEAL)
    )


def application_verdicts(plan: Plan) -> list[Column]:
    """Reads `p`, an application's placement."""
    p, worst = F.col("p"), category()
    tags_decide = (F.size("p.rack_aware_tags") > 0) & (F.coalesce(p["type"], F.lit("")) != STREAMS)
    judged = F.when(worst.isin(BELOW_ACHIEVABLE, TAG_LIMITS), base.FAIL).when(p["undecided"].isNotNull(), base.UNKNOWN)
    outcome = applications.outcome(judged.when(worst.isNotNull(), base.FAIL).otherwise(base.PASS), tags_decide)
    listed = p["below_achievable"] + p["below_ideal"] - F.size("p.spread")
    severity = F.lit(base.severity_of(CONTROL, BELOW_IDEAL))
    for kind in (TAG_LIMITS, BELOW_ACHIEVABLE):
        severity = F.when(worst == kind, base.severity_of(CONTROL, kind)).otherwise(severity)
    failed = F.when(outcome == base.FAIL, worst)
    verdict = base.verdict(
        CONTROL,
        outcome,
        category=failed,
        severity=severity,
        cause=F.when(outcome == base.UNKNOWN, "streams-unsettled")
        .when(worst == TAG_LIMITS, "configuration:client.tag")
        .when(worst == BELOW_IDEAL, "standby-placement")
        .otherwise("configuration:rack.aware.assignment.tags"),
        observed={
            "category": failed,
            "tasks": p["spread"],
            "more_tasks": listed,
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
            "by_broker": (p["type"] == STREAMS) & (F.size("p.rack_aware_tags") > 0),
            "unknown": F.coalesce(p["unknown"], p["undecided"]),
        },
    )
    return [verdict]


def cluster_verdicts(plan: Plan) -> list[Column]:
    return applications.unlisted(CONTROL, plan)
