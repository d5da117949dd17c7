"""Readings over time (KIP-427): per cluster and per topic, how long at min ISR or worse, and how often coming and going.

A *moment* is one counted snapshot of a cluster, by a pulse or by a nightly run. At each moment a topic, or the cluster as
a whole, is at a *level*: 0 nothing, 1 a partition at min ISR, 2 under it, 3 offline; what the configuration alone brings
about doesn't count; NULL where it isn't known. A worse level includes the ones before it: what goes from at min ISR
to under it hasn't recovered.

Between two moments nothing is known. Pulses come at some cadence; where two moments are further apart than that allows,
there is a *gap*: nothing lasts across it. Nor does anything last across a moment whose level isn't known: what could be
read of it was at zero. A change is seen between the last known moment before it and the first after.
Everything is about the time up to the judged moment, of which look-back and windows are measured; moments in seconds.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

LEVELS = ("at-min-isr", "under-min-isr", "offline")
"""Level 1, 2 and 3, named by KIP-427's categories."""
FEWEST = 3
"""Moments without which there is no cadence, and nothing is said but what is seen all the same."""
MISSED = 2.5
"""How many times the usual distance two moments may be apart: one pulse may fail."""
WHOLE = ""
"""Stands for the cluster as a whole where topics have their names."""


def level(counters: Column | None = None) -> Column:
    """The level that a row of `health_counters` shows; NULL where nothing was found and not all could be read.

    >>> spark.createDataFrame(
    ...     [(0, 0, 2, 2, 0), (0, 0, 3, 2, 0), (0, 1, 1, 0, 0), (1, 1, 0, 0, 0), (0, 0, 0, 0, 4)],
    ...     "offline int, under_min_isr int, at_min_isr int, at_min_isr_by_configuration int, unknown int",
    ... ).withColumn("under_min_isr_by_configuration", F.lit(None).cast("int")).select(
    ...     "at_min_isr", "under_min_isr", "offline", "unknown", level().alias("level")).show()
    +----------+-------------+-------+-------+-----+
    |at_min_isr|under_min_isr|offline|unknown|level|
    +----------+-------------+-------+-------+-----+
    |         2|            0|      0|      0|    0|
    |         3|            0|      0|      0|    1|
    |         1|            1|      0|      0|    2|
    |         0|            1|      1|      0|    3|
    |         0|            0|      0|      4| NULL|
    +----------+-------------+-------+-------+-----+
    """
    by_configuration = F.coalesce("under_min_isr_by_configuration", F.lit(0))
    return (
        F.when(F.col("offline") > 0, 3)
        .when(F.col("under_min_isr") > by_configuration, 2)
        .when(F.col("at_min_isr") > F.col("at_min_isr_by_configuration"), 1)
        .when(F.col("unknown") > 0, None)
        .otherwise(0)
    )


def seconds(moment: Column) -> Column:
    """A timestamp as seconds since 1970."""
    return F.unix_micros(moment) / 1e6


def moments(counters: DataFrame, policy: Column, windows: Column) -> DataFrame:
    """The cluster rows of `counters`, one a moment, in their order and with what lies between them.

    counters: rows of `health_counters` that count, of each moment once, up to the judged one. policy: a struct of seconds,
        prolonged_after, shortest_delay, bouncing_within, and bouncing_changes. windows: the cluster's maintenance, an
        array of structs of seconds [from, to), none overlapping.
    Adds `seq` (1 the oldest), `count`, `last` (the judged moment), `followed` (often enough to tell), `tolerance`, `step`
    (to the moment before) and `gap` (longer than that tolerates), `maintained`, and `missing`: the brokers out of sync, NULL
    where that isn't wholly known.
    """
    in_order, all_of = Window.partitionBy("cluster").orderBy("s"), Window.partitionBy("cluster")
    whole = counters.where(F.col("topic").isNull()).withColumns(
        {"s": seconds(F.col("captured_at")), "policy": policy, "windows": windows}
    )
    steps = whole.withColumns(
        {
            "seq": F.row_number().over(in_order),
            "count": F.count(F.lit(1)).over(all_of),
            "last": F.max("s").over(all_of),
            "step": F.col("s") - F.lag("s").over(in_order),
            "missing": F.when(F.col("unknown") == 0, F.array_sort("out_of_sync")),
        }
    )
    cadence = steps.withColumn("cadence", F.percentile("step", F.lit(0.5)).over(all_of))
    # As often as changes are looked for, or more seldom than anything could be told.
    often = F.col("cadence") <= F.col("policy")["bouncing_within"] / F.col("policy")["bouncing_changes"]
    followed = (F.col("count") >= FEWEST) & often
    bridged = F.greatest(F.col("cadence") * MISSED, F.col("policy")["shortest_delay"] / 2)
    tolerance = F.when(followed, bridged).otherwise(F.col("policy")["prolonged_after"])
    return (
        cadence.withColumns({"followed": followed, "tolerance": tolerance})
        .withColumns(
            {"gap": F.coalesce(F.col("step") > F.col("tolerance"), F.lit(False)), "maintained": within(F.col("s"))}
        )
        .drop("topic")
    )


