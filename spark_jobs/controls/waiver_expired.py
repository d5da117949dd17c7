"""waiver-expired: a waiver that still matches a failure is past its last day, so the risk is no longer accepted."""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.policy.model import IN_DATE
from durability.policy.terms import LIMITS, missing
from spark_jobs.frames import base
from spark_jobs.frames.literals import literal

CONTROL = "waiver-expired"
LIMIT = "struct<tier:string,days:int,since:string,until:string,missing:string>"


def tier_limit(waivers: list[dict[str, Any]], index: Column) -> Column | None:
    """The limit of a waiver in the row's tier, as a struct; None if no tier has a limit.

    NULL in rows of other tiers. since, until: NULL if it is valid on no day. Then `missing` says what it doesn't state.
    """
    by_tier = {
        f"{waiver['index']}\n{tier}": {"tier": tier, **limit, "missing": None if limit["until"] else missing(waiver)}
        for waiver in waivers
        for tier, limit in waiver.get(LIMITS, {}).items()
    }
    if not by_tier:
        return None
    known = literal(by_tier, f"map<string,{LIMIT}>")
    # concat, not concat_ws, so that a resource without a tier has none.
    return F.try_element_at(known, F.concat(index.cast("string"), F.lit("\n"), F.col("tier")))


def verdicts(failed: DataFrame, waivers: list[dict[str, Any]]) -> DataFrame:
    """One row per cluster and expired waiver, with the columns of all verdicts.

    Of waivers for the same control, cluster and resource, the one with the latest last day: they are one resource.

    Evidence `limits`: the tiers that don't let it count although its own last day hasn't passed. early: it isn't approved yet.

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
    rows = failed.select(*base.SNAPSHOT, "provider", "tier", F.explode("expired").alias("index"))
    limit = tier_limit(waivers, F.col("index"))
    in_date = waiver["expires"].cast("date") >= F.to_date("captured_at")
    limited = F.lit(None).cast(LIMIT) if limit is None else F.when(in_date, limit)
    early = F.coalesce(limited["since"].cast("date") > F.to_date("captured_at"), F.lit(False))
    limited = F.when(limited.isNotNull(), limited.withField("early", early))
    matches = (
        rows.withColumn("limit", limited)
        .groupBy(*base.SNAPSHOT, "provider", "index")
        .agg(F.count(F.lit(1)).alias("matches"), F.array_sort(F.collect_set("limit")).alias("limits"))
        .groupBy(*base.SNAPSHOT, "provider", waiver["name"].alias("name"))
        .agg(F.max_by(F.struct("index", "matches", "limits"), F.struct(waiver["expires"], "index")).alias("last"))
        .select(*base.SNAPSHOT, "provider", "last.*")
    )
    verdict = base.verdict(
        CONTROL,
        F.lit(base.FAIL),
        cause=F.concat(F.lit("waiver:"), waiver["name"]),
        observed={"expires": waiver["expires"], "matches": F.col("matches")},
        required={"expires": F.lit(IN_DATE)},
        evidence={"owner": waiver["owner"], "limits": F.col("limits")},
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
