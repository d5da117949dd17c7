"""waiver-expired: a waiver that still matches a failure is past its last day, so the risk is no longer accepted."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from durability.policy.model import IN_DATE
from spark_jobs.frames import base
from spark_jobs.frames.literals import literal

CONTROL = "waiver-expired"


def verdicts(failed: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """One row per cluster and expired waiver, with the columns of all verdicts.

    failed: verdicts with `expired`, the indexes of the matching waivers that have expired.
    """
    described = {
        str(w["index"]): {
            "name": f"{w['control']}:{w['cluster']}:{w['resource']}",
            "expires": str(w["expires"]),
            "owner": w["owner"],
        }
        for w in waivers
    }
    by_index = literal(described, "map<string,struct<name:string,expires:string,owner:string>>")
    waiver = F.try_element_at(by_index, F.col("index").cast("string"))
    matches = (
        failed.select(*base.SNAPSHOT, "provider", F.explode("expired").alias("index"))
        .groupBy(*base.SNAPSHOT, "provider", "index")
        .agg(F.count(F.lit(1)).alias("matches"))
    )
    verdict = base.verdict(
        CONTROL,
        F.lit(base.FAIL),
        cause=F.concat(F.lit("waiver:"), waiver["name"]),
        observed={"expires": waiver["expires"], "matches": F.col("matches")},
        required={"expires": F.lit(IN_DATE)},
        evidence={"owner": waiver["owner"]},
    )
    keys = (*base.SNAPSHOT, "provider", "tier", "resource_type", "resource")
    return (
        matches.withColumns(
            {
                "tier": F.lit(None).cast("string"),
                "resource_type": F.lit("waiver"),
                "resource": waiver["name"],
                "v": verdict,
            }
        )
        .select(*keys, "v.*")
        .select("*", "details.*")
        .drop("details")
    )
