"""The distinct replica sets of a cluster, and how many pairs and triples of brokers break a partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np

from durability.losses.counting import bad, probability
from durability.losses.killing_sets import Ints, KillingSets, killing_sets, minimal
from durability.remedies.moves.model import Losses

K = (2, 3)
Placed = tuple[tuple[int, ...], "int | None"]
"""The places of a partition's replicas, ascending, and its min.insync.replicas; None if unknown."""


def losses(placed: Iterable[Placed], brokers: int) -> tuple[int, tuple[Losses, ...]]:
    """The number of distinct replica sets, and for each k of K the share of sets of k brokers that break a partition.

    All replicas are in sync before the loss. Data is lost with all replicas. Writes stop when fewer than min.insync.replicas are
    left; brokers cap it at the number of replicas (from Kafka 3.7).
    """
    counted = Counter(placed)
    copysets = {replicas for replicas, _ in counted}
    writes: Counter[tuple[int, ...]] = Counter()
    for (replicas, least), number in counted.items():
        if least is None or not replicas:
            continue
        killed_by = len(replicas) - min(max(least, 1), len(replicas)) + 1
        for lost in combinations(replicas, killed_by) if killed_by <= max(K) else ():
            writes[lost] += number
    data = Counter({replicas: 1 for replicas in copysets if 0 < len(replicas) <= max(K)})
    bad_for = {name: bad(minimal(_sets(sets, brokers))) for name, sets in (("writes", writes), ("data", data))}

    def share(name: str, k: int) -> float | None:
        return probability(bad_for[name][k], brokers, k) if brokers >= k else None

    return len(copysets), tuple(Losses(k, share("writes", k), share("data", k)) for k in K)


def _sets(sets: Mapping[tuple[int, ...], int], brokers: int) -> KillingSets:
    rows: list[tuple[Ints, Ints]] = []
    for size in {len(members) for members in sets}:
        chosen = [(members, number) for members, number in sets.items() if len(members) == size]
        members = np.array([members for members, _ in chosen], np.int64)
        rows.append((members, np.array([number for _, number in chosen], np.int64)))
    return killing_sets(brokers, rows)
