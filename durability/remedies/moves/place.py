"""Places partitions one after the other, then undoes and redoes each while that evens out the load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil

from durability.remedies.moves.bounds import Bounds
from durability.remedies.moves.choose import Choice, Chooser
from durability.remedies.moves.cluster import Moving

ROUNDS = 8
"""The most times that a partition is undone and redone."""
NEAR = 1.01
"""A load so close to its bound is low enough."""

LITTLE = 1e-9
"""Part of the cost of a replica that is no gain: sums are rounded."""


def placed(moving: Sequence[Moving], chooser: Chooser) -> dict[str, Moving]:
    """Choose replicas for each partition. Returns the topics without a choice, with the first partition that has none.

    The largest partitions come first: the small ones then even out what is left.
    """
    order = _largest_first(moving)
    without = _all(order, chooser)
    if not without:
        return {}
    # Topics that were undone have freed room.
    again = _all([m for m in order if m.partition.topic in without], chooser)
    return {topic: partition for topic, partition in without.items() if topic in again}


def even_out(moving: Sequence[Moving], chooser: Chooser, bounds: Bounds, count: float, bytes: float) -> None:
    """Undo and redo partitions of brokers with too much load, and those that have more new replicas than the fewest.

    count, bytes: the bounds of the most loaded broker.
    """
    order = _largest_first(moving)
    for _ in range(ROUNDS):
        hot = chooser.loads.hot(max(ceil(count), NEAR * count), NEAR * bytes)
        changed = False
        for m in order:
            on_hot = not hot.isdisjoint(m.added) or (m.dropped and not hot.isdisjoint(m.replicas))
            if on_hot or len(m.added) > bounds.fewest(m):
                changed |= _redone(m, chooser)
        if not changed:
            return


def _largest_first(moving: Iterable[Moving]) -> list[Moving]:
    return sorted(moving, key=lambda m: (-m.bytes, m.partition.name))


def _all(order: Iterable[Moving], chooser: Chooser) -> dict[str, Moving]:
    without: dict[str, Moving] = {}
    by_topic: dict[str, list[Moving]] = defaultdict(list)
    for moving in order:
        topic = moving.partition.topic
        if topic in without:
            continue
        choice = chooser.best(moving)
        if choice is None:
            choice = chooser.beyond_limit(moving)
            if choice is not None:
                chooser.loads.raise_limit(choice.added)
        if choice is None:
            without[topic] = moving
            for other in by_topic.pop(topic, ()):
                _undo(other, chooser)
                other.dropped, other.added = None, ()
            continue
        by_topic[topic].append(moving)
        _do(moving, choice, chooser)
    return without


def _do(moving: Moving, choice: Choice, chooser: Chooser) -> None:
    moving.dropped, moving.added = choice.dropped, choice.added
    chooser.loads.apply(moving)


def _undo(moving: Moving, chooser: Chooser) -> None:
    chooser.loads.apply(moving, -1)


def _redone(moving: Moving, chooser: Chooser) -> bool:
    """Undo the partition and choose again. Keeps the former choice unless the new one is better."""
    _undo(moving, chooser)
    dropped, added = moving.dropped or (), moving.added
    choice = chooser.best(moving)
    better = (
        choice is not None and len(choice.added) <= len(added) and (choice.dropped, choice.added) != (dropped, added)
    )
    if better and choice is not None and len(choice.added) == len(added):
        better = choice.cost < chooser.cost_of(moving, dropped, added) - LITTLE * chooser.scale(moving)
    if better and choice is not None:
        _do(moving, choice, chooser)
    else:
        chooser.loads.apply(moving)
    return better
