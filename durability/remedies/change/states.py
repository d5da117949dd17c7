"""Plays the steps of a plan on a document, and finds partitions that a step would harm on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from durability.remedies import effects
from durability.remedies.change.model import MIN_ISR, Document, Harm, Move, Setting, Step
from durability.remedies.change.settings import recorded_min_isr, unread
from durability.remedies.cluster import ClusterFacts
from durability.remedies.safety import CAPPED
from durability.topology.unreadable import Unreadable

SHOWN = 20


class _Cluster:
    """A document that steps change, with what it takes to find a topic and its minimum."""

    def __init__(self, document: Document, facts: ClusterFacts):
        self.document = document
        self.topics = {topic["name"]: topic for topic in document["topics"]}
        self.live = effects.live(document)
        self.capped = facts.newest is None or facts.newest >= CAPPED
        self.unreadable = Unreadable(document)
        self.unread = unread(document, MIN_ISR)
        self.defaults = {broker["id"]: self._default(broker, index) for index, broker in enumerate(document["brokers"])}
        self.recorded = recorded_min_isr(document)
        self.inherited: dict[tuple[str, str], tuple[str, str]] = {}

    def _default(self, broker: Document, index: int) -> str | None:
        """The broker's min.insync.replicas; None if unknown: DescribeConfigs states defaults too (docs/topology.md)."""
        configs = broker.get("configs")
        if configs is None or self.unreadable.covers("brokers", index, "configs", MIN_ISR):
            return None
        described = "default" in (broker.get("config_sources") or {}).values()
        value: str | None = configs.get(MIN_ISR, None if described else "1")
        return value

    def minimum(self, topic: Document, leader: int | None) -> int | None:
        """The configured min.insync.replicas of a partition of the topic with this leader; None if unknown."""
        if topic["name"] in self.unread:
            return None
        stated = topic["configs"].get(MIN_ISR)
        if stated is None or inherits(topic):
            of_brokers = {self.defaults.get(leader)} if leader is not None else {*self.defaults.values()}
            values = self.recorded or of_brokers
            found = next(iter(values)) if len(values) == 1 else None
            # A topic's answer is that of one broker: the leader may have another value of its own.
            stated = stated if found is None else found
        return int(stated) if stated is not None and stated.isdecimal() else None

    def effective(self, topic: Document, partition: Mapping[str, Any]) -> int | None:
        """What brokers enforce for the partition; None if unknown. Before 3.7 that is the configured value, also above the number
        of replicas."""
        least = self.minimum(topic, partition["leader"])
        return min(least, len(partition["replicas"] or ())) if self.capped and least is not None else least

    def under(self, topic: Document, numbers: Collection[int] | None = None) -> set[int]:
        """The partitions that have a leader and reject acks=all writes, or have none. Replicas being added count.

        With an unknown minimum, writes may be rejected while replicas are added.
        """
        found = set()
        for partition in topic["partitions"]:
            if numbers is not None and partition["partition"] not in numbers:
                continue
            effective = self.effective(topic, partition)
            rejects = bool(partition.get("adding")) if effective is None else len(partition["isr"] or ()) < effective
            if partition["leader"] is None or rejects:
                found.add(partition["partition"])
        return found

    def set(self, setting: Setting) -> None:
        """Changes a setting. A deleted override of a topic shows the inherited value again, if that was known."""
        if setting.topic is None:
            effects.configure(self.document, setting.command)
            return
        topic = self.topics[setting.topic]
        configs, sources = topic.setdefault("configs", {}), topic.get("config_sources") or {}
        key = (setting.topic, setting.name)
        if setting.name in configs and sources.get(setting.name, "topic") != "topic":
            self.inherited.setdefault(key, (configs[setting.name], sources[setting.name]))
        effects.set_on(topic, [(setting.name, setting.value)])
        if setting.name == MIN_ISR:
            self.unread.discard(setting.topic)
        if setting.value is None and key in self.inherited:
            configs[setting.name], sources[setting.name] = self.inherited[key]


def inherits(topic: Document) -> bool:
    """Has each broker its own min.insync.replicas for the topic? An override and a cluster-wide value apply on each broker."""
    source = (topic.get("config_sources") or {}).get(MIN_ISR, "topic")
    return MIN_ISR not in (topic.get("configs") or {}) or source not in ("topic", "cluster-default")


