"""Finds topics that a plan would make worse, in the end or on the way.

Such topics are left out: a finding that is new or worse, or a step that does harm, refutes the whole plan
(`durability.remedies.change.proof`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from durability.remedies.change import states
from durability.remedies.change.model import Document, Harm, Move, TopicSettings

SHARED = (
    "its tier requires a rack per replica, and the live brokers are in too few racks for more replicas: add a rack, or give it a"
    " tier that requires fewer replicas"
)
RACK_LOSS = (
    "the loss of a rack would break more than now, because the live brokers are in too few racks for its target: add a rack, or"
    " give it a tier that requires less"
)
RELATIVE = (
    "its tier requires a min.insync.replicas relative to the number of replicas, and more replicas would require more than it can"
    " be set to now"
)
HEADROOM = (
    "a higher min.insync.replicas would leave less headroom than its tier requires, and its partitions don't get more replicas:"
    " give them more first"
)
HARMFUL = (
    "a step would leave its partition {} offline or under its min.insync.replicas, or that is unknown: first bring back replicas"
    " that are out of sync, and give all brokers the same min.insync.replicas"
)
UNKNOWN_OFFLINE = (
    "it is unknown what min.insync.replicas of its partitions without a leader is now: first bring back a leader for them,"
    " then plan again"
)
CAUSES = "its steps would cause a finding or make it worse: {}"
DIFFERS = (
    "the brokers' own min.insync.replicas differ, or some are unknown, and other replicas or another leader would give it another"
    " value: first set the same value on all brokers, and let the auditor read it"
)
Racks = Mapping[int, str | None]
"""The rack of each broker; None if it has none, or it is unknown."""


def worse(
    aims: Mapping[str, Mapping[str, Any]],
    topics: Mapping[str, Document],
    moves: Mapping[str, Sequence[Move]],
    made: Mapping[str, TopicSettings],
    postures: Mapping[str, Mapping[str, Any]],
    required: Mapping[str, Mapping[str, Any]],
    racks: Racks,
    unknown: Collection[str] = (),
    of_brokers: Mapping[int, str | None] | None = None,
) -> dict[str, TopicSettings]:
    """The topics that moves and settings would make worse, with the reason. They stay as they are.

    aims: `evidence.target` by topic. moves, made: the moves and settings of topics. postures: rows of `topic_posture` by topic.
    required: the requirements of each tier. unknown: topics with a partition that isn't led, and whose min.insync.replicas is
    unknown: with a value that is known, findings would name it. of_brokers: the brokers' own min.insync.replicas, if they differ.
    """
    found: dict[str, TopicSettings] = {}
    for name, target in aims.items():
        one, posture, now = made[name], postures.get(name), target["min_insync_replicas_now"]
        changes = name in moves or one.before is not None or one.after is not None
        if not changes or posture is None or now is None:
            continue
        if name in unknown and (one.before is not None or one.after is not None):
            found[name] = TopicSettings(held=one.held or UNKNOWN_OFFLINE, others=one.others)
            continue
        if of_brokers and _differs(topics[name], moves.get(name, ()), one, of_brokers):
            found[name] = TopicSettings(held=one.held or DIFFERS, others=one.others)
            continue
        of_tier = required.get(posture["tier"] or "", {})
        survives, headroom = of_tier.get("survive") or (), of_tier.get("write_headroom") or 0
        below = target.get("below_replication_factor")
        own, least = bool(posture["target_own_racks"]), (now, one.min_isr(now))
        why = _why(topics[name], moves.get(name, ()), racks, survives, own, least, below, headroom)
        if why is not None:
            found[name] = TopicSettings(held=one.held or why, others=one.others)
    return found


def _differs(topic: Document, moves: Iterable[Move], one: TopicSettings, of_brokers: Mapping[int, str | None]) -> bool:
    """Would a partition inherit another min.insync.replicas, from a new replica's broker or its next leader's?

    one: the topic's settings. With a value of its own, it inherits none.
    """
    last = one.after or one.before
    if last.value is not None if last is not None else not states.inherits(topic):
        return False
    leaders = {p["partition"]: of_brokers.get(p["leader"]) for p in topic["partitions"]}
    return any(
        not {of_brokers.get(b) for b in move.after} <= {of_brokers.get(b) for b in move.before}
        or of_brokers.get(move.after[0]) != leaders[move.partition]
        for move in moves
    )


def harmed(
    harms: Iterable[Harm], made: Mapping[str, TopicSettings], blocked: Collection[str]
) -> dict[str, TopicSettings]:
    """The topics that a step would harm on the way, with the reason. They stay as they are.

    made: the settings of topics. blocked: topics that stay already.
    """
    found: dict[str, TopicSettings] = {}
    for harm in harms:
        if harm.topic in made and harm.topic not in blocked and harm.topic not in found:
            why = HARMFUL.format(harm.partition)
            found[harm.topic] = TopicSettings(held=why, others=made[harm.topic].others)
    return found


def _why(
    topic: Document,
    moves: Iterable[Move],
    racks: Racks,
    survives: Collection[str],
    own_racks: bool,
    least: tuple[int, int],
    below: int | None,
    headroom: int,
) -> str | None:
    """Why the plan would make the topic worse; None if it doesn't.

    survives: the losses that its tier says it survives. own_racks: does the tier require a rack per replica? least: its
    min.insync.replicas before the plan and after it. below: the tier requires the number of replicas minus this; None if not.
    headroom: the losses that writes must survive.
    """
    after = {move.partition: move.after for move in moves}
    by_rack = "rack" in survives and any(racks.values())
    for partition in topic["partitions"]:
        now = partition["replicas"]
        then = after.get(partition["partition"], now)
        if own_racks and not _shared(now, racks) and _shared(then, racks):
            return SHARED
        if below is not None and least[0] >= max(1, len(now) - below) and least[1] < max(1, len(then) - below):
            return RELATIVE
        if len(then) - min(least[1], len(then)) < headroom <= len(now) - min(least[0], len(now)):
            return HEADROOM
        if by_rack and _broken(then, racks, least[1]) > _broken(now, racks, least[0]):
            return RACK_LOSS
        # A finding about data names the partitions that certainly lose some, so one with an unknown rack may be new in it.
        if by_rack and _broken(then, racks, least[1], False) == 2 > _broken(now, racks, least[0], False):
            return RACK_LOSS
    return None


def _shared(replicas: Sequence[int], racks: Racks) -> bool:
    """Is a replica without a known rack of its own?"""
    return len({racks.get(broker) for broker in replicas} - {None}) < len(replicas)


def _broken(replicas: Sequence[int], racks: Racks, least: int, anywhere: bool = True) -> int:
    """What the loss of a rack breaks, with all replicas in sync: 2 data, 1 acks=all writes, 0 neither.

    Acknowledged records may be in one rack alone if it has as many replicas as the min ISR. anywhere: may a broker without a
    known rack be in that rack?

    >>> racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    >>> _broken([1, 2, 3], racks, 2), _broken([1, 2, 3], racks, 3), _broken([1, 3, 4], racks, 2)
    (2, 1, 0)
    >>> _broken([1, 9], racks, 2), _broken([1, 9], racks, 2, anywhere=False), _broken([1, 2, 9], racks, 2, anywhere=False)
    (2, 1, 2)
    """
    counts = Counter(racks.get(broker) for broker in replicas)
    without_rack = counts.pop(None, 0)
    lost = max(counts.values(), default=0) + (without_rack if anywhere else 0)
    least = min(least, len(replicas))
    if lost >= least:
        return 2
    return int(len(replicas) - lost < least)
