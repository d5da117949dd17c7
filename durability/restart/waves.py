"""The fewest waves: greedy first, then tabu search, exact for few nodes.

Waves are a colouring of nodes in which some sets may have a colour more than once. The greedy order is DSATUR's (Brelaz 1979):
the node with the fewest possible waves first. Equal nodes are drawn, in several rounds. Then tabu search looks for one wave less,
again and again. It ends after a number of steps, not of seconds, so that one cluster has one plan on all machines. Only the
largest clusters reach the limit in seconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence

from durability.restart.rules import Rules, bits

EXACT = 12
"""The number of nodes up to which every assignment is tried, with `exact`."""
ROUNDS = 8
"""Greedy orders."""
STARTS = 8
"""Starts of tabu search for one wave less, unless it finds them."""
STEPS = 120
"""Steps of tabu search from one start, per node."""
SLOW = 8_000
"""The number of sets of which waves may take several that makes a step longer by one more step."""


def greedy(rules: Rules, by_rack: Sequence[int]) -> list[int]:
    """Valid waves, as masks of nodes: a wave per rack (`by_rack`) as far as that does, or DSATUR's, if they are fewer."""
    return min((_refilled(rules, by_rack), _dsatur(rules, None)), key=len)


def fewest(rules: Rules, best: list[int], bound: int, seconds: float) -> list[int]:
    """Valid waves, as few as were found, at most as many as `best`.

    bound: no plan has fewer waves. seconds: of this thread's CPU time, the most for a search.
    """
    until = time.thread_time() + seconds

    def stop() -> bool:
        return time.thread_time() > until

    return _searched(rules, best, bound, random.Random(0), stop)


def _searched(rules: Rules, best: list[int], bound: int, draw: random.Random, stop: Callable[[], bool]) -> list[int]:
    """Greedy and tabu search, until the bound, the steps or the time are reached."""
    for _ in range(ROUNDS):
        if len(best) > bound and not stop():
            best = min(best, _dsatur(rules, draw), key=len)
    from durability.restart.tabu import Tabu

    search, failed, start = Tabu(rules, draw), 0, best
    steps = STEPS * len(rules.ids) // (1 + bool(rules.wide) + len(rules.wide) // SLOW)
    while len(best) > bound and failed < STARTS and not stop():
        found = search.search(start, len(best) - 1, steps, stop)
        if found:
            best = start = found
        else:
            failed += 1
            # Elsewhere the search may be luckier.
            start = _dsatur(rules, draw)
    return best


def _refilled(rules: Rules, groups: Iterable[int]) -> list[int]:
    """Waves made of nodes in this order, each put into the first wave that it may join."""
    waves: list[int] = []
    for group in groups:
        for node in bits(group):
            _join(rules, waves, node)
    return waves


def _dsatur(rules: Rules, draw: random.Random | None) -> list[int]:
    """Waves by DSATUR. draw: chooses among equal nodes; None: the first one."""
    waves: list[int] = []
    left = set(range(len(rules.ids)))
    closed = [0] * len(rules.ids)
    degree = [mask.bit_count() for mask in rules.apart]
    while left:
        equal = {n: draw.random() if draw else 0.0 for n in sorted(left)}
        node = max(equal, key=lambda n: (closed[n].bit_count(), degree[n], equal[n]))
        left.discard(node)
        place = _join(rules, waves, node)
        for other in bits(rules.apart[node]):
            closed[other] |= 1 << place
    return waves


def _join(rules: Rules, waves: list[int], node: int) -> int:
    """Puts the node into the first wave that it may join; returns the wave's place."""
    for place, wave in enumerate(waves):
        if rules.allows(wave, node):
            waves[place] |= 1 << node
            return place
    waves.append(1 << node)
    return len(waves) - 1


def exact(rules: Rules, best: list[int], bound: int) -> list[int]:
    """The fewest valid waves: every assignment is tried that could need fewer than `best`, by depth-first search."""
    order = sorted(range(len(rules.ids)), key=lambda node: -rules.apart[node].bit_count())
    found = best

    def assign(place: int, waves: list[int]) -> None:
        nonlocal found
        if len(waves) >= len(found) or len(found) <= bound:
            return
        if place == len(order):
            found = list(waves)
            return
        node = order[place]
        for at, wave in enumerate(waves):
            if rules.allows(wave, node):
                waves[at] |= 1 << node
                assign(place + 1, waves)
                waves[at] = wave
        waves.append(1 << node)
        assign(place + 1, waves)
        waves.pop()

    assign(0, [])
    return found
