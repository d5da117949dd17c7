"""Spreads preferred leaders evenly by the order of replicas. This copies nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np

from durability.remedies.moves.cluster import Ints


def even(leaders: Ints, choices: Sequence[tuple[int, Iterable[int]]]) -> tuple[list[int], float]:
    """The preferred leaders of partitions, so that the broker with the most has as few as possible.

    leaders: by broker, how many partitions it leads that aren't in `choices`. choices: a partition's preferred leader now, and
    the brokers that could be. Returns the leader of each of `choices`, and the least possible maximum.

    A partition's leadership moves along a path of brokers from one with many to one with at least two fewer, until no path is
    left. Then the brokers that can be reached from the fullest share all that they lead, so their mean is the bound.
    """
    now = [leader for leader, _ in choices]
    count = leaders.copy()
    movable: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (leader, could) in enumerate(choices):
        count[leader] += 1
        for other in could:
            if other != leader:
                movable[leader, other].append(number)
    others = [frozenset(could) for _, could in choices]
    edges = np.zeros((len(leaders), len(leaders)), np.int64)
    for (one, other), numbers in movable.items():
        edges[one, other] = len(numbers)

    def move(one: int, other: int) -> None:
        while True:
            number = movable[one, other].pop()
            if now[number] == one:
                break
        now[number] = other
        for third in others[number]:
            if third != one:
                edges[one, third] -= 1
            if third != other:
                edges[other, third] += 1
                movable[other, third].append(number)

    return now, _level(count, edges, move)


def _level(count: Ints, edges: Ints, move: Callable[[int, int], None]) -> float:
    """Move single leaderships until none helps. edges: by pair of brokers, how many can move from one to the other."""
    settled = np.zeros(len(count), bool)
    bound = 0.0
    while not settled.all():
        fullest = int(np.where(settled, -1, count).argmax())
        path, reached = _path(fullest, count, edges)
        if path is None:
            if not settled.any():
                bound = float(np.ceil(count[reached].mean()))
            settled |= reached
            continue
        steps = list(pairwise(path))
        # A move takes one from the edge that it uses, and adds to edges that leave the broker it ends at.
        units = min(int(edges[one, other]) for one, other in steps)
        for _ in range(min(units, int(count[path[0]] - count[path[-1]]) // 2)):
            for one, other in steps:
                move(one, other)
                count[one] -= 1
                count[other] += 1
    return bound


def _path(start: int, count: Ints, edges: Ints) -> tuple[list[int] | None, np.ndarray]:
    """A shortest path to a broker with at least two fewer, the emptiest of those; and all brokers that were reached.

    Without a path these are all that can be reached.
    """
    came = np.full(len(count), -1)
    came[start] = start
    frontier = np.array([start])
    while len(frontier):
        linked = edges[frontier] > 0
        new = np.flatnonzero(linked.any(axis=0) & (came < 0))
        came[new] = frontier[linked[:, new].argmax(axis=0)]
        frontier = new
        if len(new) and count[emptiest := new[count[new].argmin()]] <= count[start] - 2:
            path = [int(emptiest)]
            while path[-1] != start:
                path.append(int(came[path[-1]]))
            return path[::-1], came >= 0
    return None, came >= 0
