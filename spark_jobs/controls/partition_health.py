"""partition-health: offline, under-min-isr, at-min-isr and under-replicated partitions (KIP-427), one finding a category.

All but offline need a live leader. A partition can be at-min-isr and under-replicated at once. At-min-isr with the ISR
whole is what the configuration leaves, and no sign of trouble: info, not warning.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base, elr_guard
from spark_jobs.controls.isr_rack_spread import dominant

CONTROL = "partition-health"
CATEGORIES = ("offline", "under-min-isr", "at-min-isr", "under-replicated")


def flag(category: str) -> Column:
    """The partition's column of a category."""
    return F.col(base.column(category))


def known() -> Column:
    """Is every category of a partition decided?"""
    rest = flag("under-min-isr").isNotNull() & flag("at-min-isr").isNotNull() & flag("under-replicated").isNotNull()
    return F.coalesce(F.col("offline") | (F.col("offline").isNotNull() & rest), F.lit(False))


def measures() -> dict[str, Column]:
    """Per category its partitions, those where the ISR is whole, their causes and their smallest ISR."""
    columns = {"health_unknown": base.partition_ids(~known())}
    for category in CATEGORIES:
        name, on = base.column(category), flag(category)
        columns |= {
            f"{name}_ids": base.partition_ids(on),
            f"{name}_shrunk": F.coalesce(F.bool_or(on & ~F.col("isr_whole")), F.lit(False)),
            f"{name}_causes": F.array_distinct(F.flatten(F.collect_list(F.when(on, F.col("causes"))))),
            f"{name}_isr": F.min(F.when(on, F.col("isr_count"))),
            f"{name}_cli": F.max(F.when(on, F.col("cli_differs"))),
        }
    return columns | {
        "health_rf": F.max("rf"),
        "health_min_isr": F.max(F.struct("min_isr", F.col("effective_min_isr").alias("effective"), "min_isr_source")),
    }


def _words(category: str) -> Column:
    seen, isr = F.col("health_min_isr"), F.col(f"{base.column(category)}_isr")
    at = base.say(
        "isr ", isr, " of ", F.col("health_rf"), " replica(s), effective min.insync.replicas ", seen["effective"]
    )
    rest = {
        "offline": F.lit("no live leader: neither reads nor writes"),
        "under-min-isr": base.say(at, ": acks=all writes are refused (NOT_ENOUGH_REPLICAS)"),
        "at-min-isr": base.say(at, ": one more replica out of sync refuses acks=all writes"),
        "under-replicated": base.say("isr ", isr, " of ", F.col("health_rf"), " replica(s)"),
    }[category]
    return rest


def _finding(category: str) -> Column:
    name = base.column(category)
    ids, shrunk = F.col(f"{name}_ids"), F.col(f"{name}_shrunk") | F.lit(category == "offline")
    causes = dominant(f"{name}_causes")
    own = F.col("health_min_isr")["min_isr_source"] == "topic"
    by_config = F.when(own, "configuration:topic").otherwise("configuration:cluster-default")
    cause = F.when(shrunk, F.coalesce(causes, F.lit("replicas lagging"))).otherwise(by_config)
    severity = F.lit(base.severity_of(CONTROL, category))
    if category == "at-min-isr":
        severity = F.when(shrunk, severity).otherwise(base.severity_of(CONTROL, "at-min-isr/configuration"))
    cli = F.coalesce(F.concat(F.lit("; "), F.col(f"{name}_cli")), F.lit(""))
    raise_rf = F.lit("The configuration leaves no headroom: give the topic more replicas than min.insync.replicas")
    return base.finding(
        CONTROL,
        F.when(F.size(ids) > 0, base.FAIL),
        category=F.lit(category),
        severity=severity,
        cause=cause,
        observed=base.as_json(
            category=F.lit(category),
            cause=F.when(shrunk, "shrunk").otherwise("configuration"),
            isr=F.col(f"{name}_isr"),
            replication_factor=F.col("health_rf"),
            min_insync_replicas=F.col("health_min_isr")["min_isr"],
            effective_min_insync_replicas=F.col("health_min_isr")["effective"],
        ),
        required=base.as_json(category=F.lit(None).cast("string")),
        partitions=ids,
        message=F.concat(base.partitions_listed(ids), F.lit(": "), _words(category), cli),
        remediation=F.when(~shrunk, raise_rf)
        .when(
            elr_guard.unsafe("elr_partitions_at_risk"),
            F.concat(_bring_back(causes), F.lit(". "), F.lit(elr_guard.WAIT)),
        )
        .otherwise(_bring_back(causes)),
    )


def _bring_back(causes: Column) -> Column:
    return base.say("Bring the missing replicas back in sync: ", F.coalesce(causes, F.lit("see the brokers' logs")))


def findings() -> list[Column]:
    """One per category that applies, and one PASS or UNKNOWN for the topic."""
    unknown = F.col("health_unknown")
    unread = F.coalesce(F.size(unknown) > 0, F.lit(True)) | ~F.col("partitions_known")
    failing = [F.coalesce(F.size(f"{base.column(c)}_ids"), F.lit(0)) for c in CATEGORIES]
    outcome = F.when(unread, base.UNKNOWN).when(sum(failing[1:], failing[0]) == 0, base.PASS)
    rest = base.finding(
        CONTROL,
        outcome,
        cause="unreadable",
        observed=base.as_json(category=F.lit(None).cast("string"), cause=F.lit(None).cast("string")),
        required=base.as_json(category=F.lit(None).cast("string")),
        partitions=unknown,
        message=F.when(unread, base.missing_facts(CONTROL)),
        remediation=F.lit("Let the auditor read what is listed as unreadable"),
    )
    return [*(_finding(c) for c in CATEGORIES), rest]
