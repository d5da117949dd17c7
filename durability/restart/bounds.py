"""Lower bounds on the number of waves, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from durability.restart.cliques import largest_clique, largest_without_three
from durability.restart.rules import Rules


@dataclass(frozen=True)
class Bound:
    """At least so many waves are needed. why: of `durability.report.restart.BOUNDS`. brokers: what it rests on."""

    waves: int
    why: str
    brokers: tuple[int, ...] = ()


def lower_bound(
    rules: Rules, capacity: Mapping[frozenset[int], int], most: int | None, voters: int, at_once: int, waves: int
) -> Bound:
    """The best of the bounds that take little time.

    capacity: of the partitions that are known, by their replicas. most: nodes per wave. voters, at_once: how many voters restart,
    and may restart together. waves: those of a valid plan.
    """
    count = len(rules.ids)
    found = [Bound(1 if count else 0, "size")]
    if most:
        found.append(Bound(-(-count // most), "size"))
    if voters and at_once:
        found.append(Bound(-(-voters // at_once), "voters"))
    if capacity:
        members, spare = max(capacity.items(), key=lambda item: -(-len(item[0]) // item[1]))
        found.append(Bound(-(-len(members) // spare), "capacity", tuple(sorted(members))))
    clique = rules.named(largest_clique(rules, waves))
    found.append(Bound(len(clique), "clique", clique))
    return max(found, key=lambda bound: bound.waves)


def better_bound(rules: Rules, bound: Bound, waves: int) -> Bound:
    """The bound, or a larger one that takes a second. waves: as many are enough.

    Of nodes of which no three may stop together, a wave takes two. And the largest possible waves have to cover all nodes.
    """
    from durability.restart.cover import cover_bound

    three = rules.named(largest_without_three(rules))
    found = [bound, Bound(-(-len(three) // 2), "three", three)]
    least = max(one.waves for one in found)
    if least < waves:
        found.append(Bound(cover_bound(rules, waves), "cover"))
    return max(found, key=lambda one: one.waves)
