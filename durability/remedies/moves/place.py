"""Places partitions one after the other, then undoes and redoes each while that evens out the load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from math import ceil, inf

from durability.remedies.moves.choose import Choice, Chooser
from durability.remedies.moves.cluster import Moving
from durability.remedies.moves.exchange import Exchange
from durability.remedies.moves.model import Name

ROUNDS = 8
"""The most times that a partition is undone and redone."""
NEAR = 1.02
"""A load so close to its bound is low enough."""
LEAST_GAIN = 0.01
"""Another round is worth it if the last one brought the load so much closer to its bound: part of the bound."""
TRIES = 20_000
"""How many times all partitions together may be moved out of the way of others."""
LITTLE = 1e-9
"""Part of the cost of a replica that is no gain: sums are rounded."""


class Placer:
    """Places the partitions of topics.

    without: the topics that have no choice, with the first partition that has none.
    """

    def __init__(self, moving: Sequence[Moving], chooser: Chooser):
        """Choose replicas for each partition. The largest come first: the small ones then even out what is left."""
        self.chooser, self.loads = chooser, chooser.loads
        self._order = sorted(moving, key=lambda m: (-m.bytes, m.name))
        self._of_topic: dict[str, list[Moving]] = defaultdict(list)
        for m in self._order:
            self._of_topic[m.partition.topic].append(m)
        self._on: dict[int, dict[Name, Moving]] = {}
        self._tries = TRIES
        self.without: dict[str, Moving] = {}
        self._place(self._order)
        if self.without:
            # Topics that were undone have freed room.
            again = [m for m in self._order if m.partition.topic in self.without]
            self.without = {}
            self._place(again)

    @property
    def placed(self) -> list[Moving]:
        """The partitions of all other topics, the largest first."""
        return [m for m in self._order if m.partition.topic not in self.without]

    def even_out(self, count: float, bytes: float) -> None:
        """Undo and redo partitions of brokers with too much load, and those that have more new replicas than the fewest.

        count, bytes: the bounds of the most loaded broker.
        """
        self.loads.allow()
        self.loads.sharpen(count, bytes)
        placed, before = self.placed, inf
        for _ in range(ROUNDS):
            most, most_bytes = max(ceil(count), NEAR * count), NEAR * bytes
            hot = self.loads.hot(most, most_bytes)
            for m in placed:
                could_help = hot.intersection((*m.replicas, *m.added) if m.dropped else m.added)
                # A broker that was hot at the start of the round may have cooled down.
                on_hot = any(self.loads.is_hot(b, most, most_bytes) for b in could_help)
                if on_hot or len(m.added) > self.chooser.fewest(m):
                    self._redo(m)
            above = self.loads.above(count, bytes)
            if above > before - LEAST_GAIN:
                return
            before = above

    def exchange(self, count: float, bytes: float) -> None:
        """Lower the most loaded broker further, by partitions that change together. count, bytes: its bounds."""
        before = {m.name: Choice(m.dropped or (), m.added, 0.0) for m in self.placed}
        exchange = Exchange(self.placed, self.chooser)
        exchange.keep_limit()
        exchange.lower(bytes, bytes=True)
        exchange.lower(ceil(count), bytes=False)
        for m in self.placed:
            was, now = before[m.name], Choice(m.dropped or (), m.added, 0.0)
            if was != now:
                m.dropped, m.added = was.dropped, was.added
                self._undo(m)
                self._do(m, now)
        self.loads.allow()

    def _place(self, order: Iterable[Moving]) -> None:
        for moving in order:
            if moving.partition.topic in self.without:
                continue
            choice = self._choice(moving)
            if choice is not None:
                self._do(moving, choice)
                continue
            self.without[moving.partition.topic] = moving
            for other in self._of_topic[moving.partition.topic]:
                if other.dropped is not None:
                    self._undo(other)

    def _choice(self, moving: Moving) -> Choice | None:
        choice = self.chooser.best(moving)
        least = self.chooser.fewest(moving)
        if choice is not None and len(choice.added) == least:
            return choice
        for _ in range(least):
            if not self._made_way(moving):
                break
            better = self.chooser.best(moving)
            if better is not None and len(better.added) == least:
                return better
        choice = choice and self.chooser.best(moving)
        if choice is None:
            choice = self.chooser.beyond_limit(moving)
            if choice is not None:
                self.loads.raise_limit(choice.added)
        return choice

    def _made_way(self, moving: Moving) -> bool:
        """Move a partition off a broker that this one needs and that is at its limit or full. False if none can move."""
        for broker in islice(self.chooser.needed(moving), 10):
            at_limit, lacks = self.loads.blocks(broker, moving)
            there = sorted(self._on.get(broker, {}).values(), key=lambda m: (m.bytes, m.name))
            # One with just enough bytes is the least to move.
            if not (at_limit or lacks > 0) or self._tries <= 0:
                continue
            with self.loads.closing(broker):
                room = self.loads.most_room
                could = [m for m in there if lacks <= m.bytes <= room]
                for other in could[:10]:
                    self._tries -= 1
                    if self._moved_away(other):
                        return True
        return False

    def _moved_away(self, moving: Moving) -> bool:
        dropped, added = moving.dropped or (), moving.added
        self._undo(moving)
        choice = self.chooser.best(moving)
        if choice is not None and len(choice.added) <= len(added):
            self._do(moving, choice)
            return True
        self._do(moving, Choice(dropped, added, 0.0))
        return False

    def _do(self, moving: Moving, choice: Choice) -> None:
        moving.dropped, moving.added = choice.dropped, choice.added
        self.loads.apply(moving)
        for broker in moving.added:
            self._on.setdefault(broker, {})[moving.name] = moving

    def _undo(self, moving: Moving) -> None:
        for broker in moving.added:
            del self._on[broker][moving.name]
        self.loads.apply(moving, -1)
        moving.dropped, moving.added = None, ()

    def _redo(self, moving: Moving) -> None:
        """Undo the partition and choose again. Keeps the former choice unless the new one is better."""
        dropped, added = moving.dropped or (), moving.added
        self._undo(moving)
        cost = self.loads.cost(moving)
        former = Choice(dropped, added, self.chooser.cost_of(moving, dropped, added, cost))
        choice = self.chooser.best(moving, cost)
        self._do(moving, choice if choice is not None and self._better(moving, choice, former) else former)

    def _better(self, moving: Moving, choice: Choice, former: Choice) -> bool:
        if len(choice.added) != len(former.added):
            return len(choice.added) < len(former.added)
        return former.cost - choice.cost > LITTLE * self.loads.scale(moving)
