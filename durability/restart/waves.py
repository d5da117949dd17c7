"""The fewest waves: greedy first, then improved, exact for few brokers.

Waves are a colouring of brokers in which some sets may have a colour more than once. The greedy order is DSATUR's (Brelaz 1979):
the broker with the fewest possible waves first. Iterated greedy (Culberson 1992) then fills the waves again in another order,
which never needs more of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence

from durability.restart.constraints import Constraints

EXACT = 12
"""The number of brokers up to which every assignment is tried."""
Fits = Callable[[set[int], int], bool]


def fewest(
    constraints: Constraints, by_rack: Sequence[set[int]], fits: Fits, bound: int, seconds: float
) -> list[set[int]]:
    """Waves that obey the constraints, as few as were found within the time.

    by_rack: a wave per rack, tried first. fits: may a broker join a wave, apart from the constraints (sizes, voters)?
    """

    def allowed(wave: set[int], broker: int) -> bool:
        return fits(wave, broker) and constraints.allows(wave, broker)

    candidates = [_refilled([sorted(wave) for wave in by_rack], allowed), _dsatur(constraints, allowed)]
    best = min(candidates, key=len)
    if len(best) > bound and len(constraints.brokers) <= EXACT:
        return _exact(constraints, allowed, best, bound)
    return _iterated(best, allowed, bound, seconds)


def _refilled(groups: Iterable[Iterable[int]], allowed: Fits) -> list[set[int]]:
    """Waves made of brokers in this order, each put into the first wave that it may join."""
    waves: list[set[int]] = []
    for group in groups:
        for broker in group:
            wave = next((wave for wave in waves if allowed(wave, broker)), None)
            if wave is None:
                waves.append({broker})
            else:
                wave.add(broker)
    return waves


def _dsatur(constraints: Constraints, allowed: Fits) -> list[set[int]]:
    waves: list[set[int]] = []
    left = set(constraints.brokers)
    conflicts = constraints.conflicts
    closed: dict[int, set[int]] = {broker: set() for broker in left}
    while left:
        broker = max(left, key=lambda b: (len(closed[b]), len(conflicts[b]), -b))
        left.discard(broker)
        place = next((n for n, wave in enumerate(waves) if allowed(wave, broker)), len(waves))
        if place == len(waves):
            waves.append(set())
        waves[place].add(broker)
        for other in conflicts[broker] & left:
            closed[other].add(place)
    return waves


def _iterated(best: list[set[int]], allowed: Fits, bound: int, seconds: float) -> list[set[int]]:
    """Refills the waves in other orders until the bound or the time is reached."""
    draw, until = random.Random(0), time.monotonic() + seconds
    waves = best
    while len(best) > bound and time.monotonic() < until:
        order = [sorted(wave) for wave in waves]
        turn = draw.random()
        if turn < 0.4:
            order.reverse()
        elif turn < 0.7:
            order.sort(key=len, reverse=True)
        else:
            draw.shuffle(order)
        for wave in order:
            draw.shuffle(wave)
        waves = _refilled(order, allowed)
        if len(waves) < len(best):
            best = waves
    return best


def _exact(constraints: Constraints, allowed: Fits, best: list[set[int]], bound: int) -> list[set[int]]:
    """Every assignment that could need fewer waves, by depth-first search."""
    order = sorted(constraints.brokers, key=lambda broker: -len(constraints.conflicts[broker]))
    found = best

    def assign(place: int, waves: list[set[int]]) -> None:
        nonlocal found
        if len(waves) >= len(found) or len(found) <= bound:
            return
        if place == len(order):
            found = [set(wave) for wave in waves]
            return
        broker = order[place]
        for wave in waves:
            if allowed(wave, broker):
                wave.add(broker)
                assign(place + 1, waves)
                wave.discard(broker)
        waves.append({broker})
        assign(place + 1, waves)
        waves.pop()

    assign(0, [])
    return found
