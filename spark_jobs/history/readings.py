"""Readings over time (KIP-427): how long a cluster or a topic is at min ISR or worse, and how often that begins and ends.

A *moment* is one counted snapshot of a cluster, from a pulse or a nightly run. At each moment a topic, or the cluster as a
whole, is at a *level*: 0 for nothing, 1 if a partition is at min ISR, 2 if one is under it, 3 if one is offline. What the
configuration alone causes doesn't count. The level is NULL if it is unknown. A level includes the lower ones: a topic that
goes from at min ISR to under it hasn't recovered.

Nothing is known about the time between two moments. If they are further apart than the usual distance of pulses allows, there
is a *gap*. A run at a level ends at a gap, and at a moment whose level is unknown. A change lies between the last known moment
before it and the first one after it. All times are seconds, up to the evaluated moment. The look-back and the windows end there.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible

LEVELS = ("at-min-isr", "under-min-isr", "offline")
"""KIP-427's categories of level 1, 2 and 3."""
FEWEST = 3
"""The fewest moments that have a usual distance."""
MISSED = 2.5
"""Two moments have a gap between them if they are so many usual distances apart. One pulse may fail."""
WHOLE = ""
"""The cluster as a whole, instead of a topic's name."""


def level() -> Column:
    """The level of a row of `health_counters`; NULL if nothing was found and something could not be read.

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
    """The cluster rows of `counters`, one per moment, with columns about the time between moments.

    counters: rows of `health_counters`, each moment once, up to the evaluated one.
    policy: a struct of prolonged_after, shortest_delay and bouncing_within in seconds, and bouncing_changes.
    windows: the cluster's maintenance windows, an array of structs of seconds [from, to) that don't overlap.

    Adds:

    - `s`: the moment. `last`: the evaluated moment. `seq`: the position, 1 for the oldest. `count`: the number of moments.
    - `followed`: are there enough moments, close enough together?
    - `step`: the time since the moment before. `gap`: is it longer than `tolerance`?
    - `maintained`: is the moment in a maintenance window?
    - `missing`: the brokers out of sync; NULL if some are unknown.
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
    # Moments are close enough if as many changes as the policy counts fit into its window.
    often = F.col("cadence") <= F.col("policy")["bouncing_within"] / F.col("policy")["bouncing_changes"]
    followed = (F.col("count") >= FEWEST) & often
    bridged = F.greatest(F.col("cadence") * MISSED, F.col("policy")["shortest_delay"] / 2)
    tolerance = F.when(followed, bridged).otherwise(F.col("policy")["prolonged_after"])
    return (
        cadence.withColumns({"followed": followed, "tolerance": tolerance})
        .withColumns({"gap": certain(F.col("step") > F.col("tolerance")), "maintained": within(F.col("s"))})
        .drop("topic")
    )


def within(moment: Column) -> Column:
    """Is a moment in a maintenance window? Reads `windows`."""
    return F.exists("windows", lambda w: (w["from"] <= moment) & (moment < w["to"]))


def touched(before: Column, after: Column) -> Column:
    """Does a maintenance window overlap the time after `before` and up to `after`? Reads `windows`."""
    return F.exists("windows", lambda w: (w["from"] <= after) & (before < w["to"]))


def maintained(since: Column, until: Column) -> Column:
    """The seconds between two moments that are in maintenance windows. Reads `windows`."""
    overlaps = F.transform("windows", lambda w: F.least(w["to"], until) - F.greatest(w["from"], since))
    return F.aggregate(overlaps, F.lit(0.0), lambda total, o: total + F.greatest(o, F.lit(0.0)))


