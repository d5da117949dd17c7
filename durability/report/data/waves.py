"""In how few waves the brokers of a cluster may restart, by the sets of brokers whose loss stops writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from durability.losses.killing_sets import KillingSets
from durability.restart.nodes import Node
from durability.restart.plan import Limits, shortest


def fewest(nodes: Sequence[Node], brokers: Sequence[int], stopping: KillingSets) -> dict[str, int]:
    """`waves`, as few as a short search finds, and `bound`: no plan has fewer. Both are for a cluster that is whole.

    nodes: the cluster's. brokers: by place, the brokers of the sets.
    stopping: the sets of two brokers or more whose loss stops writes, if all replicas are in sync before. No wave contains one.
    """
    ids = np.array(brokers, np.int64)
    capacity: dict[frozenset[int], int] = {}
    for size in stopping.by_size:
        capacity |= dict.fromkeys(map(frozenset, ids[stopping.of(size)].tolist()), size - 1)
    waves, bound = shortest(capacity, nodes, Limits(seconds=0))
    return {"waves": len(waves), "bound": bound.waves}
