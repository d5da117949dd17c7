"""waiver-expired: a waiver's date has passed and it would still match: the accepted risk is nobody's any more."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "waiver-expired"


def findings(failed: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """One finding per cluster and waiver of those listed as `expired` on a failed finding."""
    from spark_jobs.findings import SNAPSHOT, literal

    texts = {
        str(w["index"]): {
            "name": f"{w['control']}:{w['cluster']}:{w['resource']}",
            "expires": str(w["expires"]),
            "owner": w["owner"],
        }
        for w in waivers
    }
    told = F.try_element_at(
        literal(texts, "map<string,struct<name:string,expires:string,owner:string>>"),
        F.col("expired_waiver").cast("string"),
    )
    grouped = (
        failed.select(*SNAPSHOT, "provider", F.explode("expired").alias("expired_waiver"))
        .groupBy(*SNAPSHOT, "provider", "expired_waiver")
        .agg(F.count(F.lit(1)).alias("matches"))
    )
    outcome = base.finding(
        CONTROL,
        F.lit(base.FAIL),
        cause=base.say("waiver:%s", told["name"]),
        observed=base.as_json(expires=told["expires"], matches=F.col("matches")),
        required=base.as_json(expires=F.lit("a day not passed")),
        message=base.say(
            "expired on %s, would still match %s failed finding(s); owner %s",
            told["expires"],
            F.col("matches"),
            told["owner"],
        ),
        remediation=F.lit("Mend what it covered, or have the risk accepted anew with a later date"),
    )
    return (
        grouped.withColumn("tier", F.lit(None).cast("string"))
        .select(
            *SNAPSHOT,
            "provider",
            "tier",
            F.lit("waiver").alias("resource_type"),
            told["name"].alias("resource"),
            outcome.alias("f"),
        )
        .select(*SNAPSHOT, "provider", "tier", "resource_type", "resource", "f.*")
        .select("*", "words.*")
        .drop("words")
    )
