"""In how few waves the brokers of a cluster may restart, by the sets of brokers whose loss stops writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from durability.losses.killing_sets import KillingSets
from durability.restart.constraints import Partitions
from durability.restart.nodes import Node
from durability.restart.plan import Limits, plan


def fewest(nodes: Sequence[Node], brokers: Sequence[int], stopping: KillingSets) -> dict[str, int]:
    """`waves`, as few as a short search finds, and `bound`: no plan has fewer. Both are for a cluster that is whole.

    nodes: the cluster's. brokers: by place, the brokers of the sets.
    stopping: the sets of two brokers or more whose loss stops writes, if all replicas are in sync before. No wave contains one.
    """
    sets = (members for size in stopping.by_size for members in stopping.of(size).tolist())
    limits = [_limit(frozenset(brokers[place] for place in members)) for members in sets]
    made = plan(limits, [replace(node, live=True) for node in nodes], Limits(seconds=0))
    return {"waves": len(made.waves), "bound": made.bound.waves}


def _limit(members: frozenset[int]) -> Partitions:
    """Replicas of which one must stay."""
    return Partitions(replicas=members, isr=members, minimum=1, count=1, example=("", 0))
