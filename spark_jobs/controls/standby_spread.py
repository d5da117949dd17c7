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

from durability.streams.judgement import BELOW_ACHIEVABLE, BELOW_IDEAL, TAG_LIMITS
from spark_jobs import applications
from spark_jobs.controls import base

CONTROL = "standby-spread"
STREAMS = "streams"
UNSEEN = "Audit again when the group is Stable; give every client all the rack-aware tags"
SHORTEN = "At most 5 tags a client, keys of at most 20 characters, values of at most 30"
REPLACE = "Restart the instance with the standby, so that tasks are placed anew, or run instances in more places"
CONFIGURE = (
    "Set rack.aware.assignment.tags=%s and client.tag.* on every instance, and leave the task assignor at its default"
)


def category() -> Column:
    """The worst of an application's categories; NULL: none. Reads `p`."""
    p = F.col("p")
    return (
        F.when(p["below_achievable"] > 0, BELOW_ACHIEVABLE)
        .when(F.size("p.limits") > 0, TAG_LIMITS)
        .when(p["below_ideal"] > 0, BELOW_IDEAL)
    )


def finding() -> Column:
    """Reads `p`, an application's placement."""
    p, worst = F.col("p"), category()
    tags_decide = (F.size("p.rack_aware_tags") > 0) & (F.coalesce(p["type"], F.lit("")) != STREAMS)
    judged = F.when(worst.isin(BELOW_ACHIEVABLE, TAG_LIMITS), base.FAIL).when(p["undecided"].isNotNull(), base.UNKNOWN)
    outcome = applications.outcome(judged.when(worst.isNotNull(), base.FAIL).otherwise(base.PASS), tags_decide)
    listed = p["below_achievable"] + p["below_ideal"] - F.size("p.spread")
    severity = F.lit(base.severity_of(CONTROL, BELOW_IDEAL))
    for kind in (TAG_LIMITS, BELOW_ACHIEVABLE):
        severity = F.when(worst == kind, base.severity_of(CONTROL, kind)).otherwise(severity)
    return base.finding(
        CONTROL,
        outcome,
        category=F.when(outcome == base.FAIL, worst),
        severity=severity,
        cause=F.when(outcome == base.UNKNOWN, "unreadable or moving Streams application")
        .when(worst == TAG_LIMITS, "configuration:client.tag")
        .when(worst == BELOW_IDEAL, "placement of standbys")
        .otherwise("configuration:rack.aware.assignment.tags"),
        observed=base.as_json(
            category=F.when(outcome == base.FAIL, worst),
            tasks=p["spread"],
            more_tasks=listed,
            tag_limits=p["limits"],
            undecided=p["undecided"],
            losses=p["losses"],
        ),
        required=base.as_json(rack_aware_tags=p["rack_aware_tags"]),
        message=F.when(outcome == base.UNKNOWN, F.coalesce(p["unknown"], p["undecided"]))
        .when(
            outcome == base.NOT_APPLICABLE,
            F.when(
                (p["type"] == STREAMS) & (F.size("p.rack_aware_tags") > 0),
                "its broker places the tasks (KIP-1071) and doesn't look at client tags",
            ).otherwise(applications.exemption("rack_aware_tags")),
        )
        .otherwise(_words(worst)),
        remediation=F.when(outcome == base.UNKNOWN, applications.remedy(UNSEEN))
        .when(worst == TAG_LIMITS, SHORTEN)
        .when(worst == BELOW_IDEAL, REPLACE)
        .otherwise(base.say(CONFIGURE, F.array_join("p.rack_aware_tags", ","))),
    )


def _words(worst: Column) -> Column:
    """What a FAIL says: how many tasks, the first of them, and where its standby could be."""
    p = F.col("p")
    first = F.try_element_at(p["spread"], F.lit(1))
    where = base.say(
        "%s on %s shares %s", first["task"], F.array_join(first["clients"], ", "), F.array_join(first["tags"], ", ")
    )
    could = F.when(
        F.size(first["achievable"]) > 0, base.listed(first["achievable"], "; its standby could have been on ")
    )
    told = F.concat(where, F.coalesce(could, F.lit("")))
    limits = base.listed(p["limits"])
    achievable = base.say(
        "%s of %s stateful tasks are placed as Kafka's assignor can't have placed them, if rack-aware tags are"
        " configured as the policy says: ",
        p["below_achievable"],
        p["tasks"],
    )
    ideal = base.say("%s of %s stateful tasks could be spread better: ", p["below_ideal"], p["tasks"])
    return (
        F.when(worst == BELOW_ACHIEVABLE, F.concat(achievable, told))
        .when(worst == TAG_LIMITS, F.concat(F.lit("Kafka refuses such tags: "), limits))
        .when(worst == BELOW_IDEAL, F.concat(ideal, told))
    )
