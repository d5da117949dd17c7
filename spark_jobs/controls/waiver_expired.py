"""waiver-expired: a waiver's date has passed and it would still match: the accepted risk is nobody's any more."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from durability.policy.model import IN_DATE
from spark_jobs.frames import base
from spark_jobs.frames.base import SNAPSHOT
from spark_jobs.frames.literals import literal

CONTROL = "waiver-expired"


def verdicts(failed: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """One verdict per cluster and waiver of those listed as `expired` on a failed verdict."""
    texts = {
        str(w["index"]): {
            "name": f"{w['control']}:{w['cluster']}:{w['resource']}",
            "expires": str(w["expires"]),
            "owner": w["owner"],
        }
        for w in waivers
    }
    expired = F.try_element_at(
        literal(texts, "map<string,struct<name:string,expires:string,owner:string>>"),
        F.col("expired_waiver").cast("string"),
    )
    grouped = (
        failed.select(*SNAPSHOT, "provider", F.explode("expired").alias("expired_waiver"))
        .groupBy(*SNAPSHOT, "provider", "expired_waiver")
        .agg(F.count(F.lit(1)).alias("matches"))
    )
    verdict = base.verdict(
        CONTROL,
        F.lit(base.FAIL),
        cause=F.concat(F.lit("waiver:"), expired["name"]),
        observed={"expires": expired["expires"], "matches": F.col("matches")},
        required={"expires": F.lit(IN_DATE)},
        evidence={"owner": expired["owner"]},
    )
    return (
        grouped.withColumn("tier", F.lit(None).cast("string"))
        .select(
            *SNAPSHOT,
            "provider",
            "tier",
            F.lit("waiver").alias("resource_type"),
            expired["name"].alias("resource"),
            verdict.alias("v"),
        )
        .select(*SNAPSHOT, "provider", "tier", "resource_type", "resource", "v.*")
        .select("*", "details.*")
        .drop("details")
    )
