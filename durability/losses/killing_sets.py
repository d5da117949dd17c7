"""Killing sets of a cluster, reduced to the minimal ones.

A killing set is a set of nodes (brokers or racks) whose loss breaks at least one partition. It is minimal if no other killing set
of the cluster is a part of it. Nodes are numbers from 0 to N - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
WIDEST = 2**62
"""The ids of sets stay below this number, so that they fit into 64 bits."""
CELLS = 20_000_000
"""The most cells of a matrix that compares sets with sets."""


@dataclass(frozen=True)
class KillingSets:
    """Killing sets by size.

    by_size: for each size s, an n x s matrix of nodes (each row ascending, no row twice), and the number of partitions that each
    set breaks, as n numbers.
    """

    nodes: int
    by_size: Mapping[int, tuple[Ints, Ints]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(members) for members, _ in self.by_size.values())

    def of(self, size: int) -> Ints:
        """The sets of one size, as an n x size matrix."""
        return self.by_size[size][0] if size in self.by_size else np.empty((0, size), np.int64)

    def first(self, most: int) -> list[tuple[list[int], int]]:
        """At most `most` sets with their numbers of partitions: the smallest first, then those that break most, then by node."""
        found: list[tuple[list[int], int]] = []
        for size in sorted(self.by_size):
            members, partitions = self.by_size[size]
            wanted = most - len(found)
            if wanted <= 0:
                break
            if len(members) > wanted:
                fewest = np.partition(partitions, -wanted)[-wanted]
                members, partitions = members[partitions >= fewest], partitions[partitions >= fewest]
            order = np.lexsort((*reversed(members.T), -partitions))[:wanted]
            found += zip(members[order].tolist(), partitions[order].tolist(), strict=True)
        return found


def killing_sets(nodes: int, rows: Iterable[tuple[Ints, Ints]]) -> KillingSets:
    """Killing sets from matrices of one size each, with the numbers of partitions. Equal rows become one, and are summed."""
    parts: dict[int, list[tuple[Ints, Ints]]] = {}
    for members, partitions in rows:
        if len(members):
            parts.setdefault(members.shape[1], []).append((np.sort(members, axis=1), partitions))
    by_size = {}
    for size, found in parts.items():
        members = np.concatenate([part for part, _ in found])
        partitions = np.concatenate([part for _, part in found])
        _, first, place = np.unique(_ids(members, nodes), return_index=True, return_inverse=True)
        summed = np.zeros(len(first), np.int64)
        np.add.at(summed, place.reshape(-1), partitions)
        by_size[size] = members[first], summed
    return KillingSets(nodes, by_size)


def minimal(sets: KillingSets) -> KillingSets:
    """The sets that contain no other one.

    A partition's own killing sets have one size, but a set of another partition may be a part of them. Smaller sets are reduced
    first, because a part of a set that isn't minimal itself contains a minimal set.
    """
    kept: dict[int, tuple[Ints, Ints]] = {}
    for size in sorted(sets.by_size):
        members, partitions = sets.by_size[size]
        for smaller, (parts, _) in sorted(kept.items()):
            free = ~_contains(members, parts, sets.nodes, smaller)
            members, partitions = members[free], partitions[free]
        if len(members):
            kept[size] = members, partitions
    return KillingSets(sets.nodes, kept)


def _contains(members: Ints, parts: Ints, nodes: int, smaller: int) -> NDArray[np.bool_]:
    """For each row of `members`, is a row of `parts` (of `smaller` nodes) a part of it?"""
    if smaller == 1:
        killers = np.zeros(nodes, bool)
        killers[parts[:, 0]] = True
        return np.asarray(killers[members].any(axis=1))
    size = members.shape[1]
    if comb(size, smaller) > smaller * len(parts):
        return _contains_by_matrix(members, parts, nodes)
    found = np.zeros(len(members), bool)
    for chosen in combinations(range(size), smaller):
        left = ~found
        both = _ids(np.concatenate([members[left][:, chosen], parts]), nodes)
        found[left] = np.isin(both[: -len(parts)], both[-len(parts) :])
    return found


def _contains_by_matrix(members: Ints, parts: Ints, nodes: int) -> NDArray[np.bool_]:
    """`_contains` for large sets: these have more parts than there are sets to look for."""
    found = np.zeros(len(members), bool)
    step = max(1, CELLS // max(nodes, parts.size))
    for start in range(0, len(members), step):
        rows = members[start : start + step]
        has = np.zeros((len(rows), nodes), bool)
        has[np.arange(len(rows))[:, None], rows] = True
        found[start : start + step] = np.any(np.all(has[:, parts], axis=2), axis=1)
    return found


def _ids(members: Ints, nodes: int) -> Ints:
    """A number for each row, equal for equal rows alone."""
    ids, width = members[:, 0], nodes
    for column in members.T[1:]:
        if width > WIDEST // nodes:
            _, ids = np.unique(ids, return_inverse=True)
            ids, width = ids.reshape(-1), len(ids)
        ids, width = ids * nodes + column, width * nodes
    return ids
