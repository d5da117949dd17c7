"""A cluster in memory that can be changed, and a lake in memory that keeps the record. Either can be killed at any call.

The cluster copies replicas a little with each reading. It behaves as Kafka 4.3 in KRaft mode does: a running reassignment has
the target, then the replicas to remove, sorted by id; a cancellation leaves the latter last and is refused if nobody else is in
sync; a changed min.insync.replicas wipes the topic's ELR. With `eager`, a reassignment ends as in Kafka 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pyarrow as pa
from pyiceberg.expressions import EqualTo

from durability.apply.cluster import Reading, Replicas, Resource, ResourceType, TopicPartition
from durability.errors import Unreachable

MIN_ISR = "min.insync.replicas"


class Killed(BaseException):
    """The process is gone: nothing that it does afterwards has an effect."""


@dataclass
class Life:
    """Counts calls, and ends at one of them. dies_at: its number, from 0. after: once it had its effect, or before?

    error: is raised there instead, and life goes on.
    """

    dies_at: int | None = None
    after: bool = False
    error: Exception | None = None
    calls: int = 0
    dead: bool = False

    def live_through(self, call: Callable):
        if self.dead:
            raise Killed
        last = self.calls == self.dies_at
        self.calls += 1
        self.dead = last and self.error is None
        result = call() if self.after or not last else None
        if last:
            raise self.error or Killed
        return result


class Mortal:
    """An object whose methods count as calls of a life."""

    def __init__(self, inner, life: Life):
        self._inner, self._life = inner, life

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **more: self._life.live_through(lambda: found(*args, **more))


class MemoryLake:
    """The part of a lake that the record uses."""

    def __init__(self):
        self.rows: list[dict] = []

    def has(self, table) -> bool:
        return True

    def append(self, table, added: pa.Table) -> None:
        self.rows += added.cast(table.arrow).to_pylist()

    def scan(self, table, where, columns=None):
        wanted = equal(where)
        rows = [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]
        return SimpleNamespace(to_pylist=lambda: [{name: row[name] for name in columns or row} for row in rows])

    def states(self) -> dict[str, str]:
        """The newest state by change, without rows that change nothing."""
        return {row["change"]: row["state"] for row in self.rows if row["kind"] not in ("claim", "begin", "stop")}


def equal(where) -> dict[str, str]:
    """The values that a condition asks for, by column."""
    if hasattr(where, "left"):
        return equal(where.left) | equal(where.right)
    return {where.term.name: where.literal.value} if isinstance(where, EqualTo) else {}


@dataclass
class FakeCluster:
    """partitions: their state. bytes: of each partition. copied: bytes per reading of a replica that is added. written: bytes
    that each partition gets per reading.

    eager: does a reassignment end as soon as the replicas that it adds are in sync, as in Kafka 3.6?
    silent: brokers that are up and don't state their settings. refuses: errors by method and then by resource or partition.
    lag: how many calls of `overrides` still show old settings after a change, and how old the replicas of `read` are, in calls;
    which partitions move is always known. topic_ids, registered: as in `Reading`, of all topics. before_call: runs before each
    call, with its number and name. made: changes with an effect, as text.
    """

    partitions: dict[TopicPartition, Replicas]
    settings: dict[Resource, dict[str, str]]
    live: frozenset[int]
    cluster_id: str | None = "kafka"
    led: bool = True
    bytes: int = 100
    copied: int = 60
    written: int = 0
    usable: dict[int, int | None] = field(default_factory=dict)
    eager: bool = False
    silent: frozenset[int] = frozenset()
    refuses: dict[str, dict] = field(default_factory=dict)
    lag: int = 0
    topic_ids: dict[str, str] = field(default_factory=dict)
    registered: frozenset[int] | None = None
    before_call: Callable[[int, str], None] = lambda number, name: None
    made: list[str] = field(default_factory=list)
    _calls: int = 0
    _on_disk: dict[tuple[int, TopicPartition], int] = field(default_factory=dict)
    _states: list[dict[TopicPartition, Replicas]] = field(default_factory=list)
    _shown: list[dict[Resource, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self):
        for name, now in self.partitions.items():
            self._on_disk |= {(broker, name): self.bytes for broker in now.replicas}

    def _called(self, name: str) -> None:
        self.before_call(self._calls, name)
        self._calls += 1

    # Readings

    def read(self, topics) -> Reading:
        self._called("read")
        self._progress()
        self._states.append(dict(self.partitions))
        shown = self._states[-1 - min(self.lag, len(self._states) - 1)]
        seen = {
            name: replace(shown.get(name, now), adding=now.adding, removing=now.removing)
            for name, now in self.partitions.items()
        }
        wanted = {name: now for name, now in seen.items() if topics is None or name.topic in topics}
        moving = {n: now for n, now in seen.items() if now.moving}
        ids = dict(self.topic_ids)
        return Reading(self.cluster_id, self.live, self.led, wanted, moving, ids, self.registered)

    def overrides(self, resources, names=None):
        self._called("overrides")
        shown = self._shown.pop(0) if self._shown else self.settings
        topics = {name.topic for name in self.partitions}
        found = {}
        for resource in resources:
            of_broker = resource.type is ResourceType.BROKER
            if of_broker and resource.name and int(resource.name) not in self.live - self.silent:
                raise Unreachable(f"broker {resource.name} doesn't answer")
            if of_broker or resource.name in topics:
                own = shown.get(resource, {})
                found[resource] = {name: value for name, value in own.items() if names is None or name in names}
        return found

    def sizes(self, brokers, topics):
        self._called("sizes")
        up = {*brokers} & self.live
        return {key: size for key, size in self._on_disk.items() if key[0] in up and key[1].topic in topics}

    def usable_bytes(self, brokers):
        self._called("usable_bytes")
        return {broker: self.usable.get(broker, 10**9) if broker in self.live else None for broker in brokers}

    # Changes

    def change(self, changes):
        self._called("change")
        errors = {c.resource: e for c in changes if (e := self._refusal(c.resource))}
        before = {resource: dict(values) for resource, values in self.settings.items()}
        for change in changes:
            if change.resource not in errors:
                self._set(change.resource, change.name, change.value)
        if before != self.settings:
            self._shown = [before] * self.lag
        return errors

    def _refusal(self, resource: Resource) -> str | None:
        """Kafka's error for a change of the resource's settings. Only a broker itself takes its own."""
        if resource.type is ResourceType.TOPIC:
            missing = not any(name.topic == resource.name for name in self.partitions)
            unknown = "UNKNOWN_TOPIC_OR_PARTITION" if missing else None
        else:
            unknown = "BROKER_NOT_AVAILABLE" if resource.name and int(resource.name) not in self.live else None
        return unknown or self.refuses.get("change", {}).get(resource)

    def _set(self, resource: Resource, name: str, value: str | None) -> None:
        own = self.settings.setdefault(resource, {})
        if own.get(name) == value:
            return
        self.made.append(f"{resource.type}:{resource.name} {name}={value}")
        own.pop(name, None) if value is None else own.update({name: value})
        if name == MIN_ISR and resource.type is ResourceType.TOPIC:
            for key, now in self.partitions.items():
                if key.topic == resource.name:
                    assert not now.elr and now.isr and now.leader is not None, f"the change wipes the ELR of {key}"

    def reassign(self, targets, *, same_factor=False):
        self._called("reassign")
        errors = {}
        for name, target in targets.items():
            now = self.partitions[name]
            current = [broker for broker in now.replicas if broker not in now.adding]
            if error := self.refuses.get("reassign", {}).get(name):
                errors[name] = error
            elif target is None:
                if not now.moving:
                    errors[name] = "NO_REASSIGNMENT_IN_PROGRESS"
                elif not {*now.isr} - {*now.adding}:
                    errors[name] = "INVALID_REPLICA_ASSIGNMENT"
                else:
                    self._cancel(name, now, current)
            elif same_factor and len(target) != len(current):
                errors[name] = "INVALID_REPLICATION_FACTOR"
            elif target != [b for b in now.replicas if b not in now.removing] and tuple(target) != now.replicas:
                self._begin(name, now, target)
        return errors

    def _begin(self, name: TopicPartition, now: Replicas, target) -> None:
        assert not now.moving, f"{name} is reassigned while it moves"
        adding = tuple(broker for broker in target if broker not in now.replicas)
        assert {*adding} <= self.live, f"{name} is moved to a broker that is down"
        removing = tuple(sorted({*now.replicas} - {*target}))
        self.made.append(f"move {name.topic}-{name.partition} {list(target)}")
        self.partitions[name] = replace(now, replicas=(*target, *removing), adding=adding, removing=removing)
        self._on_disk |= {(broker, name): 0 for broker in adding}

    def _cancel(self, name: TopicPartition, now: Replicas, current) -> None:
        self.made.append(f"cancel {name.topic}-{name.partition}")
        isr = tuple(broker for broker in now.isr if broker in current)
        leader = now.leader if now.leader in isr else isr[0]
        self.partitions[name] = Replicas(tuple(current), isr, leader, now.elr)
        for broker in now.adding:
            self._on_disk.pop((broker, name), None)

    def elect_preferred(self, partitions):
        self._called("elect_preferred")
        errors = {}
        for name in partitions:
            now = self.partitions[name]
            if now.replicas[0] not in {*now.isr} & self.live:
                errors[name] = "PREFERRED_LEADER_NOT_AVAILABLE"
            elif now.leader != now.replicas[0]:
                self.made.append(f"elect {name.topic}-{name.partition}")
                self.partitions[name] = replace(now, leader=now.replicas[0])
        return errors

    def under_min_isr(self) -> list[TopicPartition]:
        """The partitions that reject acks=all now, or have no leader."""
        default = self.settings.get(Resource(ResourceType.BROKER, ""), {}).get(MIN_ISR, "1")
        found = []
        for name, now in self.partitions.items():
            own = self.settings.get(Resource(ResourceType.TOPIC, name.topic), {})
            if now.leader is None or len(now.isr) < min(int(own.get(MIN_ISR, default)), len(now.replicas)):
                found.append(name)
        return found

    # What happens by itself

    def _progress(self) -> None:
        for name, now in self.partitions.items():
            for broker in now.isr:
                self._on_disk[broker, name] = self._on_disk.get((broker, name), self.bytes) + self.written
            if not now.moving:
                continue
            whole = self._on_disk[now.leader, name] if now.leader is not None else None
            isr = list(now.isr)
            for broker in {*now.adding} & self.live - {*isr} if whole is not None else ():
                self._on_disk[broker, name] = min(whole, self._on_disk.get((broker, name), 0) + self.copied)
                isr += [broker] if self._on_disk[broker, name] == whole else []
            self.partitions[name] = self._ended(name, replace(now, isr=tuple(isr)))

    def _ended(self, name: TopicPartition, now: Replicas) -> Replicas:
        target = [broker for broker in now.replicas if broker not in now.removing]
        waits_for = {*now.adding} if self.eager else {*target}
        if not waits_for <= {*now.isr} or {*now.isr} <= {*now.removing}:
            return now
        for broker in now.removing:
            self._on_disk.pop((broker, name), None)
        leader = now.leader if now.leader in target else target[0]
        return Replicas(tuple(target), tuple(b for b in target if b in now.isr), leader, now.elr)

    def settle(self) -> None:
        """Time passes: all brokers show the newest state."""
        self._shown, self._states = [], []

    def lose(self, broker: int) -> None:
        """The broker is down, and fenced."""
        self.live -= {broker}
        for name, now in self.partitions.items():
            isr = tuple(b for b in now.isr if b != broker)
            leader = now.leader if now.leader != broker else isr[0] if isr else None
            # Without ELRs, Kafka keeps the last member of an ISR.
            self.partitions[name] = replace(now, isr=isr or now.isr, leader=leader)