def clusters(moments: DataFrame) -> DataFrame:
    """One row per cluster: its moments, gaps and missing brokers, and whether an orderly rolling restart explains them.

    `unseen`: the seconds of gaps in the window in which changes are counted. The time before the first moment is no gap.
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
        )
        .join(_restarts(moments), "cluster", "left")
        .withColumns({name: certain(name) for name in ("orderly", "in_turn")})
    )


def _restarts(moments: DataFrame) -> DataFrame:
    """Orderly rolling restarts: two or more brokers are missing, one at a time, each once, without a gap, and with all replicas
    in sync in between.

    `orderly`: did nothing else happen in the window of changes?
    `in_turn`: is that so, and has the broker missing now been missing no longer than the slowest one before it?

    Moments in maintenance are left out. So are moments with unknown members of ISRs, because an ISR often changes while it is
    read. But a moment that shows two missing brokers counts.
    """
    in_order = Window.partitionBy("cluster").orderBy("s")
    seen = F.coalesce("missing", F.when(F.size("out_of_sync") > 1, F.col("out_of_sync")))
    known = (
        moments.withColumn("missing", seen)
        .where(F.col("missing").isNotNull())
        .withColumn("gap", certain(F.col("s") - F.lag("s").over(in_order) > F.col("tolerance")))
    )
    # A gap is marked at its later end, but both ends matter.
    marked = known.withColumn("gap_after", F.lead("gap", 1, False).over(in_order))
    start = F.col("last") - F.col("policy")["bouncing_within"]
    in_window = marked.where((F.col("s") >= start) & ~F.col("maintained"))
    missing, before = F.size("missing"), F.lag("missing").over(in_order)
    same_broker = possible((F.size(before) == 0) | (before == F.col("missing")))
    one_at_a_time = (missing == 1) & ~F.col("gap") & ~F.col("gap_after") & same_broker
    steps = in_window.withColumns(
        {
            "begins": (missing > 0) & possible(F.size(before) == 0),
            "ends": (missing == 0) & certain(F.size(before) > 0),
            "straight": certain((missing == 0) | one_at_a_time),
        }
    ).withColumn("began", F.last(F.when(F.col("begins"), F.col("s")), ignorenulls=True).over(in_order))
    slowest = F.max(F.when(F.col("ends"), F.col("s") - F.col("began")))
    so_far = F.max_by(F.when(missing > 0, F.col("last") - F.col("began")), "s")
    brokers = F.count_distinct(F.when(F.col("begins"), F.element_at("missing", 1)))
    restarts = F.sum(F.col("begins").cast("int"))
    orderly = F.bool_and("straight") & (brokers >= 2) & (brokers == restarts)
    return steps.groupBy("cluster").agg(
        orderly.alias("orderly"), (orderly & certain(so_far <= slowest)).alias("in_turn")
    )


def series(counters: DataFrame, moments: DataFrame) -> DataFrame:
    """The relevant moments of each `resource`, a topic or the cluster as a whole.

    These are moments at a level above 0 or unknown, and the moments before and after each. At all other moments the level was
    0, or the topic didn't exist.
    """
    here = moments.select("cluster", "captured_at", "seq")
    rows = counters.withColumns({"resource": F.coalesce("topic", F.lit(WHOLE)), "level": level()})
    unhealthy = rows.where(F.col("level").isNull() | (F.col("level") > 0)).join(
        F.broadcast(here), ["cluster", "captured_at"]
    )
    none = F.array().cast("array<int>")
    # A moment may be both counted itself and next to another one. Then `counted` makes its own state the greater one.
    own = F.struct(F.lit(1).alias("counted"), "level", F.coalesce("out_of_sync", none).alias("out"))
    healthy = F.struct(F.lit(0).alias("counted"), F.lit(0).alias("level"), none.alias("out"))
    around = F.array(
        *(
            F.struct((F.col("seq") + offset).alias("seq"), state.alias("state"))
            for offset, state in ((-1, healthy), (0, own), (1, healthy))
        )
    )
    return (
        unhealthy.select("cluster", "resource", F.inline(around))
        .groupBy("cluster", "resource", "seq")
        .agg(F.max("state").alias("state"))
        .join(F.broadcast(moments.drop("missing", "out_of_sync", "unknown", "step", "gap")), ["cluster", "seq"])
        .select("cluster", "resource", "s", "last", "tolerance", "windows", "policy", "state.level", "state.out")
    )


def readings(series: DataFrame) -> DataFrame:
    """One row per topic and per cluster (`resource` WHOLE) in `series`.

    - `level`: the present level.
    - `held`: by level, the run that lasts until now (`_held`).
    - `changes`: the number of changes since `changing_since`, in the policy's window. Both moments of a change are in the window,
      and no maintenance overlaps it.
    - `out_now`, `out`: the brokers missing now, and at any moment of that window.
    """
    by = Window.partitionBy("cluster", "resource")
    so_far = by.orderBy("s").rowsBetween(Window.unboundedPreceding, -1)
    known, start = F.col("level").isNotNull(), F.col("last") - F.col("policy")["bouncing_within"]
    before = F.last(F.when(known, F.struct("s", "level")), ignorenulls=True).over(so_far)
    unread = certain(F.lag(~known).over(by.orderBy("s")))
    changed = ((F.col("level") > 0) != (F.col("before.level") > 0)) & (F.col("before.s") >= start)
    steps = series.withColumn("before", before).withColumns(
        {
            "unread": known & unread,
            "broken": known & (unread | certain(F.col("s") - F.col("before.s") > F.col("tolerance"))),
            "change": certain(changed & ~touched(F.col("before.s"), F.col("s"))),
        }
    )
    steps = steps.withColumn("broken_at", F.max(F.when(F.col("broken"), F.col("s"))).over(by))
    levels = range(1, len(LEVELS) + 1)
    for n in levels:
        steps = steps.withColumn(f"below_{n}", F.max(F.when(F.col("level") < n, F.col("s"))).over(by))
    missing_in_window = F.flatten(F.collect_set(F.when(F.col("s") >= start, F.col("out"))))
    found = steps.groupBy("cluster", "resource").agg(
        F.first("last").alias("last"),
        F.first("windows").alias("windows"),
        F.max_by("level", "s").alias("last_level"),
        F.max("s").alias("last_moment"),
        F.sum(F.col("change").cast("int")).alias("changes"),
        F.min(F.when(F.col("change"), F.col("s"))).alias("changing_since"),
        F.max_by("out", "s").alias("last_out"),
        F.array_sort(F.array_distinct(missing_in_window)).alias("out"),
        *(_since(n).alias(f"since_{n}") for n in levels),
        *(F.max(f"below_{n}").alias(f"below_{n}") for n in levels),
        F.max_by("unread", F.when(F.col("broken"), F.col("s"))).alias("unread"),
        F.max("broken_at").alias("broken_at"),
    )
    # A series that ends before the evaluated moment ends with a level of 0.
    now = F.when(F.col("last_moment") == F.col("last"), F.col("last_level")).otherwise(0)
    return found.select(
        "cluster",
        "resource",
        now.alias("level"),
        "changes",
        "changing_since",
        F.col("last_out").alias("out_now"),
        "out",
        F.array(*(_held(n) for n in levels)).alias("held"),
    )


def _since(n: int) -> Column:
    """The beginning of the last unbroken run at level n or worse."""
    after_below = F.col("s") > F.coalesce(F.col(f"below_{n}"), F.lit(float("-inf")))
    after_break = F.col("s") >= F.coalesce(F.col("broken_at"), F.lit(float("-inf")))
    return F.min(F.when((F.col("level") >= n) & after_below & after_break, F.col("s")))


def _held(n: int) -> Column:
    """The run at level n or worse that lasts until now, as a struct; NULL if there is none.

    - `since`: its beginning.
    - `lasted`: its seconds outside maintenance.
    - `hidden`: its possible seconds if a gap or an unread moment hides the beginning, counted since the level was last lower.
      Infinite if it never was lower.
    - `unread`: does an unread moment hide the beginning?
    """
    since, below, last = F.col(f"since_{n}"), F.col(f"below_{n}"), F.col("last")
    runs = since.isNotNull() & (F.col("last_moment") == last) & (F.col("last_level") >= n)
    broken = certain(F.col("broken_at") == since)
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
    """The seconds between two moments that are outside maintenance windows."""
    return until - since - maintained(since, until)
