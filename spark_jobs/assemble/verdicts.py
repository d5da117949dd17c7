"""Turns outcomes of all controls into verdicts, with waivers, providers' responsibilities and stable ids.

A verdict consists of outcome, severity, category and cause as codes, and the evidence as JSON. It has no sentence and no
command. `durability.findings` turns verdicts into findings after the cross-check.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.catalogue import CONTROLS
from spark_jobs.controls import waiver_expired
from spark_jobs.frames import base
from spark_jobs.frames.literals import literal
from spark_jobs.scale import groups

CATEGORY_IN_ID = tuple(c.id for c in CONTROLS.values() if c.per_category)
"""Controls with one verdict per category. Of other controls, a verdict keeps its id when its category changes."""

OWN_UNKNOWN = tuple(c.id for c in CONTROLS.values() if c.own_unknown)
"""Controls whose UNKNOWN of a topic has its own cause and evidence, because readings are missing rather than a fact."""

OF_TIERS = (
    *(c.id for c in CONTROLS.values() if "topic" in c.on and c.requires),
    *("broker-loss", "min-insync-racks-valid", "rack-loss"),
)
"""Controls that compare a topic with its tier."""

KEYS = ("cluster", "resource_type", "resource")
SNAPSHOT = base.SNAPSHOT
IDENTITY = (*SNAPSHOT, "provider", "tier", "resource_type", "resource")
INVALID_SETTINGS = {
    "min_isr": "min.insync.replicas",
    "min_racks": "min.insync.racks",
    "unclean": "unclean.leader.election.enable",
}
"""By field of `wrong`: the setting with the invalid value."""
INVALID = f"struct<{','.join(f'{name}:string' for name in INVALID_SETTINGS)}>"
ALWAYS = ("control", "outcome", "observed", "required")
"""Fields of every verdict, including PASS."""


def with_outcomes(frame: DataFrame, resource_type: str, resource: Column, outcomes: list[Column]) -> DataFrame:
    """One row per resource, with `tier`, `provider` and the array `outcomes`, in which NULL is no outcome.

    frame: one row per resource, named by `resource`.
    outcomes: as `base.verdict` returns them.
    """
    present = frame.columns
    tier = F.col("tier") if "tier" in present else F.lit(None).cast("string")
    return frame.select(
        *SNAPSHOT,
        "provider",
        tier.alias("tier"),
        F.lit(resource_type).alias("resource_type"),
        resource.cast("string").alias("resource"),
        (F.col("wrong") if "wrong" in present else F.lit(None).cast(INVALID)).alias("wrong"),
        (F.col("undecided") if "undecided" in present else F.lit(None).cast("array<string>")).alias("undecided"),
        *([groups.NAMES] if groups.NAMES in present else ()),
        F.array(*outcomes).alias("outcomes"),
    )


def row_per_outcome(resources: DataFrame) -> DataFrame:
    """One row per outcome of `with_outcomes`. A PASS has no details.

    Controls that the cluster's provider is responsible for are NOT_APPLICABLE.
    """
    keys = (*IDENTITY, *([groups.NAMES] if groups.NAMES in resources.columns else ()))
    rows = resources.select(*keys, "wrong", "undecided", F.inline("outcomes")).where("outcome is not null")
    with_details = rows.select(*keys, *ALWAYS, "undecided", *(c.alias(n) for n, c in _details().items()))
    return _with_providers_duty(_with_undecided_tiers(with_details))


def _with_undecided_tiers(verdicts: DataFrame) -> DataFrame:
    """UNKNOWN instead of PASS and NOT_APPLICABLE if the topic's tier is undecided, because the tier may require more."""
    lax = F.col("outcome").isin(base.PASS, base.NOT_APPLICABLE) & F.col("control").isin(*OF_TIERS)
    evidence = base.as_json({base.REASON: F.lit("tier-undecided"), "tiers": F.col("undecided")})
    changed = {"outcome": F.lit(base.UNKNOWN), "cause": F.lit("unreadable"), "evidence": evidence}
    there = F.col("undecided").isNotNull() & lax
    kept = [c for c in verdicts.columns if c not in (*changed, "undecided")]
    return verdicts.select(*kept, *(F.when(there, c).otherwise(F.col(n)).alias(n) for n, c in changed.items()))


