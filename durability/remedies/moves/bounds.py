"""Lower bounds: the fewest new replicas, and the least load of the most loaded broker.

For the load, each partition is relaxed: of the replicas that could go, as many go as must, from any of these brokers. New
replicas go to any broker of the racks that could get one. So for a set S of brokers, some of the replicas are in S in any plan.
Their number divided by |S| is a lower bound. By linear programming duality, the best set gives the optimum of the relaxation.
It is a level set of the optimal load (`cluster.Loads`), so the sets tried are those of the brokers with the most load.

Partitions can't be divided, so few large ones don't reach that bound. A second one counts whole replicas: the largest must be on
some broker, and of k + 1 replicas on k brokers two share one. The higher of the two is the bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from durability.remedies.moves.choose import Places
from durability.remedies.moves.cluster import Cluster, Floats, Moving
from durability.remedies.moves.rules import Options, Rule, completes, kept, options

LARGEST = 500
"""So many of the largest partitions count as whole replicas."""
ROUNDED = 1e-6
"""A sum of whole numbers may be so much above its value."""


@dataclass(frozen=True)
class Forced:
    """What every plan with the fewest new replicas has in common, for partitions whose replicas are in the same racks.

    new: new replicas. by_rack: how many of them each rack gets at least. racks: those that could get one. leaving: how many
    replicas go. loses: the racks that could lose one.
    """

    new: int
    by_rack: tuple[tuple[int, int], ...]
    racks: frozenset[int]
    leaving: int
    loses: frozenset[int]


@dataclass(frozen=True)
class Chosen:
    """A partition's part of a bound: `stay` of its replicas on `could` stay, and its new ones go where `forced` has them.

    unracked: can new replicas be on brokers without a rack?
    """

    weight: float
    replicas: tuple[int, ...]
    could: tuple[int, ...]
    stay: int
    forced: Forced
    unracked: bool


class Bounds:
    """The bounds of a cluster, whatever room and load its brokers have."""

    def __init__(self, cluster: Cluster, rules: Sequence[Rule]):
        self.cluster, self.rules = cluster, rules
        self._free = [cluster.free(cluster.may_get, not rule.by_rack) for rule in rules]
        self._places = Places(cluster, cluster.may_get)
        self._options: dict[tuple[int, tuple[int, ...]], Options | None] = {}
        self._forced: dict[tuple[int, tuple[int, ...]], Forced] = {}

    def options(self, moving: Moving) -> Options | None:
        """The ways to keep the partition's rule with the fewest new replicas; None if there are none."""
        now = self._places.of(moving.replicas)
        key = moving.rule, now
        if key not in self._options:
            free = self._places.without(self._free[moving.rule], now)
            self._options[key] = options(self.rules[moving.rule], self._places.racks(now), free)
        return self._options[key]

    def fewest(self, moving: Moving) -> int:
        """The fewest new replicas of a partition."""
        ways = self.options(moving)
        return 0 if ways is None else ways.new

    def by_rack(self, moving: Iterable[Moving]) -> dict[int, int]:
        """How many more replicas racks get at least, by number of the rack; fewer if others certainly go."""
        found: Counter[int] = Counter()
        for partition in moving:
            forced = self._forced_by(partition)
            for rack, number in forced.by_rack:
                found[rack] += number
            if len(forced.loses) == 1:
                found[next(iter(forced.loses))] -= forced.leaving
        found.pop(-1, None)
        found.pop(self.cluster.number_of_racks, None)
        return dict(found)

    def load(self, before: Floats, after: Floats, moving: Iterable[Moving], *, bytes: bool) -> float:
        """The least load of the most loaded broker that any plan with the fewest new replicas has.

        before, after: the load by broker. moving: the partitions that change. bytes: is the load in bytes, or in replicas?
        """
        # Lists: an array is slower where single numbers change.
        stays = before.tolist()
        chosen: list[Chosen] = []
        leaving: dict[tuple[tuple[int, ...], int], float] = defaultdict(float)
        new: dict[tuple[frozenset[int], int, bool], float] = defaultdict(float)
        for partition in moving:
            weight = float(partition.bytes if bytes else 1)
            forced = self._forced_by(partition)
            could = tuple(b for b in partition.replicas if self.cluster.rack[b] in forced.loses)
            for b in could:
                stays[b] -= weight
            unracked = not self.rules[partition.rule].by_rack
            stay = len(could) - forced.leaving
            leaving[could, stay] += weight
            for rack, number in forced.by_rack:
                new[frozenset((rack,)), number, unracked] += weight
            rest = forced.new - sum(number for _, number in forced.by_rack)
            new[forced.racks, rest, unracked] += weight
            chosen.append(Chosen(weight, partition.replicas, could, stay, forced, unracked))
        fixed: Floats = np.array(stays, np.float64)
        groups = [(np.array(brokers, np.int64), number, weight) for (brokers, number), weight in leaving.items()]
        groups += [
            (self._brokers(racks, unracked), number, weight) for (racks, number, unracked), weight in new.items()
        ]
        orders = [after, before, *self._rack_orders(after)]
        relaxed = max(_bound(fixed, groups, np.argsort(-order, kind="stable")) for order in orders)
        largest = sorted(chosen, key=lambda one: -one.weight)[:LARGEST]
        return float(ceil(self._indivisible(ceil(relaxed - ROUNDED), fixed, largest)))

    def _indivisible(self, least: float, fixed: Floats, largest: Sequence[Chosen]) -> float:
        """The bound, at least `least`, of partitions that can't be divided. fixed: by broker, what stays there in any plan.

        Each replica adds its whole weight to what stays on one broker, and no two of a partition are on the same one. A broker
        with the load T has at most (T - fixed) / w of the replicas with a weight of at least w.
        """
        must: dict[tuple[frozenset[int], bool], list[float]] = defaultdict(list)
        for one in largest:
            places = [(np.array(one.could, np.int64), one.stay)]
            new = {frozenset((rack,)): number for rack, number in one.forced.by_rack} | {
                one.forced.racks: one.forced.new
            }
            for racks, number in new.items():
                places.append((np.setdiff1d(self._brokers(racks, one.unracked), one.replicas), number))
                must[racks, one.unracked] += [one.weight] * number
            for brokers, number in places:
                if 0 < number <= len(brokers):
                    least = max(least, float(np.sort(fixed[brokers])[number - 1]) + one.weight)
        for (racks, unracked), weights in must.items():
            least = _packed(least, fixed[self._brokers(racks, unracked)], weights)
        return least

    def _forced_by(self, moving: Moving) -> Forced:
        now = self._places.of(moving.replicas)
        key = moving.rule, now
        if key not in self._forced:
            ways = self.options(moving)
            if ways is None:
                raise ValueError("a partition that can't keep its rule has no bound")
            free = self._places.without(self._free[moving.rule], now)
            self._forced[key] = _forced(self.rules[moving.rule], self._places.racks(now), free, ways)
        return self._forced[key]

    def _brokers(self, racks: frozenset[int], unracked: bool) -> np.ndarray:
        numbers = [rack if rack < self.cluster.number_of_racks else -1 for rack in racks]
        there = np.isin(self.cluster.racks, numbers) & self.cluster.may_get
        return np.flatnonzero(there if unracked else there & (self.cluster.racks >= 0))

    def _rack_orders(self, after: Floats) -> Iterable[Floats]:
        """Orders in which the brokers of whole racks come first: the racks by their mean load."""
        racks = self.cluster.racks + 1
        size = np.maximum(np.bincount(racks, self.cluster.may_get), 1)
        mean = np.bincount(racks, np.where(self.cluster.may_get, after, 0)) / size
        yield mean[racks] * self.cluster.may_get
        yield np.where(self.cluster.may_get, 1.0, 0.0)


