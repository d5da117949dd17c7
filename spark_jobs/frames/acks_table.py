"""What each acks value means for a partition: accepted or which error, what is guaranteed, and whether consumers see it.

KIP-926 for acks=min.insync.replicas, whose figures are the proposal's while its `error` is what brokers answer today;
KIP-579 and KIP-1290 for `proposed_error`, what brokers would answer with the proposals. Copies are in page caches, not on
synced disks.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.acks import fewest_racks
from spark_jobs.frames.rack_health import INCONSISTENT, NO_ERROR, NO_LEADER, NOT_ENOUGH_RACKS, NOT_ENOUGH_REPLICAS
from spark_jobs.frames.racks import layout

FACTS = (
    "offline",
    "min_isr",
    "min_isr_source",
    "effective_min_isr",
    "caps",
    "enough",
    "replica_count",
    "in_sync",
    "leading",
    "acks_all_error",
    "acks_all_proposed_error",
    "replica_span",
    "ends",
)
"""Columns of a partition that the table is made of, beside `isr_count` and the bounds of `acks.guaranteed`."""

INVALID_ACKS = "INVALID_REQUIRED_ACKS"


def now(seen: Column) -> Column:
    """What several cells of the table need of a partition as it is: struct<led, enough, accepted, beside, rest>.

    `led`: has a live leader. `enough`: the ISR is not below what the leader enforces (`enough_in_sync`). `accepted`: both.
    `beside`: in-sync replicas in the leader's rack, itself included (0: it has none); `rest`: the layout of the others.
    """
    in_sync = seen["in_sync"]
    led, rack = ~seen["offline"], seen["leading"]["rack"]
    return F.struct(
        led.alias("led"),
        seen["enough"].alias("enough"),
        (led & seen["enough"]).alias("accepted"),
        F.size(F.filter(in_sync, lambda b: b["rack"] == rack)).alias("beside"),
        layout(F.filter(in_sync, lambda b: F.coalesce(b["rack"] != rack, F.lit(True)))).alias("rest"),
    )


def entries(seen: Column, now: Column, min_racks: Column, unclean: Column) -> Column:
    """The table, a struct by acks value.

    seen: the partition's FACTS, `isr_count` and bounds; now: `now` of it; min_racks: the racks wanted in sync, NULL for
    none; unclean: may an out-of-sync replica be elected, NULL if unknown.

    Each entry: `accepted`; `error`, NULL where accepted or unknown; `proposed_error`; `retriable`: can a retry succeed while
    the configuration stays, of the error, else of the proposed one; `copies_now`, `racks_now`: of a write acknowledged
    now (0: none is); `copies_worst`, `racks_worst`: of any; `waits_for`: followers; `visible_now`: do consumers see what is
    written now; `survives_leader_loss`. NULL wherever a fact is missing.
    """
    led, accepted, rest = now["led"], now["accepted"], now["rest"]
    zero, no = F.lit(0), F.lit(False)
    isr, effective = seen["isr_count"], seen["effective_min_isr"]
    leaderless = F.when(~led, NO_LEADER)
    # Since 3.7 the high watermark stands still below the min ISR (KIP-966, Partition.maybeIncrementLeaderHW).
    visible = (
        F.when(~led, False).when(now["enough"], led).when(~now["enough"], led & ~seen["caps"]).when(~seen["caps"], led)
    )
    error, proposed = (_error(seen[answer]) for answer in ("acks_all_error", "acks_all_proposed_error"))
    copies_worst = _sure(seen["copies_least"], seen["copies_most"])
    racks_worst = _sure(seen["racks_least"], seen["racks_most"])
    racks_known = rest["unknown"] == 0
    leaders = (now["beside"] > 0).cast("int")
    # The leader always has the record, and with it whatever stands in its rack may be the fastest.
    fastest = leaders + fewest_racks(rest["racks"], effective - now["beside"] - rest["unracked"])

    def held(of_accepted: Column) -> Column:
        return F.when(~accepted, zero).when(accepted, of_accepted)

    def entry(**cells: Column) -> Column:
        return F.struct(*(cell.alias(name) for name, cell in cells.items()))

    unacknowledged = dict(
        accepted=led, error=leaderless, proposed_error=leaderless, retriable=~led | F.lit(None).cast("boolean")
    )
    one_rack = F.exists(seen["ends"], lambda e: e["unracked"] > 0), F.exists(seen["ends"], lambda e: e["unknown"] > 0)
    return F.struct(
        entry(
            **unacknowledged,
            copies_now=zero,
            racks_now=zero,
            copies_worst=zero,
            racks_worst=zero,
            waits_for=zero,
            visible_now=visible,
            survives_leader_loss=no,
        ).alias("0"),
        entry(
            **unacknowledged,
            copies_now=led.cast("int"),
            racks_now=F.when(~led, zero).when(led, _racks_of(seen["leading"])),
            copies_worst=F.lit(1),
            racks_worst=F.when(one_rack[0], zero).when(~one_rack[1], 1),
            waits_for=zero,
            visible_now=visible,
            survives_leader_loss=no,
        ).alias("1"),
        entry(
            accepted=accepted,
            error=error,
            proposed_error=proposed,
            retriable=_retriable(seen, error, proposed, min_racks),
            copies_now=held(isr),
            racks_now=held(F.when(racks_known, leaders + F.size(rest["racks"]))),
            copies_worst=copies_worst,
            racks_worst=racks_worst,
            waits_for=held(isr - 1),
            visible_now=accepted,
            survives_leader_loss=F.when(copies_worst < 2, no).otherwise((copies_worst >= 2) & ~unclean),
        ).alias("all"),
        entry(
            accepted=no,
            error=F.coalesce(leaderless, F.when(led, INVALID_ACKS)),
            proposed_error=error,
            retriable=~led,
            copies_now=held(effective),
            racks_now=held(F.when(racks_known, fastest)),
            copies_worst=copies_worst,
            racks_worst=racks_worst,
            waits_for=held(effective - 1),
            fewer_than_all=held(isr - effective),
            visible_now=accepted,
            survives_leader_loss=no,
        ).alias("min.insync.replicas"),
    )


def _sure(least: Column, most: Column) -> Column:
    """The value that two bounds leave; NULL where they differ."""
    return F.when(least == most, least)


def _racks_of(broker: Column) -> Column:
    """1 for a broker with a rack, 0 for one without, NULL where that is unknown."""
    return F.when(broker["rack"].isNotNull(), 1).when(broker["rack_state"] == "none", 0)


def _error(answer: Column) -> Column:
    """An answer that refuses; NULL where it accepts or is unknown."""
    return F.when(answer != NO_ERROR, answer)


def _retriable(seen: Column, error: Column, proposed: Column, min_racks: Column) -> Column:
    """Of acks=all. A replica may come back; more replicas than there are never will, where the leader wants so many.

    Of the proposed error only where today's is known to be none, or to be one that no retry helps: all are in sync.
    """
    accepted = (seen["acks_all_error"] == NO_ERROR) | (seen["isr_count"] >= seen["replica_count"])
    attainable = (seen["min_isr"] <= seen["replica_count"]) | seen["caps"]
    span = seen["replica_span"]
    placed = F.when(span["least"] >= min_racks, True).when(span["most"] < min_racks, False)
    return (
        F.when(error == NO_LEADER, True)
        .when(error == NOT_ENOUGH_REPLICAS, attainable)
        .when(accepted & (proposed == INCONSISTENT), False)
        .when(accepted & (proposed == NOT_ENOUGH_RACKS), placed)
    )


def readings(seen: Column, now: Column) -> Column:
    """What acks=all is answered by either release once all replicas are in sync, where it depends on the leader's, and
    that is unknown or the next one's (KAFKA-15583)."""
    differ = (seen["min_isr"] > seen["replica_count"]) & seen["caps"].isNull()
    whole = F.coalesce(~now["led"], F.lit(False)) | (seen["isr_count"] >= seen["replica_count"])
    answer = F.struct(F.lit(NOT_ENOUGH_REPLICAS).alias("before 3.7"), F.lit(None).cast("string").alias("since 3.7"))
    return F.when(differ & whole, answer)
