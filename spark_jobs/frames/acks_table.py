"""What each acks value means for a partition: whether a write is accepted, the error, the guarantee, visibility to consumers.

The figures of acks=min.insync.replicas are those that KIP-926 proposes, but its `error` is the answer of today's brokers.
`proposed_error` is the answer of brokers with KIP-579 and KIP-1290. Copies are in page caches, not on synced disks.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.acks import fewest_racks
from spark_jobs.frames.columns import certain, possible, struct
from spark_jobs.frames.rack_health import (
    INCONSISTENT,
    NO_ERROR,
    NO_LEADER,
    NOT_ENOUGH_RACKS,
    NOT_ENOUGH_REPLICAS,
    TIMED_OUT,
)
from spark_jobs.frames.racks import layout

FACTS = (
    *(
        "offline",
        "min_isr",
        "min_isr_source",
        "effective_min_isr",
        "caps",
        "enough",
        "replica_count",
        "blocking",
        "in_sync",
        "leading",
    ),
    *("acks_all_error", "acks_all_proposed_error", "replica_span", "ends"),
)
"""The columns of a partition that the table needs, besides `isr_count` and `acks.BOUNDS`."""

INVALID_ACKS = "INVALID_REQUIRED_ACKS"


def now(partition: Column) -> Column:
    """The partition's state, which several entries need: struct<led, enough, waited, accepted, beside, rest>.

    - `led`: it has a live leader.
    - `enough`: the leader has enough replicas in sync (`enough_in_sync`).
    - `waited`: the leader waits for a dead broker in the ISR.
    - `accepted`: led, enough and not waited.
    - `beside`: the number of replicas in sync in the leader's rack, with the leader; 0 if the leader has no rack.
    - `rest`: the layout of the other replicas in sync.
    """
    led, enough, in_sync = ~partition["offline"], partition["enough"], partition["in_sync"]
    rack, waited = partition["leading"]["rack"], partition["blocking"].isNotNull()
    return struct(
        {
            "led": led,
            "enough": enough,
            "waited": waited,
            "accepted": led & enough & ~waited,
            "beside": F.size(F.filter(in_sync, lambda b: b["rack"] == rack)),
            "rest": layout(F.filter(in_sync, lambda b: possible(b["rack"] != rack))),
        }
    )


def entries(partition: Column, now: Column, min_racks: Column, unclean: Column) -> Column:
    """The table: a struct by acks value.

    partition: its FACTS, `isr_count` and bounds.
    now: the result of `now` for it.
    min_racks: the number of racks required in sync; NULL for none.
    unclean: may a replica that isn't in sync be elected? NULL if unknown.

    The fields of each entry are NULL if a fact is unknown:

    - `accepted`: is the write accepted?
    - `error`: today's error; NULL also if the write is accepted.
    - `proposed_error`: the same for brokers with KIP-579 and KIP-1290.
    - `retriable`: can a retry succeed without a change of configuration? It is about the error, else the proposed error.
    - `copies_now`, `racks_now`: those of a write acknowledged now; 0 if none is.
    - `copies_worst`, `racks_worst`: the same in the worst case.
    - `waits_for`: the number of followers that the leader waits for.
    - `visible_now`: do consumers see records written now?
    - `survives_leader_loss`: does an acknowledged record survive the loss of the leader?
    """
    acks_0 = _acks_0(partition, now)
    table = {
        "0": acks_0,
        "1": acks_0 | _acks_1(partition, now),
        "all": _acks_all(partition, now, min_racks, unclean),
        "min.insync.replicas": _acks_min_isr(partition, now),
    }
    return struct({acks: struct(entry) for acks, entry in table.items()})


def _acks_0(partition: Column, now: Column) -> dict[str, Column]:
    """acks=0: the producer waits for no answer, so nothing is guaranteed."""
    led = now["led"]
    return {
        "accepted": led,
        "error": _leaderless(now),
        "proposed_error": _leaderless(now),
        "retriable": ~led | F.lit(None).cast("boolean"),
        **dict.fromkeys(("copies_now", "racks_now", "copies_worst", "racks_worst", "waits_for"), F.lit(0)),
        "visible_now": _visible(partition, now),
        "survives_leader_loss": F.lit(False),
    }


def _acks_1(partition: Column, now: Column) -> dict[str, Column]:
    """acks=1: the leader's copy. These fields differ from acks=0."""
    led = now["led"]
    return {
        "copies_now": led.cast("int"),
        "racks_now": F.when(~led, 0).when(led, _racks_of(partition["leading"])),
        "copies_worst": F.lit(1),
        "racks_worst": _racks_of_any(partition["ends"]),
    }


def _acks_all(partition: Column, now: Column, min_racks: Column, unclean: Column) -> dict[str, Column]:
    """acks=all: every replica in the ISR."""
    isr = partition["isr_count"]
    error, proposed = _rejection(partition["acks_all_error"]), _rejection(partition["acks_all_proposed_error"])
    worst = _worst(partition)
    copies = worst["copies_worst"]
    return {
        "accepted": now["accepted"],
        "error": error,
        "proposed_error": proposed,
        "retriable": _retriable(partition, error, proposed, min_racks),
        "copies_now": _if_accepted(now, isr),
        "racks_now": _racks_if_accepted(now, _leaders_rack(now) + F.size(now["rest"]["racks"])),
        **worst,
        "waits_for": _if_accepted(now, isr - 1),
        "visible_now": now["accepted"],
        "survives_leader_loss": F.when(copies < 2, False).otherwise((copies >= 2) & ~unclean),
    }


