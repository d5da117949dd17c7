"""Outcomes of all controls as findings: waived, attributed to providers, with a stable id, compared with the last run."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.policy.catalogue import CONTROLS
from spark_jobs import alike_topics
from spark_jobs.controls import base
from spark_jobs.session import columns

CATEGORY_IN_ID = ("partition-health", "at-min-isr-over-time")
"""Controls with one finding a category; elsewhere a change of category is the same finding."""

OWN_WORDS = "at-min-isr-over-time"
"""A topic's UNKNOWN of this control says itself what is missing: readings, not a fact."""

KEYS = ("cluster", "resource_type", "resource")
SNAPSHOT = ("cluster", "captured_at", "snapshot_id")
IDENTITY = (*SNAPSHOT, "provider", "tier", "resource_type", "resource")
LET_READ = "Let the auditor read what is listed as unreadable, then audit again"
READS_MIN_ISR = (
    *("min-insync-replicas", "min-isr-within-replication-factor", "write-headroom", "partition-health"),
    *("acked-durability", "broker-loss", "rack-loss"),
)
READS_MIN_RACKS = ("isr-rack-spread", "min-insync-racks-valid")
WRONG = "struct<min_isr:string,min_racks:string,unclean:string>"
PLAIN = ("control", "outcome", "observed", "required")


def exploded(frame: DataFrame, resource_type: str, resource: Column, outcomes: list[Column]) -> DataFrame:
    """A row per outcome that isn't NULL, keyed by the resource, with `tier` and `provider`; words only where they apply.

    PASS keeps its numbers alone; UNKNOWN says what is missing unless the control said it better; NOT_APPLICABLE why.
    """
    return each(gathered(frame, resource_type, resource, outcomes))


def gathered(frame: DataFrame, resource_type: str, resource: Column, outcomes: list[Column]) -> DataFrame:
    """`exploded` before it is: a row a resource, with `outcomes`, an array of what `base.finding` gives."""
    present = columns(frame)
    tier = F.col("tier") if "tier" in present else F.lit(None).cast("string")
    return frame.select(
        *SNAPSHOT,
        "provider",
        tier.alias("tier"),
        F.lit(resource_type).alias("resource_type"),
        resource.cast("string").alias("resource"),
        (F.col("wrong") if "wrong" in present else F.lit(None).cast(WRONG)).alias("wrong"),
        *alike_topics.carried(present),
        F.array(*outcomes).alias("outcomes"),
    )


def each(gathered: DataFrame) -> DataFrame:
    """`gathered`, exploded."""
    keys = (*IDENTITY, *alike_topics.carried(columns(gathered)))
    return (
        gathered.select(*keys, "wrong", F.inline("outcomes"))
        .where("outcome is not null")
        .select(*keys, *PLAIN, *(c.alias(n) for n, c in _worded().items()))
    )


def _wrong_setting() -> Column:
    """What a topic's setting says that means nothing, where the control needs it; NULL elsewhere."""
    control, wrong = F.col("control"), F.col("wrong")
    return (
        F.when(control.isin(*READS_MIN_ISR), _told("min.insync.replicas is no number from 1 on: %s", wrong["min_isr"]))
        .when(control.isin(*READS_MIN_RACKS), _told("min.insync.racks is not a number: %s", wrong["min_racks"]))
        .when(
            control == "unclean-leader-election",
            _told("unclean.leader.election.enable is neither true nor false: %s", wrong["unclean"]),
        )
    )


def _told(text: str, value: Column) -> Column:
    return F.when(value.isNotNull(), base.say(text, value))


def _worded() -> dict[str, Column]:
    control, outcome, words = F.col("control"), F.col("outcome"), F.col("words")
    speaks = outcome.isin(base.FAIL, base.UNKNOWN)
    of_topic = (F.col("resource_type") == "topic") & (control != OWN_WORDS)
    wrong = F.when(outcome == base.UNKNOWN, _wrong_setting())
    unread = base.say("%s can't be judged: a fact it needs could not be read (see what isn't known)", control)
    exempt = F.when(F.col("tier").isNull(), "no selector of the policy matches it").otherwise(
        F.concat(F.lit("tier "), F.col("tier"), F.lit(" doesn't require it"))
    )
    own_words = ~of_topic & words["message"].isNotNull()
    return {
        "category": F.when(speaks, words["category"]),
        "severity": F.when(outcome == base.FAIL, words["severity"]),
        "partitions": F.when(speaks, words["partitions"]),
        # Nobody should change a topic because something of it could not be read.
        "remediation": F.when(wrong.isNotNull(), "Correct the setting")
        .when((outcome == base.UNKNOWN) & of_topic, LET_READ)
        .when(speaks, words["remediation"]),
        # An UNKNOWN isn't caused by what would have been the cause of a FAIL.
        "cause": F.when(wrong.isNotNull(), "configuration:topic")
        .when((outcome == base.UNKNOWN) & of_topic, "unreadable")
        .when(speaks, words["cause"]),
        "message": F.when(outcome == base.FAIL, words["message"])
        .when(wrong.isNotNull(), base.say("%s can't be judged: %s", control, wrong))
        .when(outcome == base.UNKNOWN, F.when(own_words, words["message"]).otherwise(unread))
        .when(outcome == base.NOT_APPLICABLE, F.when(own_words, words["message"]).otherwise(exempt)),
    }


