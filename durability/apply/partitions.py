"""How partitions are now: where a move is, and what a change may not touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from durability.apply.cluster import Reading, Replicas, TopicPartition
from durability.plain import plain

SHOWN = 20


class Place(StrEnum):
    """Where a partition is on the way from its replicas before a move to those after it. reverted: cancelled, so it has the
    replicas before it, in another order."""

    BEFORE = "before"
    RUNNING = "running"
    AFTER = "after"
    REVERTED = "reverted"


def place(now: Replicas, before: Sequence[int], after: Sequence[int]) -> Place | None:
    """Where the partition is; None if others moved it.

    While Kafka moves a partition, its replicas are the target, then those that it removes, sorted by id
    (PartitionReassignmentReplicas).
    A cancellation takes out those that it adds (PartitionReassignmentRevert), so the order may differ from the one before.
    The controller states what moves, and a broker the replicas. The broker learns of the beginning and the end a little later.

    >>> moving = Replicas(replicas=(4, 2, 1), isr=(1, 2), leader=1, adding=(4,), removing=(1,))
    >>> place(moving, before=(1, 2), after=(4, 2)).value
    'running'
    >>> sorted_by_id = Replicas((5, 1, 3, 2, 4), (1, 4, 2), 1, adding=(3, 5), removing=(2, 4))
    >>> place(sorted_by_id, before=(1, 4, 2), after=(5, 1, 3)).value
    'running'
    >>> place(Replicas((2, 1), (1, 2), 1), before=(1, 2), after=(4, 2)).value
    'reverted'

    A move that only removes replicas looks the same when it was cancelled and, for a moment, when it is complete:

    >>> place(Replicas((3, 1, 2), (1, 2, 3), 1), before=(1, 2, 3), after=(3, 1)).value
    'reverted'
    """
    before, after = tuple(before), tuple(after)
    gone = tuple(sorted({*before} - {*after}))
    if now.moving:
        ours = ({*now.adding}, {*now.removing}) == ({*after} - {*before}, {*gone})
        return Place.RUNNING if ours and now.replicas in ((*after, *gone), before) else None
    if now.replicas == after:
        return Place.AFTER
    if now.replicas == before:
        return Place.BEFORE
    if now.replicas == (*after, *gone) and not {*after} <= {*before}:
        return Place.RUNNING
    return Place.REVERTED if sorted(now.replicas) == sorted(before) else None


def troubled(reading: Reading, least: Mapping[str, int | None]) -> set[TopicPartition]:
    """The partitions that are offline or under their effective min ISR (KAFKA-15583). Replicas that are added or removed count.

    With an unknown minimum, a partition counts only if it is offline.
    """
    return {
        name
        for name, now in reading.partitions.items()
        if now.leader is None or len(now.isr) < min(least.get(name.topic) or 0, len(now.replicas))
    }


def recreated(topic_ids: Mapping[str, str], reading: Reading) -> list[str]:
    """The topics that have another id than the one stated here: they were deleted and created again. Unknown ids show nothing.

    >>> now = Reading("id", frozenset({1}), True, {}, topic_ids={"a": "new", "b": "same"})
    >>> recreated({"a": "old", "b": "same", "c": "any"}, now)
    ['a']
    """
    return sorted(name for name, id in topic_ids.items() if reading.topic_ids.get(name, id) != id)


def out_of_sync(reading: Reading, topics: Collection[str]) -> list[str]:
    """Why min.insync.replicas of these topics may not rise: their partitions without a leader, or with replicas out of sync."""
    found = []
    for name, now in _of(reading, topics):
        if now.leader is None:
            found.append(f"{named(name)} has no leader")
        elif lacking := [broker for broker in now.replicas if broker not in now.isr]:
            found.append(f"{named(name)} has replicas {_ids(lacking)} out of sync")
    return found


def elr_at_risk(reading: Reading, topics: Collection[str]) -> list[str]:
    """Why min.insync.replicas of these topics may not change: Kafka would wipe an ELR that is still needed (KIP-966).

    >>> unknown = Reading("id", frozenset({1}), True, {TopicPartition("t", 0): Replicas((1,), (1,), 1, elr=None)})
    >>> elr_at_risk(unknown, ["t"])
    ["the ELR of t-0 isn't known"]
    """
    found = []
    for name, now in _of(reading, topics):
        if now.leader is None or not now.isr:
            found.append(f"{named(name)} has no leader")
        elif now.elr is None:
            found.append(f"the ELR of {named(name)} isn't known")
        elif now.elr:
            found.append(f"{named(name)} has the ELR {_ids(now.elr)}")
    return found


def _of(reading: Reading, topics: Collection[str]) -> list[tuple[TopicPartition, Replicas]]:
    return [(name, now) for name, now in sorted(reading.partitions.items()) if name.topic in topics]


def named(name: TopicPartition) -> str:
    return plain(f"{name.topic}-{name.partition}")


def listed(texts: Sequence[str]) -> str:
    """At most SHOWN texts in one.

    >>> listed(["a", "b"]), listed([str(n) for n in range(22)])[-12:]
    ('a; b', '; and 2 more')
    """
    more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
