"""KIP-1290's procedure for a rack outage: the step that applies to a topic, and the value to restore afterwards.

1 and 2, monitoring and assessment: a rack is lost and nothing refuses writes. 3, LOWER: partitions that miss replicas in
a lost rack are under a threshold; it can be lowered for their topic. 4, RESTORE: the rack is back, the in-sync replicas
reach the old value again, and the lowered one is still there. HOLD: lowered, and too early to restore. GUARDED: under a
threshold, but with eligible leader replicas on a change of min.insync.replicas would wipe the topic's ELR (KIP-966, see
`elr_guard`): nothing is offered. Where the ELR isn't empty the ISR is below min.insync.replicas, which is checked before
racks, so that lowering min.insync.racks alone wouldn't help there either.

Two thresholds: min.insync.replicas, which brokers enforce, and min.insync.racks, which they don't yet. The value to
restore is remembered from run to run in `topic_posture`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.lake import tables
from spark_jobs import rack_health
from spark_jobs.controls import base, elr_guard
from spark_jobs.facts import MIN_ISR, MIN_RACKS

LOWER, RESTORE, HOLD, GUARDED = "lower", "restore", "hold", "guarded"
URGENCY = (GUARDED, LOWER, RESTORE, HOLD)
POLICY = "policy"
"""Source of a value that the tier wants and no setting states."""
CONFIGURED = tuple(name for name, _ in tables.CONFIGURED)
REMEMBERED = "array<struct<{}>>".format(",".join(f"{f.name}:{tables.SPARK_TYPES[f.type]}" for f in tables.OUTAGE_ENTRY))
BEFORE = (
    "struct<configured_min_insync_replicas:int,configured_min_insync_replicas_source:string,"
    f"configured_min_insync_racks:int,configured_min_insync_racks_source:string,rack_outage:{REMEMBERED}>"
)


def missing_racks() -> Column:
    """On a partition: the lost racks in which it has replicas that are out of sync, or all of them when it is offline."""
    lost = F.col("lost_racks")
    away = F.filter(
        "brokers",
        lambda b: F.array_contains(lost, b["rack"]) & (F.col("offline") | ~F.array_contains("isr", b["broker"])),
    )
    return F.array_distinct(F.transform(away, lambda b: b["rack"]))


def measures() -> dict[str, Column]:
    """Over a topic's partitions: the lost racks that it misses, which partitions are under a threshold for that, the
    smallest ISR among those, and whether everything is in sync again.

    `isr_least` and `isr_racks_least` are NULL unless every partition is known to have a leader and its ISR was read: a
    minimum that skips what wasn't read would call a topic recovered for its other partitions.
    """
    missing = F.coalesce(missing_racks(), F.array().cast("array<string>"))
    touched = F.size(missing) > 0
    few = touched & ~F.col("offline") & F.col("under_min_isr")
    narrow = touched & (F.col("rack_category") == rack_health.UNDER)
    every = F.bool_and(F.coalesce(~F.col("offline") & F.col("isr_count").isNotNull(), F.lit(False)))
    return {
        "outage_racks": F.sort_array(F.array_distinct(F.flatten(F.collect_list(F.when(touched, missing))))),
        "outage_replicas_ids": base.partition_ids(few),
        "outage_replicas_least": F.min(F.when(few, F.col("isr_count"))),
        "outage_racks_ids": base.partition_ids(narrow),
        "outage_racks_least": F.min(F.when(narrow, F.col("isr_rack_count"))),
        "isr_least": F.when(every, F.min("isr_count")),
        "isr_racks_least": F.when(every, F.min(F.col("isr_span")["least"])),
        "isr_whole_everywhere": F.coalesce(every & F.bool_and("isr_whole"), F.lit(False)),
    }


def configured() -> dict[str, Column]:
    """What the topic's thresholds are, and where that is stated: topic, cluster-default, broker or default."""
    seen = F.col("min_insync_replicas_seen")
    source = F.when(F.col("own_min_racks").isNotNull(), F.col("own_min_racks_source")).when(
        F.col("min_racks_configured").isNotNull(), "broker"
    )
    values = (seen["min_isr"], seen["min_isr_source"], F.col("min_racks_configured"), source)
    return dict(zip(CONFIGURED, values, strict=True))


