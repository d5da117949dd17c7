"""Do the live brokers' disks have room for the replicas that a rack outage adds? A full disk takes its broker down, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from durability.apply import preflight
from durability.apply.cluster import Cluster, Reading, Replicas, TopicPartition
from durability.apply.outage import HOLD, Decision, target
from durability.apply.partitions import listed
from durability.remedies.change.model import Move


@dataclass(frozen=True)
class _Disks:
    """The disks of brokers, read once for many looks at them."""

    bytes: Mapping[tuple[int, TopicPartition], int]
    usable: Mapping[int, int | None]

    def sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[tuple[int, TopicPartition], int]:
        return self.bytes

    def usable_bytes(self, brokers: Collection[int]) -> Mapping[int, int | None]:
        return {broker: self.usable.get(broker) for broker in brokers}


def fitting(
    cluster: Cluster, reading: Reading, made: Sequence[Decision], earlier: Sequence[Move]
) -> tuple[list[Decision], list[Move]]:
    """The decisions, without the moves of topics that don't fit together with earlier ones, and the moves that are left.

    earlier: moves that are planned, but don't run. Moves that run count, whoever began them.
    """
    moves = {decision.topic: _moves(decision, reading) for decision in made if decision.moves}
    if not moves:
        return [*made], []
    planned = {(move.topic, move.partition) for of_topic in moves.values() for move in of_topic}
    begun = [*earlier, *(move for move in _running(reading) if (move.topic, move.partition) not in planned)]
    together = [move for of_topic in moves.values() for move in of_topic]
    brokers = sorted({b for move in (*begun, *together) for b in (*move.before, *move.after)} & reading.live)
    topics = {move.topic for move in (*begun, *together)}
    disks = _Disks(cluster.sizes(brokers, topics), cluster.usable_bytes(brokers))
    all_fit = not any(preflight.disks([*begun, *together], reading, disks))
    found, kept = [], list[Move]()
    for decision in made:
        of_topic = moves.get(decision.topic, [])
        problems = [] if all_fit else [*preflight.disks([*begun, *kept, *of_topic], reading, disks)]
        if of_topic and problems:
            found.append(replace(decision, act=HOLD, moves={}, why=listed(problems)))
            continue
        kept += of_topic
        found.append(replace(decision, bytes=sum(_copied(move, disks) for move in of_topic)))
    return found, kept


def _moves(decision: Decision, reading: Reading) -> list[Move]:
    topic = decision.topic
    return [
        Move(topic, number, _former(reading.partitions[TopicPartition(topic, number)]), after)
        for number, after in decision.moves.items()
    ]


def _running(reading: Reading) -> list[Move]:
    return [Move(*name, _former(partition), target(partition)) for name, partition in reading.moving.items()]


def _former(partition: Replicas) -> tuple[int, ...]:
    """The replicas before a running move: those that it adds aren't complete."""
    return tuple(broker for broker in partition.replicas if broker not in partition.adding)


def _copied(move: Move, disks: _Disks) -> int:
    name = TopicPartition(move.topic, move.partition)
    return max((disks.bytes.get((broker, name), 0) for broker in move.before), default=0) * len(move.added)