def _acks_min_isr(partition: Column, now: Column) -> dict[str, Column]:
    """acks=min.insync.replicas, as KIP-926 proposes it: the leader and the fastest followers."""
    isr, effective, rest = partition["isr_count"], partition["effective_min_isr"], now["rest"]
    # The leader always has the record. In the worst case the fastest followers are those in its rack.
    outside_leaders_rack = effective - now["beside"] - rest["unracked"]
    racks = _leaders_rack(now) + fewest_racks(rest["racks"], outside_leaders_rack)
    return {
        "accepted": F.lit(False),
        "error": F.coalesce(_leaderless(now), F.when(now["led"], INVALID_ACKS)),
        "proposed_error": _rejection(partition["acks_all_error"]),
        "retriable": ~now["led"],
        "copies_now": _if_accepted(now, effective),
        "racks_now": _racks_if_accepted(now, racks),
        **_worst(partition),
        "waits_for": _if_accepted(now, effective - 1),
        "fewer_than_all": _if_accepted(now, isr - effective),
        "visible_now": now["accepted"],
        "survives_leader_loss": F.lit(False),
    }


def _leaderless(now: Column) -> Column:
    """The error of a partition without a leader; else NULL."""
    return F.when(~now["led"], NO_LEADER)


def _visible(partition: Column, now: Column) -> Column:
    """Do consumers see records written now with acks=0 or 1? They see records below the high watermark.

    The high watermark waits for the whole ISR. Since 3.7 it doesn't advance below the min ISR (KIP-966,
    Partition.maybeIncrementLeaderHW).
    """
    led, enough, caps = now["led"], now["enough"], partition["caps"]
    return F.when(~led | now["waited"], False).when(enough, led).when(~enough, led & ~caps).when(~caps, led)


def _worst(partition: Column) -> dict[str, Column]:
    """The copies and racks that the worst ISR guarantees."""
    return {
        "copies_worst": _if_equal(partition["copies_least"], partition["copies_most"]),
        "racks_worst": _if_equal(partition["racks_least"], partition["racks_most"]),
    }


def _leaders_rack(now: Column) -> Column:
    """1 if the leader has a rack, else 0."""
    return (now["beside"] > 0).cast("int")


def _if_accepted(now: Column, value: Column) -> Column:
    """The value if an acks=all write is accepted, 0 if it is rejected; NULL if unknown."""
    return F.when(~now["accepted"], 0).when(now["accepted"], value)


def _racks_if_accepted(now: Column, racks: Column) -> Column:
    """`_if_accepted` for a number of racks; NULL if the rack of a replica in sync is unknown."""
    return _if_accepted(now, F.when(now["rest"]["unknown"] == 0, racks))


def _if_equal(least: Column, most: Column) -> Column:
    """The value between two bounds; NULL where they differ."""
    return F.when(least == most, least)


def _racks_of(broker: Column) -> Column:
    """1 for a broker with a rack, 0 for one without, NULL where that is unknown."""
    return F.when(broker["rack"].isNotNull(), 1).when(broker["rack_state"] == "none", 0)


def _racks_of_any(ends: Column) -> Column:
    """The rack of the worst replica alone: 0 where one has no rack, NULL where that is unknown, else 1."""
    unracked = F.exists(ends, lambda end: end["unracked"] > 0)
    return F.when(unracked, 0).when(~F.exists(ends, lambda end: end["unknown"] > 0), 1)


def _rejection(answer: Column) -> Column:
    """An answer that is an error; NULL where the write is accepted or the answer unknown."""
    return F.when(answer != NO_ERROR, answer)


def _retriable(partition: Column, error: Column, proposed: Column, min_racks: Column) -> Column:
    """Can a retry with acks=all succeed? A replica may come back in sync, but a partition doesn't get more replicas.

    The proposed error counts only where a retry with today's brokers is pointless: it is accepted, or all replicas are in sync.
    """
    all_in_sync = partition["isr_count"] >= partition["replica_count"]
    attainable = (partition["min_isr"] <= partition["replica_count"]) | partition["caps"]
    span = partition["replica_span"]
    enough_racks = F.when(span["least"] >= min_racks, True).when(span["most"] < min_racks, False)
    proposal_decides = (partition["acks_all_error"] == NO_ERROR) | all_in_sync
    return (
        F.when(error == NO_LEADER, True)
        .when(error.isin(NOT_ENOUGH_REPLICAS, TIMED_OUT), attainable)
        .when(proposal_decides & (proposed == INCONSISTENT), False)
        .when(proposal_decides & (proposed == NOT_ENOUGH_RACKS), enough_racks)
    )


def readings(partition: Column, now: Column) -> Column:
    """The answers to acks=all before and since Kafka 3.7 (KAFKA-15583) once all replicas are in sync, where they differ.

    NULL where the leader's release is known, and where a live leader misses replicas: then both reject the write.
    """
    differ = (partition["min_isr"] > partition["replica_count"]) & partition["caps"].isNull()
    whole = certain(~now["led"]) | (partition["isr_count"] >= partition["replica_count"])
    answers = {"before 3.7": F.lit(NOT_ENOUGH_REPLICAS), "since 3.7": F.lit(None).cast("string")}
    return F.when(differ & whole, struct(answers))
