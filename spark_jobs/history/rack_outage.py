"""KIP-1290's procedure for a rack outage: the step for a topic, and the value to restore afterwards.

- LOWER: partitions miss replicas in a lost rack and are below a threshold, which can be lowered for their topic.
- HOLD: the threshold was lowered, and it is too early to restore it.
- RESTORE: the rack is back, enough replicas are in sync for the old value, and the lowered one still applies.
- GUARDED: below a threshold, but a change of min.insync.replicas would wipe the topic's ELR (KIP-966, see `elr_guard`), so
  no step is offered. A partition with an ELR is below min.insync.replicas. Brokers check that before racks, so lowering
  min.insync.racks alone wouldn't help.

There are two thresholds: min.insync.replicas, which brokers enforce, and min.insync.racks, which they don't enforce yet.
`topic_posture` keeps the value to restore from run to run. Snapshots between two runs, such as a folder's older documents, are
processed in order.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.lake import tables
from spark_jobs.frames import base, elr_guard, rack_health
from spark_jobs.frames.columns import certain, struct
from spark_jobs.frames.facts import MIN_ISR, MIN_RACKS
from spark_jobs.frames.flagged import Flagged

LOWER, RESTORE, HOLD, GUARDED = "lower", "restore", "hold", "guarded"
URGENCY = (GUARDED, LOWER, RESTORE, HOLD)
POLICY = "policy"
"""The source of a value that the tier requires and no setting states."""
CONFIGURED = tuple(name for name, _ in tables.CONFIGURED)
ENTRY = {field.name: tables.SPARK_TYPES[field.type] for field in tables.OUTAGE_ENTRY}
BEFORE = (
    "struct<configured_min_insync_replicas:int,configured_min_insync_replicas_source:string,"
    "configured_min_insync_racks:int,configured_min_insync_racks_source:string,"
    f"rack_outage:array<struct<{','.join(f'{name}:{kind}' for name, kind in ENTRY.items())}>>>"
)
"""The type of what is remembered about a topic."""


def measures() -> dict[str, Column | Flagged]:
    """Measures over a topic's partitions: the lost racks that they miss, the partitions below a threshold because of that with
    their smallest ISR, and whether all are in sync again.

    `isr_least` and `isr_racks_least` are NULL unless every partition has a leader and a known ISR. Otherwise a topic would
    count as recovered although one of its partitions may not be.
    """
    missing = F.coalesce("missing_racks", F.array().cast("array<string>"))
    touched = F.size(missing) > 0
    few_replicas = touched & ~F.col("offline") & F.col("under_min_isr")
    few_racks = touched & (F.col("rack_category") == rack_health.UNDER)
    all_read = F.bool_and(certain(~F.col("offline") & F.col("isr_count").isNotNull()))
    return {
        "outage_racks": F.sort_array(F.array_distinct(F.flatten(F.collect_list(F.when(touched, missing))))),
        "outage_replicas_ids": base.partition_ids(few_replicas),
        "outage_replicas_least": F.min(F.when(few_replicas, F.col("isr_count"))),
        "outage_racks_ids": base.partition_ids(few_racks),
        "outage_racks_least": F.min(F.when(few_racks, F.col("isr_rack_count"))),
        "isr_least": F.when(all_read, F.min("isr_count")),
        "isr_racks_least": F.when(all_read, F.min(F.col("isr_span")["least"])),
        "isr_whole_everywhere": certain(all_read & F.bool_and("isr_whole")),
    }


def configured() -> dict[str, Column]:
    """The topic's thresholds and their sources: topic, cluster-default, broker or default."""
    min_isr = F.col("min_insync_replicas_at_worst")
    racks_source = F.when(F.col("own_min_racks").isNotNull(), F.col("own_min_racks_source")).when(
        F.col("min_racks_configured").isNotNull(), "broker"
    )
    values = (min_isr["min_isr"], min_isr["min_isr_source"], F.col("min_racks_configured"), racks_source)
    return dict(zip(CONFIGURED, values, strict=True))


def seen(captured: Column) -> Column:
    """A struct of everything that decides a topic's steps. captured: the time of its snapshot."""
    copied = (
        "min_racks",
        "outage_racks",
        "outage_replicas_least",
        "outage_racks_least",
        "isr_least",
        "isr_racks_least",
    )
    return struct(
        {
            "captured_at": captured,
            **configured(),
            **{f"hurt_{kind}": F.coalesce(F.size(f"outage_{kind}_ids"), F.lit(0)) for kind in ("replicas", "racks")},
            "guarded": elr_guard.unsafe("elr_partitions_at_risk"),
            **{name: F.col(name) for name in (*copied, "isr_whole_everywhere", "partitions_known")},
        }
    )


def _bound(use: Callable[..., Column], *values: Column) -> Column:
    """`use(*values)`, with each value only once in the plan, however often `use` refers to it."""
    one = F.struct(*(value.alias(f"v{n}") for n, value in enumerate(values)))
    return F.element_at(F.transform(F.array(one), lambda v: use(*(v[f"v{n}"] for n in range(len(values))))), 1)


