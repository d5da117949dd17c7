"""at-min-isr-over-time: KIP-427's three readings over time, for a cluster and for each topic.

- Zero: business as usual.
- Prolonged: at min ISR or worse now, because replicas are missing, for at least the policy's `prolonged_after`. A broker may
  have failed.
- Bouncing: at least as many changes between zero and more as the policy's `bouncing` states. The cause is load or the network.

A maintenance window explains what happens during it, but not what was there before. An orderly rolling restart explains both
readings, but prolonged only for as long as its slowest broker took. See `spark_jobs.history.readings`.

A single snapshot is no reading over time. Without pulses the control is NOT_APPLICABLE, once per cluster. With pulses, it is
UNKNOWN if a gap hides what happened.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain
from spark_jobs.frames.literals import literal
from spark_jobs.history import readings

CONTROL = "at-min-isr-over-time"
PROLONGED, BOUNCING = "prolonged", "bouncing"
BROKERS_NAMED = 3
"""The most brokers that a cause names. It counts more."""


def judged(
    frame: DataFrame, clusters: DataFrame, of_clusters: DataFrame, found: DataFrame, resource: Column, policy: dict
) -> DataFrame:
    """`frame`, one row per topic or one per cluster, with its readings and `states`.

    Adds `r`, the resource's row of `found` (NULL if nothing happened), and `c`, the cluster's row of `of_clusters` (NULL if
    nothing could be counted now).

    clusters: with each cluster's `brokers`.
    of_clusters, found: `readings.clusters` and `readings.readings`.
    resource: the topic's name or readings.WHOLE.
    """
    why = F.transform("brokers", lambda b: F.struct(b["broker"], F.coalesce(b["down"], b["lag_cause"]).alias("why")))
    with_brokers = of_clusters.join(clusters.select("cluster", why.alias("brokers")), "cluster")
    c = with_brokers.select("cluster", F.struct(*with_brokers.columns).alias("c"))
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
    """prolonged_after of each level, in seconds, for topics of `tier`. policy: a plan's `readings`."""
    by_tier = literal(policy["delays"], "map<string,map<string,int>>")
    of_tier = F.coalesce(F.try_element_at(by_tier, F.coalesce(tier, F.lit(""))), F.try_element_at(by_tier, F.lit("")))
    return [F.try_element_at(of_tier, F.lit(name)) for name in readings.LEVELS]


def _highest(conditions: list[Column]) -> Column:
    """The highest level whose condition holds; NULL if none does."""
    return F.coalesce(*(F.when(condition, level) for level, condition in reversed([*enumerate(conditions, 1)])))


def states(policy: dict[str, Any], tier: Column) -> dict[str, Column]:
    """Columns of a resource: the level whose delay has passed, whether it is bouncing, and whether a gap hides either."""
    runs = [F.col("r")["held"][n] for n in range(len(readings.LEVELS))]
    of_levels = [*zip(runs, delays(policy, tier), strict=True)]
    explained = F.col("c")["in_turn"]
    prolonged = F.when(~explained, _highest([run["lasted"] >= delay for run, delay in of_levels]))
    hidden = [(run["lasted"] < delay) & (run["hidden"] >= delay) for run, delay in of_levels]
    unread = [hides & run["unread"] for hides, run in zip(hidden, runs, strict=True)]
    many = F.col("r")["changes"] >= policy["bouncing_changes"]
    # A resource without a row of readings was at level 0 all the time.
    unread_now = F.col("r").isNotNull() & F.col("r")["level"].isNull()
    return {
        "prolonged_level": prolonged,
        "prolonged_delay": F.element_at(F.array(*(delay for _, delay in of_levels)), prolonged),
        "bouncing": certain(many & ~F.col("c")["orderly"]),
        "reading_hidden": certain(~explained & _highest(hidden).isNotNull()),
        "reading_unread": unread_now | certain(~explained & _highest(unread).isNotNull()),
    }


def unseen(policy: dict[str, Any]) -> Column:
    """Do gaps hide more than half of the window in which changes are counted?"""
    return F.col("c")["unseen"] > policy["bouncing_within"] / 2


