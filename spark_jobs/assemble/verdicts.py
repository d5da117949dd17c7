"""Outcomes of all controls as verdicts: waived, attributed to providers, with a stable id.

A verdict holds an outcome, its severity, category and cause as codes, and the evidence, as JSON. It holds no sentence and no
command: `durability.findings` makes findings of verdicts once they are cross-checked.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.catalogue import CONTROLS
from spark_jobs.frames import base
from spark_jobs.frames.literals import literal
from spark_jobs.scale import groups

CATEGORY_IN_ID = tuple(c.id for c in CONTROLS.values() if c.per_category)
"""Controls with one verdict a category; elsewhere a change of category is the same verdict."""

OWN_UNKNOWN = tuple(c.id for c in CONTROLS.values() if c.own_unknown)
"""A topic's UNKNOWN of these controls says itself what is missing: readings, not a fact."""

KEYS = ("cluster", "resource_type", "resource")
SNAPSHOT = base.SNAPSHOT
IDENTITY = (*SNAPSHOT, "provider", "tier", "resource_type", "resource")
WRONG_FIELDS = ("min_isr", "min_racks", "unclean")
WRONG = f"struct<{','.join(f'{name}:string' for name in WRONG_FIELDS)}>"
PLAIN = ("control", "outcome", "observed", "required")


def exploded(frame: DataFrame, resource_type: str, resource: Column, outcomes: list[Column]) -> DataFrame:
    """A row per outcome that isn't NULL, keyed by the resource, with `tier` and `provider`; details only where they apply.

    PASS keeps its numbers alone.
    """
    return each(gathered(frame, resource_type, resource, outcomes))


def gathered(frame: DataFrame, resource_type: str, resource: Column, outcomes: list[Column]) -> DataFrame:
    """`exploded` before it is: a row a resource, with `outcomes`, an array of what `base.verdict` gives."""
    present = frame.columns
    tier = F.col("tier") if "tier" in present else F.lit(None).cast("string")
    return frame.select(
        *SNAPSHOT,
        "provider",
        tier.alias("tier"),
        F.lit(resource_type).alias("resource_type"),
        resource.cast("string").alias("resource"),
        (F.col("wrong") if "wrong" in present else F.lit(None).cast(WRONG)).alias("wrong"),
        *([groups.NAMES] if groups.NAMES in present else ()),
        F.array(*outcomes).alias("outcomes"),
    )


def each(gathered: DataFrame) -> DataFrame:
    """`gathered`, exploded; what the cluster's provider is responsible for is NOT_APPLICABLE."""
    keys = (*IDENTITY, *([groups.NAMES] if groups.NAMES in gathered.columns else ()))
    return _with_providers_duty(
        gathered.select(*keys, "wrong", F.inline("outcomes"))
        .where("outcome is not null")
        .select(*keys, *PLAIN, *(c.alias(n) for n, c in _detailed().items()))
    )


def _wrong_setting() -> Column:
    """A topic's setting that means nothing, where the control needs it, as evidence; NULL elsewhere."""
    found = F.lit(None).cast("string")
    for name, setting in zip(WRONG_FIELDS, SETTINGS, strict=True):
        readers = [c.id for c in CONTROLS.values() if setting in c.reads]
        value = F.col("wrong")[name]
        entry = base.as_json({base.REASON: F.lit("wrong-setting"), "setting": F.lit(setting), "value": value})
        needed = F.col("control").isin(*readers) & value.isNotNull()
        found = F.when(needed, entry).otherwise(found)
    return found


SETTINGS = ("min.insync.replicas", "min.insync.racks", "unclean.leader.election.enable")
"""Whose value a field of `wrong` is."""