def _invalid_setting() -> Column:
    """Evidence of an invalid value of a setting that the control reads; NULL if there is none."""
    evidence = F.lit(None).cast("string")
    for name, setting in INVALID_SETTINGS.items():
        readers = [c.id for c in CONTROLS.values() if setting in c.reads]
        value = F.col("wrong")[name]
        entry = base.as_json({base.REASON: F.lit("wrong-setting"), "setting": F.lit(setting), "value": value})
        needed = F.col("control").isin(*readers) & value.isNotNull()
        evidence = F.when(needed, entry).otherwise(evidence)
    return evidence


def _details() -> dict[str, Column]:
    """The other columns of a verdict, by name. Most are NULL unless the outcome is FAIL or UNKNOWN."""
    control, outcome, details = F.col("control"), F.col("outcome"), F.col("details")
    reported = outcome.isin(base.FAIL, base.UNKNOWN)
    unread = (outcome == base.UNKNOWN) & (F.col("resource_type") == "topic") & ~control.isin(*OWN_UNKNOWN)
    invalid = F.when(outcome == base.UNKNOWN, _invalid_setting())
    reason = F.get_json_object(F.when(unread, details["evidence"]), f"$.{base.REASON}")
    return {
        "category": F.when(reported, details["category"]),
        "severity": F.when(outcome == base.FAIL, details["severity"]),
        "partitions": F.when(reported, details["partitions"]),
        # `details` has the cause of a FAIL. An UNKNOWN has another cause.
        "cause": F.when(invalid.isNotNull(), "configuration:topic")
        .when(unread, F.coalesce(reason, F.lit("unreadable")))
        .when(reported, details["cause"]),
        "evidence": F.coalesce(invalid, F.when(~unread | reason.isNotNull(), details["evidence"])),
    }


def _with_providers_duty(verdicts: DataFrame) -> DataFrame:
    """NOT_APPLICABLE, without details, if the cluster's provider is responsible for the control.

    UNKNOWN if the cluster's platform hides what the control needs.
    """
    duties = [f"{provider} {c.id}" for c in CONTROLS.values() for provider in c.provider_duty]
    # A separate column, because it is read five times.
    duty = F.coalesce(F.concat_ws(" ", "provider", "control").isin(*duties), F.lit(False))
    hidden = base.platform_hides(F.col("control")) & F.col("outcome").isin(base.PASS, base.FAIL, base.UNKNOWN)
    details = ("severity", "cause", "category", "evidence")
    kept = [c for c in verdicts.columns if c not in ("outcome", *details)]
    of_platform = {
        "cause": F.concat(F.lit("provider:"), F.col("provider")),
        "evidence": base.as_json({base.REASON: F.lit("platform")}),
    }
    return verdicts.withColumns({"duty": duty, "hidden": hidden}).select(
        *kept,
        F.when(F.col("duty"), base.NOT_APPLICABLE)
        .when(F.col("hidden"), base.UNKNOWN)
        .otherwise(F.col("outcome"))
        .alias("outcome"),
        *(
            F.when(~F.col("duty") & F.col("hidden"), of_platform.get(c)).when(~F.col("duty"), F.col(c)).alias(c)
            for c in details
        ),
    )


def with_ids(verdicts: DataFrame) -> DataFrame:
    """Adds `id`: 20 hexadecimal digits of a SHA-256 of cluster, control and resource. It is equal in every run."""
    category = F.when(F.col("control").isin(*CATEGORY_IN_ID), F.coalesce("category", F.lit("")))
    return verdicts.withColumn(
        "id",
        F.substring(F.sha2(F.concat_ws("\n", "cluster", "control", "resource_type", "resource", category), 256), 1, 20),
    )


def with_waivers(verdicts: DataFrame, resolved: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """EXEMPT if a waiver covers a FAIL on the day of its snapshot. `expired` lists the matching waivers that have expired.

    A waiver is valid to the end of its expiry day, UTC. In a tier with a limit (`durability.policy.terms`) it is valid from
    the day of its approval, and not beyond the limit.

    resolved: its column `waivers` has the waivers that match a resource's name.
    waivers: as in the plan.
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
        stated = F.try_element_at(expires, index.cast("string"))
        limit = waiver_expired.tier_limit(waivers, index)
        day = F.to_date("captured_at")
        valid = stated.cast("date") >= day
        if limit is not None:
            within = (limit["since"].cast("date") <= day) & (limit["until"].cast("date") >= day)
            valid = F.when(limit.isNull(), valid).otherwise(within)
        return F.coalesce(valid, F.lit(False))

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
    """UNKNOWN for every control of a cluster that could not be read or whose snapshot the gate rejected.

    A cluster that could not be read has no capture time. Its verdicts have `started_at`, the start of the run.
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
    return with_outcomes(frame, "cluster", F.col("cluster"), outcomes)
