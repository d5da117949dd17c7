"""KIP-1290's procedure for a rack outage: the step that applies to a topic, and the value to restore afterwards.

1 and 2, monitoring and assessment: a rack is lost and nothing refuses writes. 3, LOWER: partitions that miss replicas in
a lost rack are under a threshold; it can be lowered for their topic. 4, RESTORE: the rack is back, the in-sync replicas
reach the old value again, and the lowered one is still there. HOLD: lowered, and too early to restore. GUARDED: under a
threshold, but with eligible leader replicas on a change of min.insync.replicas would wipe the topic's ELR (KIP-966, see
`elr_guard`): nothing is offered. Where the ELR isn't empty the ISR is below min.insync.replicas, which is checked before
racks, so that lowering min.insync.racks alone wouldn't help there either.

Two thresholds: min.insync.replicas, which brokers enforce, and min.insync.racks, which they don't yet. The value to
restore is remembered from run to run in `topic_posture`; snapshots in between that no run has judged, such as a folder's
older documents, are gone through in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.lake import tables
from spark_jobs.frames import base, elr_guard, rack_health
from spark_jobs.frames.facts import MIN_ISR, MIN_RACKS
from spark_jobs.frames.flagged import Flagged

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


def measures() -> dict[str, Column | Flagged]:
    """Over a topic's partitions: the lost racks that it misses, which partitions are under a threshold for that, the
    smallest ISR among those, and whether everything is in sync again.

    `isr_least` and `isr_racks_least` are NULL unless every partition is known to have a leader and its ISR was read: a
    minimum that skips what wasn't read would call a topic recovered for its other partitions.
    """
    missing = F.coalesce("missing_racks", F.array().cast("array<string>"))
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


def seen(captured: Column) -> Column:
    """Of a measured topic all that its steps are decided by, at the moment of its snapshot."""
    size = {f"hurt_{kind}": F.coalesce(F.size(f"outage_{kind}_ids"), F.lit(0)) for kind in ("replicas", "racks")}
    columns = {
        "captured_at": captured,
        **configured(),
        **size,
        "guarded": elr_guard.unsafe("elr_partitions_at_risk"),
        **{n: F.col(n) for n in ("min_racks", "outage_racks", "outage_replicas_least", "outage_racks_least")},
        **{n: F.col(n) for n in ("isr_least", "isr_racks_least", "isr_whole_everywhere", "partitions_known")},
    }
    return F.struct(*(c.alias(n) for n, c in columns.items()))


def _bound(use: Callable[..., Column], *values: Column) -> Column:
    """`use` of `values`, each of which stands in the plan once however often `use` names it."""
    one = F.struct(*(value.alias(f"v{n}") for n, value in enumerate(values)))
    return F.element_at(F.transform(F.array(one), lambda v: use(*(v[f"v{n}"] for n in range(len(values))))), 1)


def _entry(setting: str, at: Column, before: Column) -> Column:
    """One threshold's step as a struct of `tables.OUTAGE_ENTRY`; NULL where there is none.

    at: what was `seen`; before: what is remembered of the topic (BEFORE), NULL if nothing is.
    """
    kind = "replicas" if setting == MIN_ISR else "racks"
    was = F.try_element_at(F.filter(before["rack_outage"], lambda e: e["setting"] == setting), F.lit(1))

    def stepped(was: Column) -> Column:
        lowered = _lowered(kind, at, before, was)
        return _bound(lambda *kept: _stepped(setting, kind, at, was, *kept), *lowered)

    return _bound(stepped, was)


def _stepped(
    setting: str, kind: str, at: Column, was: Column, old: Column, old_source: Column, lowered: Column
) -> Column:
    """`_entry` of a threshold; was: the entry that remembers it; old, old_source, lowered: what `_lowered` says."""
    now, source = at[f"configured_min_insync_{kind}"], at[f"configured_min_insync_{kind}_source"]
    threshold, of, in_sync = now, source, at["isr_least"]
    if setting == MIN_RACKS:
        threshold, in_sync = at["min_racks"], at["isr_racks_least"]
        of = F.when(now >= threshold, source).otherwise(POLICY)
    hurt = at[f"hurt_{kind}"] > 0
    in_sync_again = F.coalesce(at["isr_whole_everywhere"] | (in_sync >= old), F.lit(False))
    recovered = in_sync_again & at["partitions_known"] & ~_touched(at)
    step = (
        F.when(hurt & at["guarded"], GUARDED)
        .when(hurt, LOWER)
        .when(lowered & recovered & ~at["guarded"], RESTORE)
        .when(lowered, HOLD)
    )
    least = F.greatest(F.coalesce(at[f"outage_{kind}_least"], F.lit(1)), F.lit(1))
    fields: Mapping[str, Column] = {
        "setting": F.lit(setting),
        "step": step,
        "value": F.when(lowered, old).otherwise(threshold),
        "source": F.when(lowered, old_source).otherwise(of),
        "configured": F.when(lowered & was.isNotNull(), was["configured"]).otherwise(now),
        "now": now,
        "now_source": source,
        "lower_to": F.when(step == LOWER, least),
        "since": F.coalesce(was["since"], at["captured_at"]),
        "racks": at["outage_racks"],
        "partitions": at[f"hurt_{kind}"],
    }
    types = {f.name: tables.SPARK_TYPES[f.type] for f in tables.OUTAGE_ENTRY}
    return F.when(step.isNotNull(), F.struct(*(fields[n].cast(t).alias(n) for n, t in types.items())))


def _touched(at: Column) -> Column:
    return F.coalesce(F.size(at["outage_racks"]) > 0, F.lit(False))


def _lowered(kind: str, at: Column, before: Column, was: Column) -> tuple[Column, Column, Column]:
    """The threshold to restore, its source, and whether it is lower now; was: the entry that remembers it, if one does."""
    older, older_source = before[f"configured_min_insync_{kind}"], before[f"configured_min_insync_{kind}_source"]
    fresh = was.isNull() & _touched(at) & older.isNotNull()
    old = F.when(fresh, older).otherwise(was["value"])
    old_source = F.when(fresh, older_source).otherwise(was["source"])
    now = at[f"configured_min_insync_{kind}"]
    # A value that only the policy wants may have stood lower on the topic all the time.
    always = (old_source == POLICY) & now.eqNullSafe(was["configured"])
    return old, old_source, F.coalesce((now < old) & ~always, F.lit(False))


def _entries(at: Column, before: Column) -> Column:
    """The steps of both thresholds; NULL where there is none."""

    def both(at: Column, before: Column) -> Column:
        return F.array_compact(F.array(_entry(MIN_ISR, at, before), _entry(MIN_RACKS, at, before)))

    return _bound(lambda entries: F.when(F.size(entries) > 0, entries), _bound(both, at, before))


def remembered(before: Column, past: Column) -> Column:
    """What is remembered of a topic (BEFORE) once each moment of `past`, an array of `seen`, was gone through in order.

    Moments at which its settings could not be read are passed over. Nothing is gone through for a topic that no outage
    has touched: without one nothing is remembered, and no value counts as lowered.
    """

    def through(so_far: Column, at: Column) -> Column:
        after = F.struct(*(at[n].alias(n) for n in CONFIGURED), _entries(at, so_far).alias("rack_outage")).cast(BEFORE)
        return F.when(at[CONFIGURED[0]].isNull(), so_far).otherwise(after)

    touched = F.size("outage_racks") > 0
    matters = touched | F.exists(past, _touched) | (F.size(before["rack_outage"]) > 0)
    gone_through = F.aggregate(F.array_sort(past), before, through)
    return F.when(F.coalesce(matters & past.isNotNull(), F.lit(False)), gone_through).otherwise(before)


def posture(before: Column) -> dict[str, Column]:
    """The columns of `topic_posture` about outages: thresholds as configured, the most urgent step, and each one."""
    return {**configured(), "rack_outage": _entries(seen(F.col("captured_at")), before)}


def most_urgent(entries: Column) -> Column:
    """The step of a topic's entries that comes first in URGENCY."""
    steps = F.transform(entries, lambda e: e["step"])
    chosen = None
    for step in URGENCY:
        found = F.array_contains(steps, step)
        chosen = F.when(found, step) if chosen is None else chosen.when(found, step)
    return chosen