def topic_verdicts(plan: Plan) -> Iterable[Column]:
    """Prolonged and bouncing, else PASS, or UNKNOWN if a gap hides something. Reads the columns of `judged`.

    Without earlier snapshots there is no verdict. If pulses are too rare, the verdict of the cluster says so.
    """
    if not plan.look_back:
        return []
    policy = plan.policy.readings
    rest = (
        F.when(F.col("prolonged_level").isNotNull() | F.col("bouncing") | ~F.col("c")["followed"], None)
        .when(F.col("reading_unread") | F.col("reading_hidden"), base.UNKNOWN)
        .when(~unseen(policy), base.PASS)
    )
    unhealthy = F.filter(
        "unhealthy",
        lambda u: (
            ~u["by_configuration"]
            & ~u["under_by_configuration"]
            & F.arrays_overlap(u["categories"], F.array(*map(F.lit, readings.LEVELS)))
        ),
    )
    return [_prolonged(F.sort_array(F.flatten(unhealthy["ids"]))), _bouncing(policy), _rest(rest)]


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """The same for the counts of the whole cluster. NOT_APPLICABLE if snapshots are too rare."""
    if not plan.look_back:
        return [_no_history()]
    policy, c = plan.policy.readings, F.col("c")
    tried = F.coalesce(F.try_element_at(literal(plan.look_back.tried, "map<string,int>"), F.col("cluster")), F.lit(0))
    too_rare = ~c["followed"] & ((tried + 1 < readings.FEWEST) | (c["moments"] >= readings.FEWEST))
    gap = ~c["followed"] | F.col("reading_unread") | F.col("reading_hidden") | unseen(policy)
    rest = (
        F.when(c.isNull(), base.UNKNOWN)
        .when(F.col("prolonged_level").isNotNull() | F.col("bouncing"), None)
        .when(too_rare, base.NOT_APPLICABLE)
        .when(gap | ~base.all_topics_shown(), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    return [_prolonged(None), _bouncing(policy), _rest(rest, c.isNotNull() & ~gap)]


def _no_history() -> Column:
    """The verdict on a cluster without an earlier snapshot in the lake."""
    none = F.lit(None).cast("string")
    return base.verdict(
        CONTROL,
        F.lit(base.NOT_APPLICABLE),
        cause="no pulses",
        observed={"reading": none, "since": none, "changes": none},
        evidence={"moments": F.lit(1)},
        evidence_of=base.NOT_PASSED,
    )


def _observed(reading: str | None, since: Column, **more: Column) -> dict[str, Column]:
    """since: seconds since 1970, written as RFC 3339 text."""
    stamp = F.date_format(F.timestamp_micros((since * 1e6).cast("long")), "yyyy-MM-dd'T'HH:mm:ss'Z'")
    return {
        "reading": F.lit(reading).cast("string"),
        "since": stamp,
        "changes": F.col("r")["changes"],
        **more,
        "gap_after_seconds": F.round(F.col("c")["tolerance"]).cast("int"),
    }


def _prolonged(partitions: Column | None) -> Column:
    level, missing = F.col("prolonged_level"), F.col("r")["out_now"]
    run = F.element_at(F.col("r")["held"], level)
    causes = F.filter(F.col("c")["brokers"], lambda b: F.array_contains(missing, b["broker"]) & b["why"].isNotNull())
    why = F.array_sort(F.array_distinct(causes["why"]))
    down = F.filter(why, lambda cause: cause.endswith(" down"))
    return base.verdict(
        CONTROL,
        F.when(level.isNotNull(), base.FAIL),
        category=PROLONGED,
        cause=F.when(F.size(down) > 0, F.array_join(down, ", "))
        .when(F.size(why) > 0, F.array_join(why, ", "))
        .otherwise("replicas lagging"),
        observed=_observed(
            PROLONGED,
            run["since"],
            category=F.element_at(F.array(*map(F.lit, readings.LEVELS)), level),
            lasted_seconds=F.floor(run["lasted"]).cast("long"),
            brokers=missing,
        ),
        required={"prolonged_after_seconds": F.col("prolonged_delay")},
        evidence={"widest_gap_seconds": F.col("c")["widest_gap"]},
        partitions=partitions,
    )


def _bouncing(policy: dict[str, Any]) -> Column:
    brokers = F.col("r")["out"]
    names = F.transform(brokers, lambda id: F.concat(F.lit("broker:"), id.cast("string"), F.lit(" flapping")))
    return base.verdict(
        CONTROL,
        F.when(F.col("bouncing"), base.FAIL),
        category=BOUNCING,
        cause=F.when(F.coalesce(F.size(brokers), F.lit(0)) == 0, "replicas-flapping")
        .when(F.size(brokers) <= BROKERS_NAMED, F.array_join(names, ", "))
        .otherwise(F.concat(F.size(brokers).cast("string"), F.lit(" brokers flapping"))),
        observed=_observed(BOUNCING, F.col("r")["changing_since"], brokers=brokers),
        required={
            "changes_below": F.lit(policy["bouncing_changes"]),
            "within_seconds": F.lit(policy["bouncing_within"]),
        },
        evidence={"widest_gap_seconds": F.col("c")["widest_gap"]},
    )


def _rest(outcome: Column, seen: Column | None = None) -> Column:
    """The other outcomes. seen: are the readings complete? Then an UNKNOWN is about hidden topics."""
    c = F.col("c")
    unread = F.col("reading_unread") | c["widest_gap"].isNull()
    hidden = F.lit(False) if seen is None else certain(seen)
    return base.verdict(
        CONTROL,
        outcome,
        cause=F.when(hidden, base.TOPICS_HIDDEN)
        .when(F.col("reading_unread"), "unreadable")
        .otherwise("pulses missing"),
        observed=_observed(None, F.lit(None).cast("double")),
        evidence={
            base.REASON: F.when(
                outcome == base.UNKNOWN, F.when(hidden, base.TOPICS_HIDDEN).when(unread, "unread").otherwise("gap")
            ),
            "moments": c["moments"],
            "widest_gap_seconds": c["widest_gap"],
        },
        evidence_of=base.NOT_PASSED,
    )
