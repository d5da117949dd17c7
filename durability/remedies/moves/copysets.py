"""The distinct replica sets of a cluster, and how many pairs and triples of brokers break a partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from durability.losses.counting import bad, probability
from durability.losses.killing_sets import Ints, killing_sets, minimal
from durability.remedies.moves.model import Losses

K = (2, 3)
Placed = tuple[tuple[int, ...], "int | None"]
"""The places of a partition's replicas, ascending, and its min.insync.replicas; None if unknown."""


def losses(placed: Iterable[Placed], brokers: int) -> tuple[int, tuple[Losses, ...]]:
    """The number of distinct replica sets, and for each k of K the share of sets of k brokers that break a partition.

    All replicas are in sync before the loss. Data is lost with all replicas. Writes stop when fewer than min.insync.replicas are
    left; brokers cap it at the number of replicas (from Kafka 3.7).
    """
    copysets: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    by_killed: dict[tuple[int, int], set[tuple[int, ...]]] = defaultdict(set)
    for replicas, least in set(placed):
        size = len(replicas)
        if not size:
            continue
        copysets[size].add(replicas)
        if least is not None:
            by_killed[size, size - min(max(least, 1), size) + 1].add(replicas)
    data = [_rows(members, size) for size, members in copysets.items()]
    writes = [_rows(members, killed_by) for (_, killed_by), members in by_killed.items()]
    bad_for = {"data": bad(minimal(killing_sets(brokers, data))), "writes": bad(minimal(killing_sets(brokers, writes)))}

    def share(name: str, k: int) -> float | None:
        return probability(bad_for[name][k], brokers, k) if brokers >= k else None

    number = sum(len(members) for members in copysets.values())
    return number, tuple(Losses(k, share("writes", k), share("data", k)) for k in K)


def _rows(replicas: Iterable[tuple[int, ...]], lost: int) -> tuple[Ints, Ints]:
    """The sets of `lost` members of each of these sets of one size, and a count for each; none if more than K are lost."""
    members = np.array(list(replicas), np.int64)
    places = list(combinations(range(members.shape[1]), lost)) if lost <= max(K) else []
    chosen = [members[:, of] for of in places] or [np.empty((0, lost), np.int64)]
    rows = np.concatenate(chosen)
    return rows, np.ones(len(rows), np.int64)
