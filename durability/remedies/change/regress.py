"""Finds topics that a plan would harm on the way, or whose min.insync.replicas after it can't be known.

Such topics are left out. The rules find those that a plan would make worse in the end (`durability.remedies.change.proof`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from durability.remedies.change import states
from durability.remedies.change.model import Document, Harm, Move, TopicSettings

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


def unknown_minimum(
    aims: Mapping[str, Mapping[str, Any]],
    topics: Mapping[str, Document],
    moves: Mapping[str, Sequence[Move]],
    made: Mapping[str, TopicSettings],
    unknown: Collection[str] = (),
    of_brokers: Mapping[int, str | None] | None = None,
) -> dict[str, TopicSettings]:
    """The topics whose min.insync.replicas after the plan can't be known, with the reason. They stay as they are.

    aims: `evidence.target` by topic. moves, made: the moves and settings of topics. unknown: topics with a partition that isn't
    led, and whose min.insync.replicas is unknown: with a value that is known, findings would name it. of_brokers: the brokers'
    own min.insync.replicas, if they differ.
    """
    found: dict[str, TopicSettings] = {}
    for name, target in aims.items():
        one, now = made[name], target["min_insync_replicas_now"]
        changes = name in moves or one.before is not None or one.after is not None
        if not changes or now is None:
            continue
        if name in unknown and (one.before is not None or one.after is not None):
            found[name] = TopicSettings(held=one.held or UNKNOWN_OFFLINE, others=one.others)
        elif of_brokers and _differs(topics[name], moves.get(name, ()), one, of_brokers):
            found[name] = TopicSettings(held=one.held or DIFFERS, others=one.others)
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
