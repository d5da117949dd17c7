"""Chooses which replicas of a partition go and where the new ones go, given the load of brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isinf

import numpy as np

from durability.remedies.moves.cluster import Cluster, Floats, Loads, Moving
from durability.remedies.moves.rules import Options, Rule, kept, next_racks, options

DOWN, LAGGING = 1e9, 1e6
"""A replica on a broker that is down goes first, then one out of sync. Both outweigh any load."""
CROWDED = 0.05
"""How much load a new replica may add to avoid a rack that has a replica of the partition: part of the mean."""
FIRST = 1e-9
"""Of equal replicas, the preferred leader stays."""
MORE = 2
"""The most new replicas beyond the fewest, where brokers are at their limit or full."""

Penalty = Callable[[tuple[int, ...], tuple[int, ...]], Floats]
"""Dropped and added racks -> for each broker what the next replica costs there beside load; infinite where it mustn't be."""


@dataclass(frozen=True)
class Choice:
    """Places of the replicas that go and of the new ones. cost: how much the measure of the plan grows."""

    dropped: tuple[int, ...]
    added: tuple[int, ...]
    cost: float


class Chooser:
    """Chooses for one partition at a time. Equal partitions of equal racks share what is possible."""

    def __init__(self, cluster: Cluster, rules: Sequence[Rule], loads: Loads):
        self.cluster, self.rules, self.loads = cluster, rules, loads
        self.free = [cluster.free(cluster.with_room, not rule.by_rack) for rule in rules]
        self._places = Places(cluster, cluster.with_room)
        self._options: dict[tuple[int, tuple[int, ...]], Options | None] = {}
        self._penalties: dict[tuple[object, ...], Floats] = {}
        self._rooms = bool(np.isfinite(np.minimum(cluster.room, cluster.largest)[cluster.with_room]).any())

    def fewest(self, moving: Moving) -> int:
        """The fewest new replicas of a partition, on brokers that have room for an empty one; 0 if they don't suffice."""
        ways = self._ways(moving.rule, self._places.of(moving.replicas))
        return 0 if ways is None else ways.new

    def best(self, moving: Moving, cost: Floats | None = None) -> Choice | None:
        """The choice with the fewest new replicas, and of these about the least load; None if there is none within limits.

        It has MORE new replicas than necessary at most. cost: `Loads.cost` of the partition, if it is known already.
        """
        now = self._places.of(moving.replicas)
        ways = self._ways(moving.rule, now)
        if ways is None:
            return None
        gated = self._gated(self.loads.cost(moving) if cost is None else cost, moving, self.loads.gate)
        choice = self._of(moving, gated, ways, lambda dropped, added: self._penalty(moving.rule, now, dropped, added))
        return choice or self._exact(moving, gated, ways.new + MORE)

    def beyond_limit(self, moving: Moving) -> Choice | None:
        """A choice though a broker gets more replicas than its limit; None if that isn't the reason why there is no other."""
        cost = self.loads.cost(moving)
        most = len(self.cluster.ids)
        if self._exact(moving, self._gated(cost, moving, self.loads.gate, any_room=True), most) is not None:
            return None
        return self._exact(moving, self._gated(cost, moving, self.loads.closed), most)

    def needed(self, moving: Moving) -> list[int]:
        """The brokers for the first new replica of a partition if limits and bytes didn't count, the least loaded first."""
        rule, now = moving.rule, self._places.of(moving.replicas)
        ways = self._ways(rule, now)
        if ways is None or not ways.new:
            return []
        cost = self._gated(self.loads.cost(moving), moving, self.loads.closed, any_room=True)
        allowed = np.min([self._penalty(rule, now, dropped, ()) for dropped in ways.drops], axis=0)
        order = np.argsort(cost + allowed, kind="stable")
        return order[: int(np.isfinite(cost + allowed).sum())].tolist()

    def _ways(self, rule: int, now: tuple[int, ...]) -> Options | None:
        key = rule, now
        if key not in self._options:
            free = self._places.without(self.free[rule], now)
            self._options[key] = options(self.rules[rule], self._places.racks(now), free)
        return self._options[key]

    def cost_of(self, moving: Moving, dropped: Sequence[int], added: Sequence[int], cost: Floats) -> float:
        """The cost of a choice, as `best` counts it. cost: `Loads.cost` of the partition."""
        rack = self.cluster.rack
        counts = kept((rack[b] for b in moving.replicas), (rack[b] for b in dropped), self.cluster.number_of_racks)
        scale, total = self.loads.scale(moving), 0.0
        for broker in added:
            total += float(cost[broker]) + CROWDED * scale * counts[rack[broker]]
            counts[rack[broker]] += 1
        return total - sum(self._gain(moving, broker) for broker in dropped)

    def _gated(self, cost: Floats, moving: Moving, gate: Floats, any_room: bool = False) -> Floats:
        """The cost by broker, infinite where no new replica of the partition can be, whatever its racks.

        any_room: does a broker have room for any number of bytes, if it has any room?
        """
        gated: Floats = cost + gate
        if moving.bytes and self._rooms and not any_room:
            gated[np.minimum(self.loads.room, self.cluster.largest) < moving.bytes] = inf
        for broker in moving.replicas:  # faster than a list as index
            gated[broker] = inf
        return gated

    def _gain(self, moving: Moving, broker: int) -> float:
        gain = self.loads.gain(moving, broker)
        if not self.cluster.live[broker]:
            gain += DOWN
        elif moving.isr is not None and broker not in moving.isr:
            gain += LAGGING
        return gain - FIRST if broker == moving.replicas[0] else gain

    def _of(self, moving: Moving, gated: Floats, ways: Options, penalty: Penalty) -> Choice | None:
        best: Choice | None = None
        for racks in ways.drops:
            dropped = self._dropped(moving, racks)
            found = self._added(moving, gated, racks, ways.new, penalty)
            if found is None:
                continue
            added, spent = found
            total = spent - sum(self._gain(moving, broker) for broker in dropped)
            if best is None or total < best.cost:
                best = Choice(dropped, added, total)
        return best

    def _dropped(self, moving: Moving, racks: tuple[int, ...]) -> tuple[int, ...]:
        """Of each of these racks, the replica whose loss helps most."""
        if not racks:
            return ()
        order = sorted(moving.replicas, key=lambda broker: -self._gain(moving, broker))
        dropped: list[int] = []
        for rack in racks:
            dropped.append(next(b for b in order if self.cluster.rack[b] == rack and b not in dropped))
        return tuple(dropped)

    def _added(
        self, moving: Moving, gated: Floats, dropped: tuple[int, ...], new: int, penalty: Penalty
    ) -> tuple[tuple[int, ...], float] | None:
        added: list[int] = []
        racks: list[int] = []
        total, scale = 0.0, self.loads.scale(moving)
        for _ in range(new):
            costs = gated + penalty(dropped, tuple(sorted(racks))) * scale
            for other in added:
                costs[other] = inf
            broker = int(costs.argmin())
            spent = float(costs[broker])
            if isinf(spent):
                return None
            added.append(broker)
            racks.append(self.cluster.rack[broker])
            total += spent
        return tuple(added), total

    def _penalty(self, rule: int, now: tuple[int, ...], dropped: tuple[int, ...], added: tuple[int, ...]) -> Floats:
        key = rule, now, dropped, added
        found = self._penalties.get(key)
        if found is None:
            if len(self._penalties) > 20_000_000 // max(1, len(self.cluster.ids) * 8):
                self._penalties.clear()
            free = self._places.without(self.free[rule], now)
            found = self._penalties[key] = self._by_broker(rule, self._places.racks(now), dropped, added, free)
        return found

    def _by_broker(
        self, number: int, now: Iterable[int], dropped: tuple[int, ...], added: tuple[int, ...], free: Sequence[int]
    ) -> Floats:
        """What the next replica costs beside load, by broker. free: brokers by rack before any is added."""
        rule = self.rules[number]
        counts, left = kept(now, dropped, rule.racks), list(free)
        for rack in added:
            counts[rack] += 1
            left[rack] -= 1
        size = rule.size(sum(counts) - len(added) + len(dropped))
        by_rack = np.full(rule.racks + 1, inf)
        for rack in next_racks(rule, counts, left, size - sum(counts)):
            by_rack[rack] = CROWDED * counts[rack]
        penalties: Floats = by_rack[self.cluster.racks]
        return penalties

    def _exact(self, moving: Moving, gated: Floats, most: int) -> Choice | None:
        """A choice among the brokers that can get a replica just now; None if it has more than `most` new replicas."""
        rule = self.rules[moving.rule]
        free = self.cluster.free(np.isfinite(gated), not rule.by_rack)
        now = tuple(sorted(self.cluster.rack[b] for b in moving.replicas))
        ways = options(rule, now, free)
        if ways is None or ways.new > most:
            return None
        return self._of(
            moving, gated, ways, lambda dropped, added: self._by_broker(moving.rule, now, dropped, added, free)
        )


class Places:
    """The racks of a partition's replicas, and which of these brokers could otherwise get a new one. Many are equal."""

    def __init__(self, cluster: Cluster, receivers: np.ndarray):
        self._code = ((cluster.racks + 1) * 2 + receivers).tolist()
        self._of: dict[tuple[int, ...], tuple[int, ...]] = {}

    def of(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        found = self._of.get(replicas)
        if found is None:
            code = self._code
            found = self._of[replicas] = tuple(sorted([code[b] for b in replicas]))
        return found

    def racks(self, places: Iterable[int]) -> tuple[int, ...]:
        """The rack of each replica, ascending."""
        return tuple(code // 2 - 1 for code in places)

    def without(self, free: Sequence[int], places: Iterable[int]) -> list[int]:
        """The free brokers by rack, without those that have a replica already."""
        left = list(free)
        for code in places:
            left[code // 2 - 1] -= code % 2
        return [max(0, n) for n in left]
