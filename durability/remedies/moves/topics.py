"""Which partitions a plan may move, and why topics are left out of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from durability.remedies.moves.bounds import Bounds
from durability.remedies.moves.cluster import Cluster, Moving
from durability.remedies.moves.model import Code, LeftOut, Name, Partition, Problem, Target
from durability.remedies.moves.rules import Rule, options, rule_of


@dataclass
class Asked:
    """The topics to change.

    rules: each once. moving: all partitions of topics whose target and replicas are known, by topic and number. now: their
    replicas as places. left_out: the other topics.
    """

    rules: list[Rule] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)
    now: dict[Name, tuple[int, ...]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)


def read(problem: Problem, cluster: Cluster) -> Asked:
    """The topics that have a target."""
    asked = Asked()
    numbers: dict[Rule, int] = {}
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for partition in problem.partitions:
        if partition.topic in problem.targets:
            by_topic[partition.topic].append(partition)
    for topic, target in sorted(problem.targets.items()):
        partitions = sorted(by_topic[topic], key=lambda p: p.partition)
        unread = next((p for p in partitions if not p.replicas), None)
        if _unknown(target):
            asked.left_out.append(LeftOut(topic, "unknown-target"))
        elif unread is not None:
            asked.left_out.append(LeftOut(topic, "unknown-replicas", unread.partition))
        else:
            rule = rule_of(target, cluster.number_of_racks)
            number = numbers.setdefault(rule, len(numbers))
            asked.moving += [_moving(partition, number, cluster) for partition in partitions]
    asked.rules = list(numbers)
    asked.now = {m.name: m.replicas for m in asked.moving}
    return asked


def _unknown(target: Target) -> bool:
    return target.replication_factor is None or (target.survives_rack and target.min_isr is None)


def _moving(partition: Partition, rule: int, cluster: Cluster) -> Moving:
    place = cluster.place
    isr = None if partition.isr is None else frozenset([place[b] for b in partition.isr if b in place])
    replicas = tuple([place[b] for b in partition.replicas or ()])
    return Moving(partition.name, partition, replicas, rule, partition.bytes or 0, isr)


def possible(asked: Asked, bounds: Bounds, cluster: Cluster) -> tuple[list[Moving], list[LeftOut]]:
    """The partitions that must change, of topics that can reach their target apart from room; and the topics left out."""
    failed: dict[str, LeftOut] = {}
    changing: list[Moving] = []
    for moving in asked.moving:
        topic = moving.partition.topic
        if topic in failed:
            continue
        ways = bounds.options(moving)
        if ways is None:
            failed[topic] = LeftOut(topic, _reason(moving, asked.rules, cluster), moving.partition.partition)
        elif ways.new or ways.drops != ((),):
            changing.append(moving)
    return [m for m in changing if m.partition.topic not in failed], [*asked.left_out, *failed.values()]


def _reason(moving: Moving, rules: Sequence[Rule], cluster: Cluster) -> Code:
    """Why the brokers that may get replicas don't suffice for the partition."""
    rule = rules[moving.rule]
    with_avoided = cluster.live.copy()
    with_avoided[list(moving.replicas)] = False
    now = tuple(sorted(cluster.rack[b] for b in moving.replicas))
    if options(rule, now, cluster.free(with_avoided, not rule.by_rack)) is not None:
        return "avoided"
    if int(with_avoided.sum()) + len(moving.replicas) < rule.size(len(moving.replicas)):
        return "few-brokers"
    return "few-racks"
