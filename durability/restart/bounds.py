"""Lower bounds on the number of waves, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from durability.restart.constraints import Constraints

STARTS = 200
"""Brokers from which a clique is grown."""


@dataclass(frozen=True)
class Bound:
    """At least so many waves are needed. why: clique, capacity, size or voters. brokers: what it rests on."""

    waves: int
    why: str
    brokers: tuple[int, ...] = ()


def lower_bound(constraints: Constraints, most: int | None, voters: int, at_once: int) -> Bound:
    """The best of the bounds. most: brokers per wave. voters, at_once: how many voters restart, and may restart together."""
    found = [Bound(1 if constraints.brokers else 0, "size")]
    if most:
        found.append(Bound(-(-len(constraints.brokers) // most), "size"))
    if voters and at_once:
        found.append(Bound(-(-voters // at_once), "voters"))
    for members, capacity in constraints.capacity.items():
        found.append(Bound(-(-len(members) // capacity), "capacity", tuple(sorted(members))))
    clique = _clique(constraints)
    found.append(Bound(len(clique), "clique", tuple(sorted(clique))))
    return max(found, key=lambda bound: bound.waves)


def _clique(constraints: Constraints) -> set[int]:
    """Brokers of which no two may stop together, as many as greedy growth finds."""
    conflicts = constraints.conflicts
    by_degree = sorted(constraints.brokers, key=lambda broker: (-len(conflicts[broker]), broker))
    best: set[int] = set()
    for start in by_degree[:STARTS]:
        clique, candidates = {start}, set(conflicts[start])
        while candidates and len(clique) + len(candidates) > len(best):
            broker = max(candidates, key=lambda b: (len(conflicts[b] & candidates), -b))
            clique.add(broker)
            candidates &= conflicts[broker]
        if len(clique) > len(best):
            best = clique
    return best
