"""The brokers of a problem as arrays, and their load while a plan is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from durability.remedies.moves.model import Name, Partition, Problem

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Cluster:
    """The brokers of a problem, each with a place from 0 to N - 1 in every array.

    A broker that only a partition names is down and has no rack.

    ids: broker ids by place. racks: numbers of racks, -1 for none. number_of_racks: of all brokers, down or not.
    may_get: can the broker get a new replica, apart from its room? with_room: and is there room for an empty one?
    room: the bytes that it can get; infinite if unknown. largest: the bytes of the largest replica that it can get.
    """

    def __init__(self, problem: Problem):
        known = {b.id: b for b in problem.brokers}
        named = {b for p in problem.partitions for b in p.replicas or ()}
        self.ids = sorted(known.keys() | named)
        self.place = {broker: place for place, broker in enumerate(self.ids)}
        names = sorted({b.rack for b in known.values() if b.rack is not None})
        numbers = {rack: number for number, rack in enumerate(names)}
        brokers = [known.get(id) for id in self.ids]
        self.number_of_racks = len(names)
        self.racks = np.array([numbers[b.rack] if b and b.rack is not None else -1 for b in brokers], np.int64)
        self.rack = self.racks.tolist()
        self.live = np.array([b is not None and b.live is True for b in brokers], bool)
        avoided = np.array([id in problem.avoid for id in self.ids], bool)
        self.may_get = self.live & ~avoided
        self.room, self.largest = np.full(len(brokers), inf), np.full(len(brokers), inf)
        for place, broker in enumerate(brokers):
            if broker is not None and broker.usable_bytes is not None:
                self.room[place] = _without_margin(broker.usable_bytes, broker.total_bytes, problem.margin_disk)
            if broker is not None:
                rooms = [_without_margin(usable, total, problem.margin_disk) for usable, total in broker.log_dirs]
                self.largest[place] = min(rooms, default=inf)
            if broker is not None and not broker.room:
                self.room[place] = 0
        self.with_room = self.may_get & (self.room > 0)

    def free(self, brokers: NDArray[np.bool_], unracked: bool) -> list[int]:
        """How many of these brokers each rack has; the last number is of those without a rack, 0 unless `unracked`."""
        counts = (
            np.bincount(self.racks[brokers], minlength=self.number_of_racks) if not (self.racks < 0).any() else None
        )
        if counts is None:
            counts = np.bincount(self.racks[brokers] + 1, minlength=self.number_of_racks + 1)
            return [*counts[1:].tolist(), int(counts[0]) if unracked else 0]
        return [*counts.tolist(), 0]


def _without_margin(usable: int, total: int | None, margin: float) -> float:
    """The bytes that a disk can get. One of unknown size has at least its usable bytes."""
    return usable - margin * (usable if total is None else total)


@dataclass(slots=True)
class Moving:
    """A partition of a topic to change.

    name: its topic and number. replicas: places of brokers. rule: the number of its rule. bytes: 0 if unknown.
    isr: places; None if unknown.
    dropped, added: the choice; None before it.
    """

    name: Name
    partition: Partition
    replicas: tuple[int, ...]
    rule: int
    bytes: int
    isr: frozenset[int] | None
    dropped: tuple[int, ...] | None = None
    added: tuple[int, ...] = ()

    def after(self) -> tuple[int, ...]:
        """The replicas after the plan: those that stay, in their order, then the new ones."""
        if not self.dropped:
            return self.replicas + self.added
        dropped = self.dropped
        return (*[b for b in self.replicas if b not in dropped], *self.added)


def _powers(loads: Floats) -> Floats:
    """Eighth powers."""
    squares = loads * loads
    squares *= squares
    squares *= squares
    return squares


class Growth(NamedTuple):
    """How many more replicas all partitions will have, and which brokers may get these.

    by_rack: the fewest by which racks grow.
    """

    replicas: int
    receivers: NDArray[np.bool_]
    by_rack: Mapping[int, int]


class Loads:
    """The load of brokers: replicas and bytes. Each counts in parts of its mean, so that both can be added.

    The sum of squares of all loads is the measure of a plan. If each new replica could be on any of a set of brokers, a plan
    with the least sum of squares also has the least most loaded broker (Fujishige, "Lexicographically optimal base of a
    polymatroid", 1980).

    count, bytes: by place. room: bytes that can still arrive. allowed: the most replicas, as a multiple of the fair share.
    limit: the same, or more if racks leave no other choice.
    """

    def __init__(self, cluster: Cluster, partitions: Iterable[Partition], growth: Growth, times: float):
        """times: the limit, as a multiple of the fair share."""
        place, brokers = cluster.place, len(cluster.ids)
        held = [(place[b], p.bytes or 0) for p in partitions for b in p.replicas or ()]
        places = np.array([b for b, _ in held], np.int64)
        self.count = np.bincount(places, minlength=brokers).astype(np.int64)
        self.bytes: Floats = np.bincount(places, [n for _, n in held], brokers).astype(np.float64)
        self.before = self.count.copy(), self.bytes.copy()
        self.room = cluster.room.copy()
        self._receivers, self._times = growth.receivers, times
        limit, _ = self._limit(growth.receivers, growth.replicas, times)
        self.allowed = np.maximum(self.count, limit)
        self.limit = self.allowed.copy()
        for rack, replicas in growth.by_rack.items():
            of_rack = cluster.with_room & (cluster.racks == rack)
            more, least = self._limit(of_rack, replicas, times)
            if least > limit:
                self.limit[of_rack] = np.maximum(self.limit[of_rack], more)
        self.of_replica = brokers / max(1, int(self.count.sum()) + growth.replicas)
        self.of_byte = brokers / max(1.0, float(self.bytes.sum()))
        self._sharp = False
        # By broker: what one more replica adds beside its bytes, and the measure of the bytes.
        self._replica_cost = self.count * np.float64(self.of_replica**2)
        self._byte_cost = self.bytes * self.of_byte**2
        self.closed = np.where(cluster.with_room, 0.0, inf)
        self.gate = self.closed.copy()
        for b in range(brokers):
            self._check(b)

    def _limit(self, brokers: NDArray[np.bool_], more: int, times: float) -> tuple[int, int]:
        """The limit of brokers that get so many more replicas together, and the fair share: whole numbers."""
        fair = (int(self.count[brokers].sum()) + more) / max(1, int(brokers.sum()))
        return max(floor(times * fair), ceil(fair)), ceil(fair)

    def allow(self) -> None:
        """Set the limit by the fair share of the replicas as they are placed now.

        Until now, replicas of topics that were left out since are part of it, and those that leave brokers which get none aren't.
        """
        raised = np.where(self.limit > self.allowed, self.limit, 0)
        limit, _ = self._limit(self._receivers, 0, self._times)
        self.allowed = np.maximum(self.before[0], limit)
        self.limit = np.maximum(self.allowed, raised)
        for b in range(len(self.limit)):
            self._check(b)

    def are_too_many(self) -> bool:
        """Has a broker more replicas than its limit?"""
        return bool((self.count > self.limit).any())

    def _check(self, broker: int) -> None:
        at_limit = self.count.item(broker) >= self.limit.item(broker)
        self.gate[broker] = inf if at_limit else self.closed.item(broker)

    def sharpen(self, count: float, bytes: float) -> None:
        """From now on, the measure is the sum of eighth powers of loads in parts of these: the most loaded brokers decide."""
        self._sharp = True
        self.of_replica, self.of_byte = 1 / max(count, 1), 1 / max(bytes, 1)
        loads = self.count * np.float64(self.of_replica)
        self._replica_cost = _powers(loads + self.of_replica) - _powers(loads)
        self._byte_cost = _powers(self.bytes * self.of_byte)

    def cost(self, moving: Moving) -> Floats:
        """By broker, how much one more replica of the partition adds to the measure, without a constant."""
        if not self._sharp:
            return self._byte_cost * float(moving.bytes) + self._replica_cost
        if not moving.bytes:
            return self._replica_cost.copy()
        more = _powers((self.bytes + moving.bytes) * self.of_byte)
        more -= self._byte_cost
        more += self._replica_cost
        return more

    def gain(self, moving: Moving, broker: int) -> float:
        """How much the measure falls if the partition's replica goes from the broker, without the same constant."""
        if not self._sharp:
            return self._byte_cost.item(broker) * moving.bytes + self._replica_cost.item(broker)
        now, held = self.count.item(broker) * self.of_replica, self.bytes.item(broker) * self.of_byte
        less = now**8 - (now - self.of_replica) ** 8
        return less + held**8 - (held - moving.bytes * self.of_byte) ** 8

    def scale(self, moving: Moving) -> float:
        """About what a replica of the partition costs on a broker with the mean load; once sharpened, with the bound's load."""
        return (self.of_replica + moving.bytes * self.of_byte) * (8 if self._sharp else 1)

    def apply(self, moving: Moving, sign: int = 1) -> None:
        """Count the partition's choice, or with -1 take it back. Bytes that leave make no room."""
        for broker in moving.added:
            self.room[broker] -= sign * moving.bytes
            self._add(broker, sign, moving.bytes)
        for broker in moving.dropped or ():
            self._add(broker, -sign, moving.bytes)

    def _add(self, broker: int, replicas: int, bytes: int) -> None:
        # Python's numbers: a single number of an array is slower.
        count = self.count[broker] = self.count.item(broker) + replicas
        size = self.bytes[broker] = self.bytes.item(broker) + replicas * bytes
        if self._sharp:
            now = count * self.of_replica
            self._replica_cost[broker] = (now + self.of_replica) ** 8 - now**8
            self._byte_cost[broker] = (size * self.of_byte) ** 8
        else:
            self._replica_cost[broker] = count * self.of_replica**2
            self._byte_cost[broker] = size * self.of_byte**2
        self._check(broker)

    def blocks(self, broker: int, moving: Moving) -> tuple[bool, float]:
        """Is the broker at its limit? And how many bytes does it lack for the partition?"""
        return bool(self.count[broker] >= self.limit[broker]), max(0.0, float(moving.bytes - self.room[broker]))

    @property
    def most_room(self) -> float:
        """The bytes of the largest replica that a broker can get, whatever its log dirs."""
        return float(self.room[np.isfinite(self.closed)].max(initial=0.0))

    @contextmanager
    def closing(self, broker: int) -> Iterator[None]:
        """Meanwhile the broker gets no replicas."""
        self.gate[broker], before = inf, self.closed[broker]
        self.closed[broker] = inf
        try:
            yield
        finally:
            self.closed[broker] = before
            self._check(broker)

    def hot(self, count: float, bytes: float) -> set[int]:
        """The brokers with more replicas or bytes than this."""
        return set(np.flatnonzero((self.count > count) | (self.bytes > bytes)).tolist())

    def is_hot(self, broker: int, count: float, bytes: float) -> bool:
        """Has the broker more replicas or bytes than this?"""
        return self.count.item(broker) > count or self.bytes.item(broker) > bytes

    def above(self, count: float, bytes: float) -> float:
        """The load of the most loaded broker, replicas and bytes added: each in parts of its bound."""
        return float(self.count.max(initial=0) / max(count, 1) + self.bytes.max(initial=0) / max(bytes, 1))

    def raise_limit(self, brokers: Iterable[int]) -> None:
        """Let brokers have one replica more than now, where racks leave no other choice."""
        for broker in brokers:
            self.limit[broker] = max(self.limit[broker], self.count[broker] + 1)
            self._check(broker)