def _bound(fixed: Floats, groups: Iterable[tuple[np.ndarray, int, float]], order: np.ndarray) -> float:
    """The best bound of the sets of the first brokers of `order`.

    groups: brokers, how many of them have a replica of each partition in any plan, and the weight of these partitions.
    """
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    must = fixed[order].copy()
    for brokers, number, weight in groups:
        if number > 0 and len(brokers) >= number:
            # All but the last `number` of the brokers can be without. Each of the last adds one to the sets that reach it.
            must[np.sort(rank[brokers])[-number:]] += weight
    return float((np.cumsum(must) / np.arange(1, len(order) + 1)).max(initial=0.0))


def _packed(least: float, fixed: Floats, weights: Iterable[float]) -> float:
    """The lowest load, at least `least`, at which brokers have room for replicas of these weights, largest first."""
    for number, weight in enumerate(weights, 1):
        while weight and (fit := np.floor((least - fixed) / weight).clip(0)).sum() < number:
            least = float((fixed + (fit + 1) * weight).min())
    return least


def _forced(rule: Rule, now: tuple[int, ...], free: Sequence[int], ways: Options) -> Forced:
    starts = [kept(now, dropped, rule.racks) for dropped in ways.drops]
    by_rack, possible = [], []
    for rack, brokers in enumerate(free):
        if not brokers or not ways.new:
            continue
        if any(_with(rule, counts, free, ways.new, rack) for counts in starts):
            possible.append(rack)
            least = next(n for n in range(ways.new + 1) if _reaches(rule, starts, free, ways.new, rack, n))
            if least:
                by_rack.append((rack, least))
    dropped = ways.drops[0]
    loses = frozenset(rack for racks in ways.drops for rack in racks)
    return Forced(ways.new, tuple(by_rack), frozenset(possible), len(dropped), loses)


def _with(rule: Rule, counts: Sequence[int], free: Sequence[int], new: int, rack: int) -> bool:
    """Can the rack get one of the new replicas?"""
    after, left = list(counts), list(free)
    after[rack] += 1
    left[rack] -= 1
    return completes(rule, after, left, new - 1)


def _reaches(rule: Rule, starts: Iterable[Sequence[int]], free: Sequence[int], new: int, rack: int, most: int) -> bool:
    """Can the rule be kept if the rack gets at most so many of the new replicas?"""
    left = list(free)
    left[rack] = min(left[rack], most)
    return any(completes(rule, counts, left, new) for counts in starts)