def of_brokers(document: Document, facts: ClusterFacts) -> dict[int, str | None]:
    """The min.insync.replicas of each broker, None if unknown; empty if they have the same, or one is recorded cluster-wide."""
    cluster = _Cluster(document, facts)
    found = {broker: cluster.defaults[broker] for broker in cluster.live}
    return found if len({*found.values()}) > 1 and not cluster.recorded else {}


State = tuple[frozenset[int], frozenset[int], int | None]
"""Replicas, ISR and effective min.insync.replicas, None if unknown."""


def partitions(document: Document, facts: ClusterFacts) -> dict[State, tuple[int, tuple[str, int]]]:
    """By state, how many partitions of the document are in it, and one of them."""
    cluster = _Cluster(document, facts)
    found: dict[State, tuple[int, tuple[str, int]]] = {}
    for topic in document["topics"]:
        for p in topic["partitions"]:
            state = (frozenset(p["replicas"] or ()), frozenset(p["isr"] or ()), cluster.effective(topic, p))
            count, example = found.get(state, (0, (topic["name"], p["partition"])))
            found[state] = (count + 1, example)
    return found


def unknown_offline(document: Document, facts: ClusterFacts) -> set[str]:
    """The topics with a partition that has no leader and whose min.insync.replicas is unknown."""
    cluster = _Cluster(document, facts)
    return {
        topic["name"]
        for topic in document["topics"]
        if any(p["leader"] is None and cluster.minimum(topic, None) is None for p in topic["partitions"])
    }


def play(document: Document, steps: Iterable[Step], facts: ClusterFacts) -> list[Harm]:
    """Changes the document as the steps do. Returns what they would harm, by step, topic and partition.

    Harm is a partition that is offline or under its effective min.insync.replicas after a step, or while it runs, and wasn't
    before it.
    """
    cluster = _Cluster(document, facts)
    harms: list[Harm] = []
    for step in steps:
        changed = _by_topic(step.moves)
        before = {name: cluster.under(cluster.topics[name]) for name in step.topics}
        seen: dict[str, set[int]] = {}
        for finished in (False, True) if step.moves else (True,):
            for name, moves in changed.items():
                effects.reassign(cluster.topics[name], moves, cluster.live, finished=finished)
            for setting in step.settings:
                cluster.set(setting)
            for topic, number in step.elections:
                effects.elect(cluster.topics[topic], number, cluster.live)
            for name in step.topics:
                seen.setdefault(name, set()).update(cluster.under(cluster.topics[name]))
        harms += _harms(step, before, seen)
    return harms


def _by_topic(moves: Iterable[Move]) -> dict[str, list[tuple[int, Sequence[int]]]]:
    found: defaultdict[str, list[tuple[int, Sequence[int]]]] = defaultdict(list)
    for move in moves:
        found[move.topic].append((move.partition, move.after))
    return found


def _harms(step: Step, before: Mapping[str, set[int]], after: Mapping[str, set[int]]) -> list[Harm]:
    return sorted(Harm(step.id, name, number) for name, numbers in after.items() for number in numbers - before[name])


def worded(harms: Iterable[Harm]) -> list[str]:
    """The harms as sentences, at most SHOWN of a step."""
    by_step = groupby(harms, key=lambda harm: harm.step)
    return [str(harm) for _, of_step in by_step for harm in islice(of_step, SHOWN)]


def not_preferred(document: Document, moves: Iterable[Move]) -> tuple[tuple[str, int], ...]:
    """The moved partitions that aren't led by their preferred replica, though it is up and in sync."""
    live = effects.live(document)
    moved = {(move.topic, move.partition) for move in moves}
    found: list[tuple[str, int]] = []
    for topic in document["topics"]:
        for partition in topic["partitions"]:
            name = (topic["name"], partition["partition"])
            if name in moved and _electable(partition, live):
                found.append(name)
    return tuple(found)


def _electable(partition: Mapping[str, Any], live: Collection[int]) -> bool:
    preferred = partition["replicas"][0]
    return partition["leader"] != preferred and preferred in live and preferred in (partition["isr"] or ())