def within(moment: Column) -> Column:
    """Does a moment lie in a maintenance window? Reads `windows`."""
    return F.exists("windows", lambda w: (w["from"] <= moment) & (moment < w["to"]))


def touched(before: Column, after: Column) -> Column:
    """Does a maintenance window touch what happened after `before` and no later than `after`? Reads `windows`."""
    return F.exists("windows", lambda w: (w["from"] <= after) & (before < w["to"]))


def maintained(since: Column, until: Column) -> Column:
    """How many seconds between two moments lie in maintenance windows. Reads `windows`."""
    overlaps = F.transform("windows", lambda w: F.least(w["to"], until) - F.greatest(w["from"], since))
    return F.aggregate(overlaps, F.lit(0.0), lambda total, o: total + F.greatest(o, F.lit(0.0)))


def clusters(moments: DataFrame) -> DataFrame:
    """One row a cluster: how it is followed, and whether an orderly rolling restart explains what is seen.

    `unseen`: seconds of gaps in the window in which changes are counted; before the first moment of all there is no gap.
    """
    start = F.col("last") - F.col("policy")["bouncing_within"]
    unseen = F.when(F.col("gap") & (F.col("s") > start), F.least("step", F.col("s") - start))
    return (
        moments.groupBy("cluster")
        .agg(
            F.first("count").alias("moments"),
            F.first("followed").alias("followed"),
            F.first("tolerance").alias("tolerance"),
            F.first("last").alias("last"),
            F.first("windows").alias("windows"),
            F.first("policy").alias("policy"),
            F.coalesce(F.sum(unseen), F.lit(0.0)).alias("unseen"),
            F.max_by("step", F.when(F.col("gap"), F.col("step"))).alias("widest_gap"),
            F.coalesce(F.max_by("missing", "s"), F.array().cast("array<int>")).alias("missing_now"),
        )
        .join(_restarts(moments), "cluster", "left")
        .withColumns({n: F.coalesce(n, F.lit(False)) for n in ("orderly", "in_turn")})
    )


def _restarts(moments: DataFrame) -> DataFrame:
    """`orderly`: the window's missing brokers are an orderly rolling restart: two or more brokers, one at a time, each
    once, the ISR whole in between, all of it seen. `in_turn`: the one that is missing now is part of one, and hasn't been
    for longer than the slowest before it took. Moments in maintenance are left out.
    """
    # Gaps are marked at their later end; both ends matter.
    marked = moments.withColumn("open", F.lead("gap", 1, False).over(Window.partitionBy("cluster").orderBy("s")))
    start = F.col("last") - F.col("policy")["bouncing_within"]
    seen = marked.where((F.col("s") >= start) & ~F.col("maintained"))
    out, at = F.size("missing"), Window.partitionBy("cluster").orderBy("s")
    before = F.lag("missing").over(at)
    steps = seen.withColumns(
        {
            "begins": (out > 0) & F.coalesce(F.size(before) == 0, F.lit(True)),
            "ends": (out == 0) & F.coalesce(F.size(before) > 0, F.lit(False)),
            "straight": F.coalesce(
                (out == 0)
                | (
                    (out == 1)
                    & ~F.col("gap")
                    & ~F.col("open")
                    & F.coalesce((F.size(before) == 0) | (before == F.col("missing")), F.lit(True))
                ),
                F.lit(False),
            ),
        }
    ).withColumn("began", F.last(F.when(F.col("begins"), F.col("s")), ignorenulls=True).over(at))
    took = F.max(F.when(F.col("ends"), F.col("s") - F.col("began")))
    brokers = F.count_distinct(F.when(F.col("begins"), F.element_at("missing", 1)))
    episodes = F.sum(F.col("begins").cast("int"))
    so_far = F.max_by(F.when(out > 0, F.col("last") - F.col("began")), "s")
    orderly = F.bool_and("straight") & (brokers >= 2) & (brokers == episodes)
    return steps.groupBy("cluster").agg(
        orderly.alias("orderly"), (orderly & F.coalesce(so_far <= took, F.lit(False))).alias("in_turn")
    )


def series(counters: DataFrame, moments: DataFrame) -> DataFrame:
    """The moments that matter, of each topic and of the cluster as a whole (`resource`): those at a level above 0 or
    unknown, and the moments on either side of them. At all others the level is 0, or the topic didn't exist.
    """
    here = moments.select("cluster", "captured_at", "seq")
    rows = counters.withColumns({"resource": F.coalesce("topic", F.lit(WHOLE)), "level": level()})
    sick = rows.where(F.col("level").isNull() | (F.col("level") > 0)).join(
        F.broadcast(here), ["cluster", "captured_at"]
    )
    none = F.array().cast("array<int>")
    own = F.struct(F.lit(1).alias("seen"), "level", F.coalesce("out_of_sync", none).alias("out"))
    beside = F.struct(F.lit(0).alias("seen"), F.lit(0).alias("level"), none.alias("out"))
    around = F.array(
        F.struct((F.col("seq") - 1).alias("seq"), beside.alias("state")),
        F.struct(F.col("seq").alias("seq"), own.alias("state")),
        F.struct((F.col("seq") + 1).alias("seq"), beside.alias("state")),
    )
    return (
        sick.select("cluster", "resource", F.inline(around))
        .groupBy("cluster", "resource", "seq")
        .agg(F.max("state").alias("state"))
        .join(F.broadcast(moments.drop("missing", "out_of_sync", "unknown", "step", "gap")), ["cluster", "seq"])
        .select("cluster", "resource", "s", "last", "tolerance", "windows", "policy", "state.level", "state.out")
    )