def _detailed() -> dict[str, Column]:
    control, outcome, details = F.col("control"), F.col("outcome"), F.col("details")
    speaks = outcome.isin(base.FAIL, base.UNKNOWN)
    unread = (outcome == base.UNKNOWN) & (F.col("resource_type") == "topic") & ~control.isin(*OWN_UNKNOWN)
    wrong = F.when(outcome == base.UNKNOWN, _wrong_setting())
    return {
        "category": F.when(speaks, details["category"]),
        "severity": F.when(outcome == base.FAIL, details["severity"]),
        "partitions": F.when(speaks, details["partitions"]),
        # An UNKNOWN isn't caused by what would have been the cause of a FAIL.
        "cause": F.when(wrong.isNotNull(), "configuration:topic")
        .when(unread, "unreadable")
        .when(speaks, details["cause"]),
        "evidence": F.coalesce(wrong, F.when(~unread, details["evidence"])),
    }


def _with_providers_duty(verdicts: DataFrame) -> DataFrame:
    duties = [f"{provider} {c.id}" for c in CONTROLS.values() for provider in c.provider_duty]
    # A column of its own, since it is read five times.
    duty = F.coalesce(F.concat_ws(" ", "provider", "control").isin(*duties), F.lit(False))
    details = ("severity", "cause", "category", "evidence")
    kept = [c for c in verdicts.columns if c not in ("outcome", *details)]
    return verdicts.withColumn("duty", duty).select(
        *kept,
        F.when(F.col("duty"), base.NOT_APPLICABLE).otherwise(F.col("outcome")).alias("outcome"),
        *(F.when(~F.col("duty"), F.col(c)).alias(c) for c in details),
    )


def with_ids(verdicts: DataFrame) -> DataFrame:
    """`id`: 20 hexadecimal digits of a SHA-256 over what the verdict is about, the same in every run."""
    category = F.when(F.col("control").isin(*CATEGORY_IN_ID), F.coalesce("category", F.lit("")))
    return verdicts.withColumn(
        "id",
        F.substring(F.sha2(F.concat_ws("\n", "cluster", "control", "resource_type", "resource", category), 256), 1, 20),
    )


def with_waivers(verdicts: DataFrame, resolved: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """EXEMPT where a waiver covers a FAIL on the day of its snapshot; `expired` lists those that no longer do.

    A waiver counts through its day of expiry, UTC. Names were matched when the policy was resolved (`resolved.waivers`).
    """
    if not waivers:
        return verdicts.withColumns({"waiver": F.lit(None).cast("int"), "expired": F.lit(None).cast("array<int>")})
    by_control: dict[str, list[int]] = {}
    for waiver in waivers:
        for control in waiver["controls"]:
            by_control.setdefault(control, []).append(waiver["index"])
    expires = literal({str(w["index"]): str(w["expires"]) for w in waivers}, "map<string,string>")
    matched = resolved.where(F.size("waivers") > 0).select(*KEYS, F.col("waivers").alias("by_name"))
    joined = verdicts.join(F.broadcast(matched), list(KEYS), "left")
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
        .withColumn("outcome", F.when(F.col("waiver").isNotNull(), base.EXEMPT).otherwise(F.col("outcome")))
        .drop("candidates", "by_name")
    )


def not_judged(spark: SparkSession, snapshots: list[dict[str, Any]], controls: list[str], started_at: str) -> DataFrame:
    """UNKNOWN for every control of a cluster that could not be read or whose snapshot the gate refused.

    Of one that could not be read the moment is `started_at`, when the run started.
    """
    names = (*SNAPSHOT, "provider", "status", "why")
    rows = [
        {**{n: s.get(n) for n in names}, "captured_at": s["captured_at"] or started_at, "why": s["reason"]}
        for s in snapshots
    ]
    types = {n: "timestamp" if n == "captured_at" else "string" for n in names}
    schema = f"array<struct<{','.join(f'{n}:{kind}' for n, kind in types.items())}>>"
    frame = spark.range(1).select(F.inline(literal(rows, schema)))
    state = F.when(F.col("status") == "rejected", " rejected").otherwise(" unreadable")
    outcomes = [
        base.verdict(
            control,
            F.lit(base.UNKNOWN),
            cause=F.concat(F.lit("cluster:"), F.col("cluster"), state),
            evidence={base.REASON: F.lit("not-judged"), "status": F.col("status"), "why": F.col("why")},
        )
        for control in controls
    ]
    return exploded(frame, "cluster", F.col("cluster"), outcomes)
