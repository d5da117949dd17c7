"""standby-replicas: every stateful task of a Streams application has as many standbys as required (num.standby.replicas).

A standby on the process that has the active is no second copy. Where an application has too few instances for what is
required Kafka places as many standbys as there are other instances, and that is still too few. Enough standbys of a task
without an active, or with several, prove nothing: such a placement isn't whole, and nothing is known.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs import applications
from spark_jobs.controls import base

CONTROL = "standby-replicas"
STREAMS = "streams"
WAIT = "Audit again when the group is Stable"


def finding() -> Column:
    """Reads `p`, an application's placement."""
    p = F.col("p")
    required = p["standby_replicas"]
    outcome = applications.outcome(
        F.when(p["short_tasks"] > 0, base.FAIL).when(p["not_whole"].isNotNull(), base.UNKNOWN).otherwise(base.PASS),
        F.coalesce(required >= 0, F.lit(False)),
    )
    too_few = p["clients"] <= required
    named = base.listed(F.transform("p.short", lambda t: base.say("%s has %s", t["task"], t["standbys"])))
    more = F.when(p["short_tasks"] > base.IDS_SHOWN, base.say(" (of %s)", p["short_tasks"])).otherwise("")
    return base.finding(
        CONTROL,
        outcome,
        cause=F.when(outcome == base.UNKNOWN, "unreadable or moving Streams application")
        .when(too_few, "too few instances of a Streams application")
        .otherwise("configuration:num.standby.replicas"),
        observed=base.as_json(
            standby_replicas=p["standbys"],
            stateful_tasks=p["tasks"],
            clients=p["clients"],
            tasks=p["short"],
            more_tasks=p["short_tasks"] - F.size("p.short"),
        ),
        required=base.as_json(standby_replicas=required),
        message=F.when(outcome == base.UNKNOWN, F.coalesce(p["unknown"], p["not_whole"]))
        .when(outcome == base.NOT_APPLICABLE, applications.exemption("standby_replicas"))
        .otherwise(
            F.concat(
                base.say(
                    "%s of %s stateful tasks have fewer than %s standby(s): ", p["short_tasks"], p["tasks"], required
                ),
                named,
                more,
                F.when(too_few, base.say("; %s instance(s) can't hold them", p["clients"])).otherwise(""),
            )
        ),
        remediation=F.when(outcome == base.UNKNOWN, applications.remedy(WAIT))
        .when(too_few, base.say("Run at least %s instances of the application", required + 1))
        .when(
            p["type"] == STREAMS,
            base.say("Set the group's streams.num.standby.replicas to %s", required),
        )
        .otherwise(base.say("Set num.standby.replicas=%s on every instance, and restart them one by one", required)),
    )
