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
    """What several entries need of a partition's state: struct<led, enough, waited, accepted, beside, rest>.

    `led`: it has a live leader. `enough`: the leader has enough replicas in sync (`enough_in_sync`). `waited`: it waits for a
    dead broker in the ISR. `accepted`: led, enough and not waited. `beside`: the number of replicas in sync in the leader's
    rack, including the leader; 0 if the leader has no rack. `rest`: the layout of the other replicas in sync.
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

    partition: its FACTS, `isr_count` and bounds. now: its `now`. min_racks: the racks required in sync, NULL for none. unclean:
    may a replica that isn't in sync be elected? NULL if unknown.

    Each entry has, NULL where a fact is unknown:
    `accepted`; `error`, also NULL where the write is accepted; `proposed_error`;
    `retriable`: can a retry succeed without a change of configuration? Of the error, else of the proposed one;
    `copies_now`, `racks_now`: of a write acknowledged now, 0 if none is; `copies_worst`, `racks_worst`: in the worst case;
    `waits_for`: the number of followers; `visible_now`: do consumers see records written now? `survives_leader_loss`.
    """
    led, accepted, rest = now["led"], now["accepted"], now["rest"]
    isr, effective, caps = partition["isr_count"], partition["effective_min_isr"], partition["caps"]
    zero, no = F.lit(0), F.lit(False)
    leaderless = F.when(~led, NO_LEADER)
    error, proposed = (_rejection(partition[answer]) for answer in ("acks_all_error", "acks_all_proposed_error"))
    # The high watermark waits for all of the ISR. Since 3.7 it doesn't advance below the min ISR (KIP-966,
    # Partition.maybeIncrementLeaderHW).
    visible = (
        F.when(~led | now["waited"], False).when(now["enough"], led).when(~now["enough"], led & ~caps).when(~caps, led)
    )
    worst = {
        "copies_worst": _if_equal(partition["copies_least"], partition["copies_most"]),
        "racks_worst": _if_equal(partition["racks_least"], partition["racks_most"]),
    }
    survives = F.when(worst["copies_worst"] < 2, no).otherwise((worst["copies_worst"] >= 2) & ~unclean)
    leaders_rack = (now["beside"] > 0).cast("int")
    # The leader always has the record. In the worst case the fastest followers are those in its rack.
    fastest = leaders_rack + fewest_racks(rest["racks"], effective - now["beside"] - rest["unracked"])

    def if_accepted(value: Column) -> Column:
        return F.when(~accepted, zero).when(accepted, value)

    def racks_if_accepted(racks: Column) -> Column:
        return if_accepted(F.when(rest["unknown"] == 0, racks))

    acks_0 = {
        "accepted": led,
        "error": leaderless,
        "proposed_error": leaderless,
        "retriable": ~led | F.lit(None).cast("boolean"),
        **dict.fromkeys(("copies_now", "racks_now", "copies_worst", "racks_worst", "waits_for"), zero),
        "visible_now": visible,
        "survives_leader_loss": no,
    }
    acks_1 = acks_0 | {
        "copies_now": led.cast("int"),
        "racks_now": F.when(~led, zero).when(led, _racks_of(partition["leading"])),
        "copies_worst": F.lit(1),
        "racks_worst": _racks_of_any(partition["ends"]),
    }
    acks_all = {
        "accepted": accepted,
        "error": error,
        "proposed_error": proposed,
        "retriable": _retriable(partition, error, proposed, min_racks),
        "copies_now": if_accepted(isr),
        "racks_now": racks_if_accepted(leaders_rack + F.size(rest["racks"])),
        **worst,
        "waits_for": if_accepted(isr - 1),
        "visible_now": accepted,
        "survives_leader_loss": survives,
    }
    acks_min_isr = {
        "accepted": no,
        "error": F.coalesce(leaderless, F.when(led, INVALID_ACKS)),
        "proposed_error": error,
        "retriable": ~led,
        "copies_now": if_accepted(effective),
        "racks_now": racks_if_accepted(fastest),
        **worst,
        "waits_for": if_accepted(effective - 1),
        "fewer_than_all": if_accepted(isr - effective),
        "visible_now": accepted,
        "survives_leader_loss": no,
    }
    table = {"0": acks_0, "1": acks_1, "all": acks_all, "min.insync.replicas": acks_min_isr}
    return struct({acks: struct(entry) for acks, entry in table.items()})


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