def _entry(setting: str, now: Column, source: Column, before: Column, captured: Column) -> Column:
    """One threshold's step as a struct of `tables.OUTAGE_ENTRY`; NULL where there is none.

    now, source: as configured; before: the topic's row of the last run (BEFORE), NULL if there is none.
    """
    kind = "replicas" if setting == MIN_ISR else "racks"
    ids, least = F.col(f"outage_{kind}_ids"), F.col(f"outage_{kind}_least")
    threshold, of = now, source
    if setting == MIN_RACKS:
        threshold = F.col("min_racks")
        of = F.when(now >= threshold, source).otherwise(POLICY)
    was = F.try_element_at(F.filter(before["rack_outage"], lambda e: e["setting"] == setting), F.lit(1))
    touched = F.size("outage_racks") > 0
    older, older_source = before[f"configured_min_insync_{kind}"], before[f"configured_min_insync_{kind}_source"]
    fresh = was.isNull() & touched & older.isNotNull()
    old = F.when(fresh, older).otherwise(was["value"])
    old_source = F.when(fresh, older_source).otherwise(was["source"])
    # A value that only the policy wants may have stood lower on the topic all the time.
    always = (old_source == POLICY) & now.eqNullSafe(was["configured"])
    lowered = F.coalesce((now < old) & ~always, F.lit(False))
    hurt = F.coalesce(F.size(ids) > 0, F.lit(False))
    guarded = elr_guard.unsafe("elr_partitions_at_risk")
    in_sync = F.col("isr_least") if setting == MIN_ISR else F.col("isr_racks_least")
    in_sync_again = F.coalesce(F.col("isr_whole_everywhere") | (in_sync >= old), F.lit(False))
    recovered = in_sync_again & F.col("partitions_known") & ~touched
    step = (
        F.when(hurt & guarded, GUARDED)
        .when(hurt, LOWER)
        .when(lowered & recovered & ~guarded, RESTORE)
        .when(lowered, HOLD)
    )
    fields: Mapping[str, Column] = {
        "setting": F.lit(setting),
        "step": step,
        "value": F.when(lowered, old).otherwise(threshold),
        "source": F.when(lowered, old_source).otherwise(of),
        "configured": F.when(lowered & was.isNotNull(), was["configured"]).otherwise(now),
        "now": now,
        "now_source": source,
        "lower_to": F.when(step == LOWER, F.greatest(F.coalesce(least, F.lit(1)), F.lit(1))),
        "since": F.coalesce(was["since"], captured),
        "racks": F.col("outage_racks"),
        "partitions": F.when(hurt, F.size(ids)).otherwise(0),
    }
    types = {f.name: tables.SPARK_TYPES[f.type] for f in tables.OUTAGE_ENTRY}
    return F.when(step.isNotNull(), F.struct(*(fields[n].cast(t).alias(n) for n, t in types.items())))


def posture(before: Column, captured: Column) -> dict[str, Column]:
    """The columns of `topic_posture` about outages: thresholds as configured, the most urgent step, and each one."""
    thresholds = configured()
    replicas, replicas_source, racks, racks_source = thresholds.values()
    entries = F.array_compact(
        F.array(
            _entry(MIN_ISR, replicas, replicas_source, before, captured),
            _entry(MIN_RACKS, racks, racks_source, before, captured),
        )
    )
    return {**thresholds, "rack_outage": F.when(F.size(entries) > 0, entries)}


def most_urgent(entries: Column) -> Column:
    """The step of a topic's entries that comes first in URGENCY."""
    steps = F.transform(entries, lambda e: e["step"])
    chosen = None
    for step in URGENCY:
        found = F.array_contains(steps, step)
        chosen = F.when(found, step) if chosen is None else chosen.when(found, step)
    return chosen
