"""A bound from weights: if no wave has a weight above 1, the sum of all weights is a lower bound on the number of waves.

The best weights give the fractional chromatic number. They are approached by multiplicative weights (Freund and Schapire 1999)
over the largest possible waves: the nodes of the heaviest wave lose weight again and again. Any weights give a valid bound.
"""

from __future__ import annotations

import math

import numpy as np

from durability.restart.rules import Rules, bits

LARGEST = 20_000
"""The most possible waves that are listed. Beyond, there is no bound."""
NODES = 500
"""The most nodes for which there is a bound."""
ROUNDS = 20_000
"""The most rounds. Fewer, if the waves are many."""
LOOK = 50
"""Rounds between two looks at whether more can be gained."""
WORK = 2_000_000_000
"""The most additions in all."""


def cover_bound(rules: Rules, enough: int) -> int:
    """At least so many waves are needed, by conflicts of pairs alone; 0 if there are too many possible waves.

    enough: a larger bound isn't looked for.
    """
    waves = _largest_waves(rules) if len(rules.ids) <= NODES else None
    if waves is None:
        return 0
    inside = np.zeros((len(waves), len(rules.ids)))
    for row, wave in enumerate(waves):
        inside[row, list(bits(wave))] = 1
    covered = np.zeros(len(rules.ids))
    spread, best = math.log(len(rules.ids) + 1), 0.0
    for done in range(1, min(ROUNDS, WORK // inside.size) + 1):
        weights = np.exp(-math.sqrt(spread / done) * (covered - covered.min()))
        heavy = inside @ weights
        heaviest = int(heavy.argmax())
        best = max(best, float(weights.sum() / heavy[heaviest]))
        covered += inside[heaviest]
        if done % LOOK == 0 and (_whole(best) >= enough or _whole(best) >= _whole(_needed(covered, done))):
            break
    return _whole(best)


def _needed(covered: np.ndarray, done: int) -> float:
    """How many waves suffice, as shares, if `done` waves cover each node so often. No weights give more than that."""
    least = float(covered.min())
    return done / least if least else math.inf


def _whole(waves: float) -> int:
    """The whole number of waves. A sum that rounding errors lift a hair above a whole number isn't rounded up."""
    return math.ceil(min(waves, NODES) - 1e-6)


def _largest_waves(rules: Rules) -> list[int] | None:
    """Waves without conflicts of pairs to which no node can be added; None if there are more than LARGEST.

    Bron and Kerbosch 1973, with a pivot, on the nodes that may stop together.
    """
    every = (1 << len(rules.ids)) - 1
    together = [every & ~mask & ~(1 << n) for n, mask in enumerate(rules.apart)]
    found: list[int] = []
    steps = 4 * LARGEST

    def grow(wave: int, candidates: int, done: int) -> bool:
        nonlocal steps
        steps -= 1
        if steps < 0 or len(found) > LARGEST:
            return False
        if not candidates:
            if not done:
                found.append(wave)
            return True
        pivot = max(bits(candidates | done), key=lambda n: (together[n] & candidates).bit_count())
        for node in bits(candidates & ~together[pivot]):
            if not grow(wave | 1 << node, candidates & together[node], done & together[node]):
                return False
            candidates &= ~(1 << node)
            done |= 1 << node
        return True

    return found if grow(0, every, 0) and found else None