def readings(series: DataFrame) -> DataFrame:
    """One row a topic and a row a cluster (`resource` WHOLE), for those with anything in their series.

    `level`: now; `held`: per level since when without a break, in seconds and as `lasted` outside of maintenance;
    `hidden`: so many seconds it may have lasted where a gap or an unread moment hides the beginning: since the level was
    last seen below, infinite where it never was; `unread`: it is an unread moment; `changes` in the policy's window,
    between moments that are both in it and touch no maintenance, from `changing_since`;
    `out_now`, `out`: brokers missing now, and at any moment of that window.
    """
    by = Window.partitionBy("cluster", "resource")
    so_far = by.orderBy("s").rowsBetween(Window.unboundedPreceding, -1)
    known, start = F.col("level").isNotNull(), F.col("last") - F.col("policy")["bouncing_within"]
    before = F.last(F.when(known, F.struct("s", "level")), ignorenulls=True).over(so_far)
    unread = F.coalesce(F.lag(~known).over(by.orderBy("s")), F.lit(False))
    steps = series.withColumn("before", before).withColumns(
        {
            "unread": known & unread,
            "broken": known & (unread | F.coalesce(F.col("s") - F.col("before.s") > F.col("tolerance"), F.lit(False))),
            "change": F.coalesce(
                ((F.col("level") > 0) != (F.col("before.level") > 0))
                & (F.col("before.s") >= start)
                & ~touched(F.col("before.s"), F.col("s")),
                F.lit(False),
            ),
        }
    )
    steps = steps.withColumn("broken_at", F.max(F.when(F.col("broken"), F.col("s"))).over(by))
    for n in range(1, len(LEVELS) + 1):
        steps = steps.withColumn(f"below_{n}", F.max(F.when(F.col("level") < n, F.col("s"))).over(by))
    found = steps.groupBy("cluster", "resource").agg(
        F.first("last").alias("last"),
        F.first("windows").alias("windows"),
        F.max_by("level", "s").alias("last_level"),
        F.max("s").alias("last_seen"),
        F.sum(F.col("change").cast("int")).alias("changes"),
        F.min(F.when(F.col("change"), F.col("s"))).alias("changing_since"),
        F.max_by("out", "s").alias("last_out"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_set(F.when(F.col("s") >= start, F.col("out")))))).alias(
            "out"
        ),
        *(_since(n).alias(f"since_{n}") for n in range(1, len(LEVELS) + 1)),
        *(F.max(f"below_{n}").alias(f"below_{n}") for n in range(1, len(LEVELS) + 1)),
        F.max_by("unread", F.when(F.col("broken"), F.col("s"))).alias("unread"),
        F.max("broken_at").alias("broken_at"),
    )
    # The series ends with the judged moment, or before it with a level of 0.
    now = F.when(F.col("last_seen") == F.col("last"), F.col("last_level")).otherwise(0)
    return found.select(
        "cluster",
        "resource",
        now.alias("level"),
        "changes",
        "changing_since",
        F.col("last_out").alias("out_now"),
        "out",
        F.array(*(_held(n) for n in range(1, len(LEVELS) + 1))).alias("held"),
    )


def _since(n: int) -> Column:
    """The beginning of the last unbroken run at level n or worse."""
    after_below = F.col("s") > F.coalesce(F.col(f"below_{n}"), F.lit(float("-inf")))
    after_break = F.col("s") >= F.coalesce(F.col("broken_at"), F.lit(float("-inf")))
    return F.min(F.when((F.col("level") >= n) & after_below & after_break, F.col("s")))


def _held(n: int) -> Column:
    """The run that lasts until now, NULL where there is none; `hidden` and `unread` as `readings` says."""
    since, below, last = F.col(f"since_{n}"), F.col(f"below_{n}"), F.col("last")
    runs = since.isNotNull() & (F.col("last_seen") == last) & (F.col("last_level") >= n)
    broken = F.coalesce(F.col("broken_at") == since, F.lit(False))
    earliest = F.coalesce(_outside(below, last), F.lit(float("inf")))
    return F.when(
        runs,
        F.struct(
            since.alias("since"),
            _outside(since, last).alias("lasted"),
            F.when(broken, earliest).otherwise(0.0).alias("hidden"),
            (broken & F.col("unread")).alias("unread"),
        ),
    )


def _outside(since: Column, until: Column) -> Column:
    """How many seconds between two moments lie outside of maintenance."""
    return until - since - maintained(since, until)
