"""at-min-isr-over-time: KIP-427's three readings, of a cluster and of each topic.

Zero is business as usual. Prolonged: now at min ISR or worse for want of replicas, and so for as long as the policy's
`prolonged_after`: broker(s) may have failed. Bouncing: as many changes between zero and non-zero as the policy's: load or
network. A maintenance window explains what happens in it, and not what was there before; an orderly rolling restart
explains both, the first for no longer than the slowest broker before took. See `spark_jobs.history.readings`.

One moment alone is no reading over time: where nobody takes pulses the control is NOT_APPLICABLE, once a cluster. Where
they are taken and a gap in them hides what was, it is UNKNOWN.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.literals import literal
from spark_jobs.history import readings

CONTROL = "at-min-isr-over-time"
PROLONGED, BOUNCING = "prolonged", "bouncing"
GAP = "pulses missing"
BROKERS_NAMED = 3


def judged(
    frame: DataFrame, clusters: DataFrame, of_clusters: DataFrame, found: DataFrame, resource: Column, policy: dict
) -> DataFrame:
    """`frame` (a row a topic, or a row a cluster) beside its readings (`spark_jobs.history.readings`), and what is so of it
    (`states`).

    clusters: with each cluster's `brokers`; of_clusters, found: `readings.clusters` and `readings.readings`; resource: the
    topic's name or readings.WHOLE. Adds `r` and `c`: NULL without trouble, and where nothing could be counted now.
    """
    why = F.transform("brokers", lambda b: F.struct(b["broker"], F.coalesce(b["down"], b["lag_cause"]).alias("why")))
    whole = of_clusters.join(clusters.select("cluster", why.alias("brokers")), "cluster")
    c = whole.select("cluster", F.struct(*whole.columns).alias("c"))
    r = found.select("cluster", F.col("resource").alias("r_resource"), F.struct(*found.columns).alias("r"))
    tier = F.col("tier") if "tier" in frame.columns else F.lit(None).cast("string")
    return (
        frame.withColumn("r_resource", resource)
        .join(F.broadcast(c), "cluster", "left")
        .join(r, ["cluster", "r_resource"], "left")
        .withColumns(states(policy, tier))
        .drop("r_resource")
    )


def delays(policy: dict[str, Any], tier: Column) -> list[Column]:
    """prolonged_after in seconds of each level, for topics of `tier`; policy: a plan's `readings`."""
    table = literal(policy["delays"], "map<string,map<string,int>>")
    of_tier = F.coalesce(F.try_element_at(table, F.coalesce(tier, F.lit(""))), F.try_element_at(table, F.lit("")))
    return [F.try_element_at(of_tier, F.lit(name)) for name in readings.LEVELS]


def _worst(conditions: list[Column]) -> Column:
    """The highest level whose condition holds; NULL for none."""
    return F.coalesce(*(F.when(conditions[n], n + 1) for n in reversed(range(len(conditions)))))


def states(policy: dict[str, Any], tier: Column) -> dict[str, Column]:
    """What is so of a resource: the level whose delay has passed, whether bouncing, whether something hides either."""
    held, after = [F.col("r")["held"][n] for n in range(len(readings.LEVELS))], delays(policy, tier)
    lasting = _worst([h["lasted"] >= d for h, d in zip(held, after, strict=True)])
    explained = F.col("c")["in_turn"]
    hidden = [(h["lasted"] < d) & (h["hidden"] >= d) for h, d in zip(held, after, strict=True)]
    unread = [hides & h["unread"] for hides, h in zip(hidden, held, strict=True)]
    many = F.col("r")["changes"] >= policy["bouncing_changes"]
    return {
        "prolonged_level": F.when(~explained, lasting),
        "prolonged_delay": F.element_at(F.array(*after), F.when(~explained, lasting)),
        "bouncing": F.coalesce(many & ~F.col("c")["orderly"], F.lit(False)),
        "reading_hidden": F.coalesce(~explained & _worst(hidden).isNotNull(), F.lit(False)),
        # A row of readings at a level that isn't known; no row at all is a level of 0 throughout.
        "reading_unread": (F.col("r").isNotNull() & F.col("r")["level"].isNull())
        | F.coalesce(~explained & _worst(unread).isNotNull(), F.lit(False)),
    }


def unseen(policy: dict[str, Any]) -> Column:
    """Do gaps hide more than half of the window in which changes are counted?"""
    return F.col("c")["unseen"] > policy["bouncing_within"] / 2


def topic_verdicts(plan: Plan) -> list[Column]:
    """Prolonged, bouncing, else PASS, or UNKNOWN where a gap hides it. Reads the columns of `judged`.

    None where there is nothing to look back on or the cluster isn't followed: its own verdict says so.
    """
    if not plan.look_back:
        return []
    policy = plan.policy.readings
    rest = (
        F.when(F.col("prolonged_level").isNotNull() | F.col("bouncing") | ~F.col("c")["followed"], None)
        .when(F.col("reading_unread") | F.col("reading_hidden"), base.UNKNOWN)
        .when(~unseen(policy), base.PASS)
    )
    sick = F.filter(
        "unhealthy",
        lambda u: (
            ~u["by_configuration"]
            & ~u["under_by_configuration"]
            & F.arrays_overlap(u["categories"], F.array(*map(F.lit, readings.LEVELS)))
        ),
    )
    ids = F.sort_array(F.flatten(F.transform(sick, lambda u: u["ids"])))
    return [_prolonged(ids), _bouncing(policy), _rest(rest)]