def _entry(setting: str, at: Column, before: Column) -> Column:
    """The step of one threshold, a struct of ENTRY; NULL if there is none.

    at: the topic as `seen`.
    before: what is remembered about it (BEFORE), NULL if nothing.
    """
    kind = "replicas" if setting == MIN_ISR else "racks"
    remembered = F.try_element_at(F.filter(before["rack_outage"], lambda e: e["setting"] == setting), F.lit(1))

    def stepped(was: Column) -> Column:
        lowered = _lowered(kind, at, before, was)
        return _bound(lambda *values: _stepped(setting, kind, at, was, *values), *lowered)

    return _bound(stepped, remembered)


def _stepped(
    setting: str, kind: str, at: Column, was: Column, old: Column, old_source: Column, lowered: Column
) -> Column:
    """Implements `_entry`. was: the remembered entry. old, old_source, lowered: as returned by `_lowered`."""
    now, source = at[f"configured_min_insync_{kind}"], at[f"configured_min_insync_{kind}_source"]
    threshold, threshold_source, in_sync = now, source, at["isr_least"]
    if setting == MIN_RACKS:
        threshold, in_sync = at["min_racks"], at["isr_racks_least"]
        threshold_source = F.when(now >= threshold, source).otherwise(POLICY)
    hurt = at[f"hurt_{kind}"] > 0
    in_sync_again = certain(at["isr_whole_everywhere"] | (in_sync >= old))
    recovered = in_sync_again & at["partitions_known"] & ~_touched(at)
    step = (
        F.when(hurt & at["guarded"], GUARDED)
        .when(hurt, LOWER)
        .when(lowered & recovered & ~at["guarded"], RESTORE)
        .when(lowered, HOLD)
    )
    fields = {
        "setting": F.lit(setting),
        "step": step,
        "value": F.when(lowered, old).otherwise(threshold),
        "source": F.when(lowered, old_source).otherwise(threshold_source),
        "configured": F.when(lowered & was.isNotNull(), was["configured"]).otherwise(now),
        "now": now,
        "now_source": source,
        "lower_to": F.when(step == LOWER, F.greatest(at[f"outage_{kind}_least"], F.lit(1))),
        "since": F.coalesce(was["since"], at["captured_at"]),
        "racks": at["outage_racks"],
        "partitions": at[f"hurt_{kind}"],
    }
    return F.when(step.isNotNull(), struct({name: fields[name].cast(type_name) for name, type_name in ENTRY.items()}))


def _touched(at: Column) -> Column:
    return certain(F.size(at["outage_racks"]) > 0)


def _lowered(kind: str, at: Column, before: Column, was: Column) -> tuple[Column, Column, Column]:
    """The threshold to restore, its source, and whether it is lower now. was: the remembered entry; NULL if there is none."""
    previous, previous_source = before[f"configured_min_insync_{kind}"], before[f"configured_min_insync_{kind}_source"]
    begins = was.isNull() & _touched(at) & previous.isNotNull()
    old = F.when(begins, previous).otherwise(was["value"])
    old_source = F.when(begins, previous_source).otherwise(was["source"])
    now = at[f"configured_min_insync_{kind}"]
    # The topic's own value may always have been lower than the policy's.
    always = (old_source == POLICY) & now.eqNullSafe(was["configured"])
    return old, old_source, certain((now < old) & ~always)


def _entries(at: Column, before: Column) -> Column:
    """The steps of both thresholds as an array; NULL if there are none."""

    def both(at: Column, before: Column) -> Column:
        return F.array_compact(F.array(_entry(MIN_ISR, at, before), _entry(MIN_RACKS, at, before)))

    return _bound(lambda entries: F.when(F.size(entries) > 0, entries), _bound(both, at, before))


def remembered(before: Column, past: Column) -> Column:
    """What is remembered about a topic (BEFORE) after `past`, an array of `seen` in order of time.

    Snapshots without readable settings are skipped. Topics without an outage are skipped, too: no value of theirs counts as
    lowered.
    """

    def after(so_far: Column, at: Column) -> Column:
        found = struct({**{name: at[name] for name in CONFIGURED}, "rack_outage": _entries(at, so_far)}).cast(BEFORE)
        return F.when(at[CONFIGURED[0]].isNull(), so_far).otherwise(found)

    matters = (F.size("outage_racks") > 0) | F.exists(past, _touched) | (F.size(before["rack_outage"]) > 0)
    return F.when(certain(matters & past.isNotNull()), F.aggregate(F.array_sort(past), before, after)).otherwise(before)


def posture(before: Column) -> dict[str, Column]:
    """The columns of `topic_posture` for outages: the configured thresholds and their steps."""
    return {**configured(), "rack_outage": _entries(seen(F.col("captured_at")), before)}


def most_urgent(entries: Column) -> Column:
    """The first step of URGENCY among a topic's entries; NULL if there are none."""
    return F.coalesce(*(F.when(F.array_contains(entries["step"], step), step) for step in URGENCY))