def literal(value: Any, schema: str) -> Column:
    """A Python value as a constant column of `schema` (DDL)."""
    return F.from_json(F.lit(json.dumps(value)), schema)


def with_providers_duty(findings: DataFrame) -> DataFrame:
    """NOT_APPLICABLE, with the reason, where the cluster's provider is responsible for a control."""
    reasons = {f"{p} {c.id}": reason for c in CONTROLS.values() for p, reason in c.provider_duty.items()}
    providers = sorted({provider for c in CONTROLS.values() for provider in c.provider_duty})
    named = F.concat_ws(" ", "provider", F.col("control"))
    reason = F.when(F.col("provider").isin(*providers), F.try_element_at(literal(reasons, "map<string,string>"), named))
    theirs = reason.isNotNull()
    kept = [
        c for c in columns(findings) if c not in ("outcome", "message", "severity", "cause", "remediation", "category")
    ]
    return findings.select(
        *kept,
        F.when(theirs, base.NOT_APPLICABLE).otherwise(F.col("outcome")).alias("outcome"),
        F.when(theirs, reason).otherwise(F.col("message")).alias("message"),
        *(F.when(~theirs, F.col(c)).alias(c) for c in ("severity", "cause", "remediation", "category")),
    )


def with_ids(findings: DataFrame) -> DataFrame:
    """`id`: 20 hexadecimal digits of a SHA-256 over what the finding is about, the same in every run."""
    category = F.when(F.col("control").isin(*CATEGORY_IN_ID), F.coalesce("category", F.lit("")))
    return findings.withColumn(
        "id",
        F.substring(F.sha2(F.concat_ws("\n", "cluster", "control", "resource_type", "resource", category), 256), 1, 20),
    )


def with_waivers(findings: DataFrame, resolved: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """EXEMPT where a waiver covers a FAIL on the day of its snapshot; `expired` lists those that no longer do.

    A waiver counts through its day of expiry, UTC. Names were matched when the policy was resolved (`resolved.waivers`).
    """
    if not waivers:
        return findings.withColumns({"waiver": F.lit(None).cast("int"), "expired": F.lit(None).cast("array<int>")})
    by_control: dict[str, list[int]] = {}
    for waiver in waivers:
        for control in waiver["controls"]:
            by_control.setdefault(control, []).append(waiver["index"])
    expires = literal({str(w["index"]): str(w["expires"]) for w in waivers}, "map<string,string>")
    matched = resolved.where(F.size("waivers") > 0).select(*KEYS, F.col("waivers").alias("by_name"))
    joined = findings.join(F.broadcast(matched), list(KEYS), "left")
    candidates = F.array_intersect(
        "by_name", F.try_element_at(literal(by_control, "map<string,array<int>>"), F.col("control"))
    )

    def in_force(index: Column) -> Column:
        return F.try_element_at(expires, index.cast("string")).cast("date") >= F.to_date("captured_at")

    failed = F.col("outcome") == base.FAIL
    return (
        joined.withColumn("candidates", F.when(failed, candidates))
        .withColumns(
            {
                "waiver": F.try_element_at(F.filter("candidates", in_force), F.lit(1)),
                "expired": F.filter("candidates", lambda i: ~in_force(i)),
            }
        )
        .withColumn("outcome", F.when(F.col("waiver").isNotNull(), "EXEMPT").otherwise(F.col("outcome")))
        .drop("candidates", "by_name")
    )


def not_judged(spark: SparkSession, snapshots: list[dict[str, Any]], controls: list[str], started_at: str) -> DataFrame:
    """UNKNOWN for every control of a cluster that could not be read or whose snapshot the gate refused.

    Of one that could not be read the moment is `started_at`, when the run started.
    """
    names = (*SNAPSHOT, "provider", "status", "reason")
    rows = [{n: s[n] for n in names} | {"captured_at": s["captured_at"] or started_at} for s in snapshots]
    types = {n: "timestamp" if n == "captured_at" else "string" for n in names}
    schema = f"array<struct<{','.join(f'{n}:{kind}' for n, kind in types.items())}>>"
    frame = spark.range(1).select(F.inline(literal(rows, schema)))
    why = base.say("snapshot %s: %s", F.col("status"), F.col("reason"))
    rejected = F.when(F.col("status") == "rejected", "snapshot rejected").otherwise("unreadable")
    outcomes = [
        base.finding(
            control,
            F.lit(base.UNKNOWN),
            cause=base.say("cluster:%s %s", F.col("cluster"), rejected),
            observed=F.lit("{}"),
            required=F.lit("{}"),
            message=why,
            remediation=F.lit("Make the cluster readable for the auditor, then audit again"),
        )
        for control in controls
    ]
    return exploded(frame, "cluster", F.col("cluster"), outcomes)
