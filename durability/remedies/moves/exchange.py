"""Lowers the most loaded broker where no single partition can: a few partitions change their choices together.

One leaves the broker, the next makes way for it, and so on. Each has as many new replicas as before. Few large partitions need
this: for each of them alone, every other broker may be too full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import comb, inf

import numpy as np

from durability.remedies.moves.choose import Choice, Chooser
from durability.remedies.moves.cluster import Moving

DEPTHS = range(1, 6)
"""How many partitions change together."""
STEPS, SMALLEST = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 0), (0,)
"""How far the most loaded broker is lowered at once: parts of what it is above the bound. 0 is any amount."""
TRIES = 50_000
"""How many choices a plan tries with each of STEPS and SMALLEST, for bytes and for replicas; twice as many for the limit."""
SORTED = 20
"""To sort so many partitions takes as long as to try a choice."""
WIDE = 300
"""If a partition has more choices than this, only those are tried that change one replica."""
LARGE = 60
"""Of the partitions on a broker, so many are tried: first the smallest of those that are large enough."""
EMPTIEST = 10
"""New replicas are tried on so many brokers of each rack, the least loaded."""


class Exchange:
    """The load of brokers while partitions change their choices.

    A broker has too much if its replicas or bytes are above its caps, or if more bytes arrive than it has room for.
    """

    def __init__(self, placed: Sequence[Moving], chooser: Chooser):
        self.chooser, self.cluster = chooser, chooser.cluster
        loads = chooser.loads
        self._count: list[int] = loads.count.tolist()
        self._bytes: list[float] = loads.bytes.tolist()
        # A disk that is too full already is no reason to stop others from leaving it.
        self._room = [max(0.0, room) for room in loads.room.tolist()]
        self._able: list[int] = np.flatnonzero(self.cluster.with_room).tolist()
        self._largest: list[float] = self.cluster.largest.tolist()
        self._limit: list[int] = loads.limit.tolist()
        self._most: list[int] = []
        self._most_bytes: list[float] = []
        self._on: list[dict[int, Moving]] = [{} for _ in self.cluster.ids]
        for m in placed:
            for b in _movable(m):
                self._on[b][id(m)] = m
        self._keeps: dict[tuple[int, tuple[int, ...]], bool] = {}
        self._left = 0

    def keep_limit(self) -> None:
        """Take replicas off brokers that have more than the limit allows, where partitions can change so; whatever the bytes."""
        self._left = 2 * TRIES
        allowed: list[int] = self.chooser.loads.allowed.tolist()
        self._most_bytes = [inf] * len(allowed)
        for broker, most in enumerate(allowed):
            self._most = [max(n, limit) for n, limit in zip(self._count, allowed, strict=True)]
            while self._count[broker] > most:
                self._most[broker] = self._count[broker] - 1
                if not self._relieve(broker):
                    break
        # No broker gets above the limit again.
        self._limit = [max(n, limit) for n, limit in zip(self._count, allowed, strict=True)]

    def lower(self, bound: float, *, bytes: bool) -> None:
        """Lower the most loaded broker towards the bound, as far as a limited search can. Neither load's maximum grows.

        bytes: is the load in bytes, or in replicas?
        """
        load: Sequence[float] = self._bytes if bytes else self._count
        # Large steps may leave no tries for the changes of several partitions that gain little.
        for parts in (STEPS, SMALLEST):
            self._left = TRIES
            while (top := max(load, default=0)) > bound and self._left > 0:
                steps = sorted({max(1.0, (top - bound) * part) for part in parts}, reverse=True)
                if not any(self._lowered(load, max(bound, top - step), depth) for depth in DEPTHS for step in steps):
                    break

    def _lowered(self, load: Sequence[float], less: float, depth: int) -> bool:
        """Lower the most loaded broker to `less`, by changing at most `depth` partitions. False if that fails."""
        most, most_bytes = max(self._count), max(self._bytes)
        self._most = [max(n, min(limit, most)) for n, limit in zip(self._count, self._limit, strict=True)]
        self._most_bytes = [most_bytes] * len(load)
        broker = max(range(len(load)), key=load.__getitem__)
        for b, now in enumerate(load):
            # Other brokers with as much wait for their turn.
            if b == broker or now <= less:
                if load is self._bytes:
                    self._most_bytes[b] = less
                else:
                    self._most[b] = min(self._most[b], int(less))
        return self._relieved([broker], depth, frozenset())

    def _relieve(self, broker: int) -> bool:
        """Change as few partitions as possible so that the broker no longer has too much. False if that fails."""
        return any(self._relieved([broker], depth, frozenset()) for depth in DEPTHS)

    def _too_much(self, broker: int) -> bool:
        return (
            self._count[broker] > self._most[broker]
            or self._bytes[broker] > self._most_bytes[broker]
            or self._room[broker] < 0
        )

    def _relieved(self, over: list[int], depth: int, changed: frozenset[int]) -> bool:
        """Change at most `depth` partitions so that none of these brokers has too much, nor any other. False if that fails.

        changed: the partitions that have changed already.
        """
        if not over:
            return True
        if len(over) > depth:
            return False
        broker = over[0]
        for m in self._on_broker(broker):
            if self._left <= 0:
                return False
            if id(m) in changed:
                continue
            before = Choice(m.dropped or (), m.added, 0.0)
            for choice in self._others(m, broker, depth):
                touched = self._change(m, choice)
                still = [b for b in dict.fromkeys((*over, *touched)) if self._too_much(b)]
                if self._relieved(still, depth - 1, changed | {id(m)}):
                    return True
                self._change(m, before)
        return False

    def _on_broker(self, broker: int) -> list[Moving]:
        """The partitions that could leave the broker, at most LARGE."""
        excess = self._bytes[broker] - self._most_bytes[broker]
        there = self._on[broker].values()
        self._left -= len(there) // SORTED
        order = sorted(there, key=lambda m: (m.bytes < excess, m.bytes if m.bytes >= excess else -m.bytes, m.name))
        return order[:LARGE]

    def _others(self, m: Moving, broker: int, depth: int) -> list[Choice]:
        """The other choices of a partition that don't use this broker, those first that load other brokers the least."""
        found: list[tuple[int, float, Choice]] = []
        now, receivers = set(m.after()), self._receivers(m, broker)
        urgency = self._urgency(m, m.dropped or ())
        less_urgent: dict[tuple[int, ...], bool] = {}
        for dropped, added in self._ways(m, broker, receivers):
            stays = [b for b in m.replicas if b not in dropped]
            if dropped not in less_urgent:
                less_urgent[dropped] = self._urgency(m, dropped) < urgency
            if less_urgent[dropped]:
                continue
            self._left -= 1
            if not self._keeps_rule(m.rule, (*stays, *added)):
                continue
            over, excess = 0, 0.0
            for b in (*stays, *added):
                if b not in now:
                    more = self._bytes[b] + m.bytes - self._most_bytes[b]
                    fits = more <= 0 and self._count[b] < self._most[b]
                    over, excess = over + (not fits), excess + max(0.0, more)
            if over < depth:
                found.append((over, excess, Choice(dropped, added, 0.0)))
        found.sort(key=lambda one: one[:2])
        return [choice for _, _, choice in found]

    def _ways(
        self, m: Moving, broker: int, receivers: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """What the partition could drop and add without using this broker; if that is much, only what changes one replica."""
        dropped, added = m.dropped or (), m.added
        if comb(len(m.replicas), len(dropped)) * comb(len(receivers), len(added)) <= WIDE:
            without = [b for b in m.replicas if b != broker]
            must = (broker,) if broker in m.replicas else ()
            for some in combinations(without, len(dropped) - len(must)):
                for new in combinations(receivers, len(added)):
                    yield (*must, *some), new
        elif broker in added:
            others = tuple(b for b in added if b != broker)
            yield from ((dropped, (*others, new)) for new in receivers if new not in others)
        else:
            yield from ((tuple(broker if b == back else b for b in dropped), added) for back in dropped)

    def _receivers(self, m: Moving, broker: int) -> list[int]:
        """The brokers that can get a new replica of the partition, the least loaded of each rack."""
        by_rack: dict[int, list[int]] = {}
        for b in self._able:
            if b != broker and b not in m.replicas and m.bytes <= self._largest[b]:
                by_rack.setdefault(self.cluster.rack[b], []).append(b)
        if self.chooser.rules[m.rule].by_rack:
            by_rack.pop(-1, None)
        return [b for of in by_rack.values() for b in sorted(of, key=self._bytes.__getitem__)[:EMPTIEST]]

    def _keeps_rule(self, rule: int, replicas: Iterable[int]) -> bool:
        racks = tuple(sorted([self.cluster.rack[b] for b in replicas]))
        key = rule, racks
        if key not in self._keeps:
            counts = [0] * (self.cluster.number_of_racks + 1)
            for rack in racks:
                counts[rack] += 1
            self._keeps[key] = self.chooser.rules[rule].kept_by(counts)
        return self._keeps[key]

    def _urgency(self, m: Moving, dropped: Iterable[int]) -> tuple[int, int]:
        """How many of these replicas are on brokers that are down, and how many of the others are out of sync."""
        down = [b for b in dropped if not self.cluster.live[b]]
        lagging = [b for b in dropped if self.cluster.live[b] and m.isr is not None and b not in m.isr]
        return len(down), len(lagging)

    def _change(self, m: Moving, choice: Choice) -> list[int]:
        """Make this the partition's choice. Returns the brokers that get a replica by that."""
        before = m.after()
        self._count_in(m, -1)
        m.dropped, m.added = choice.dropped, choice.added
        self._count_in(m, 1)
        return [b for b in m.after() if b not in before]

    def _count_in(self, m: Moving, sign: int) -> None:
        """Count the partition's choice, or with -1 take it back."""
        for b in m.after():
            self._count[b] += sign
            self._bytes[b] += sign * m.bytes
        for b in m.added:
            self._room[b] -= sign * m.bytes
        for b in _movable(m):
            if sign > 0:
                self._on[b][id(m)] = m
            else:
                del self._on[b][id(m)]


def _movable(m: Moving) -> tuple[int, ...]:
    """The brokers that the partition could leave."""
    return m.after() if m.dropped else m.added