def cluster_verdicts(plan: Plan) -> list[Column]:
    """Likewise of the cluster's own count. NOT_APPLICABLE where nobody takes snapshots often enough."""
    if not plan.look_back:
        return [_no_history()]
    policy, c = plan.policy.readings, F.col("c")
    tried = F.coalesce(F.try_element_at(literal(plan.look_back.tried, "map<string,int>"), F.col("cluster")), F.lit(0))
    rest = (
        F.when(c.isNull(), base.UNKNOWN)
        .when(F.col("prolonged_level").isNotNull() | F.col("bouncing"), None)
        .when(~c["followed"] & ((tried + 1 < readings.FEWEST) | (c["moments"] >= readings.FEWEST)), base.NOT_APPLICABLE)
        .when(~c["followed"] | F.col("reading_unread") | F.col("reading_hidden") | unseen(policy), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    none = F.lit(None).cast("array<int>")
    return [_prolonged(none), _bouncing(policy), _rest(rest)]


def _no_history() -> Column:
    """Of a cluster of which the lake has nothing from before."""
    none = F.lit(None).cast("string")
    return base.verdict(
        CONTROL,
        F.lit(base.NOT_APPLICABLE),
        cause="no pulses",
        observed={"reading": none, "since": none, "changes": none},
        evidence={"moments": F.lit(1)},
    )


def stamp(seconds: Column) -> Column:
    """Seconds since 1970 as RFC 3339 text, to the second."""
    return F.date_format(F.timestamp_micros((seconds * 1e6).cast("long")), "yyyy-MM-dd'T'HH:mm:ss'Z'")


def _flapping(ids: Column) -> Column:
    """A cause by brokers; more than a few are many."""
    each = F.transform(ids, lambda b: F.concat(F.lit("broker:"), b.cast("string"), F.lit(" flapping")))
    return (
        F.when(F.size(ids) == 0, "replicas-flapping")
        .when(F.size(ids) <= BROKERS_NAMED, F.array_join(each, ", "))
        .otherwise(F.concat(F.size(ids).cast("string"), F.lit(" brokers flapping")))
    )


def _seen(reading: str | None, since: Column, **more: Column) -> dict[str, Column]:
    values = {"reading": F.lit(reading).cast("string"), "since": stamp(since), "changes": F.col("r")["changes"]}
    return {**values, **more, "gap_after_seconds": F.round(F.col("c")["tolerance"]).cast("int")}


def _prolonged(partitions: Column) -> Column:
    at = F.element_at(F.col("r")["held"], F.col("prolonged_level"))
    category = F.element_at(F.array(*map(F.lit, readings.LEVELS)), F.col("prolonged_level"))
    missing = F.col("r")["out_now"]
    known = F.filter(F.col("c")["brokers"], lambda b: F.array_contains(missing, b["broker"]) & b["why"].isNotNull())
    why = F.array_sort(F.array_distinct(F.transform(known, lambda b: b["why"])))
    down = F.filter(why, lambda w: w.endswith(" down"))
    cause = F.when(F.size(down) > 0, F.array_join(down, ", ")).when(F.size(why) > 0, F.array_join(why, ", "))
    return base.verdict(
        CONTROL,
        F.when(F.col("prolonged_level").isNotNull(), base.FAIL),
        category=F.lit(PROLONGED),
        severity=F.lit(base.severity_of(CONTROL, PROLONGED)),
        cause=F.coalesce(cause, F.lit("replicas lagging")),
        observed=_seen(
            PROLONGED,
            at["since"],
            category=category,
            lasted_seconds=F.floor(at["lasted"]).cast("long"),
            brokers=missing,
        ),
        required={"prolonged_after_seconds": F.col("prolonged_delay")},
        evidence={"widest_gap_seconds": F.col("c")["widest_gap"]},
        partitions=partitions,
    )


def _bouncing(policy: dict[str, Any]) -> Column:
    brokers = F.coalesce(F.col("r")["out"], F.array().cast("array<int>"))
    return base.verdict(
        CONTROL,
        F.when(F.col("bouncing"), base.FAIL),
        category=F.lit(BOUNCING),
        severity=F.lit(base.severity_of(CONTROL, BOUNCING)),
        cause=_flapping(brokers),
        observed=_seen(BOUNCING, F.col("r")["changing_since"], brokers=F.col("r")["out"]),
        required={
            "changes_below": F.lit(policy["bouncing_changes"]),
            "within_seconds": F.lit(policy["bouncing_within"]),
        },
        evidence={"widest_gap_seconds": F.col("c")["widest_gap"]},
    )


def _rest(outcome: Column) -> Column:
    c = F.col("c")
    unread = F.col("reading_unread") | c["widest_gap"].isNull()
    return base.verdict(
        CONTROL,
        outcome,
        cause=F.when(F.col("reading_unread"), "unreadable").otherwise(GAP),
        observed=_seen(None, F.lit(None).cast("double")),
        evidence={
            base.REASON: F.when(outcome == base.UNKNOWN, F.when(unread, "unread").otherwise("gap")),
            "moments": c["moments"],
            "widest_gap_seconds": c["widest_gap"],
        },
    )
