"""How many sets of k nodes break something, and how likely k random failures do.

`bad` is exact for k = 1, 2 and 3 and lists no k-sets: a cluster of 5,000 brokers has 20 billion sets of three. `estimate` is for
larger k. A probability is that of k nodes that fail at once, each set of k nodes being as likely as any other. It isn't the
probability of a failure in a year.
"""

from __future__ import annotations

from math import comb, expm1, log1p

import numpy as np

from durability.losses.killing_sets import Ints, KillingSets

EXACT = (1, 2, 3)
"""The k that `bad` counts."""
SHARES = (1, 2, 5, 10)
"""The percentages of nodes for which a larger k is estimated."""
WORDS_AT_ONCE = 4_000_000
"""The most 64-bit words that one step of `_triangles` compares."""


def bad(minimal: KillingSets) -> dict[int, int]:
    """For each k of EXACT, how many sets of k nodes contain a minimal killing set.

    A k-set without single killers lies in the other B nodes. There, pairs are the edges of a graph. e edges lie in e (B - 2)
    triples. A triple with two edges is counted twice, and one with three edges three times: the pairs of edges that meet
    (Σ C(degree, 2)) and the triangles correct that.
    """
    nodes, singles, edges = minimal.nodes, len(minimal.of(1)), minimal.of(2)
    others = nodes - singles
    degrees = np.bincount(edges.reshape(-1), minlength=nodes).tolist()
    with_edge = len(edges) * (others - 2) - sum(comb(degree, 2) for degree in degrees) + _triangles(edges, nodes)
    return {
        1: singles,
        2: comb(nodes, 2) - comb(others, 2) + len(edges),
        3: comb(nodes, 3) - comb(others, 3) + with_edge + len(minimal.of(3)),
    }


def probability(count: int, nodes: int, k: int) -> float:
    """The share of `count` sets in all sets of k nodes."""
    return count / comb(nodes, k)


def estimate(minimal: KillingSets, k: int) -> float:
    """About how likely k random nodes contain a minimal killing set, as if sets were independent of each other.

    1 - Π (1 - p), where p is the probability that the k nodes contain one set (Cidon et al., "Copysets", 2013, count copysets
    in this way). Single killers are counted exactly, and the rest among the other nodes.
    """
    nodes, singles = minimal.nodes, len(minimal.of(1))
    others = nodes - singles
    if k > others:
        return 1.0
    survived = comb(others, k) / comb(nodes, k)
    log_spared = 0.0
    for size, (members, _) in minimal.by_size.items():
        if 1 < size <= k:
            p = comb(k, size) / comb(others, size)
            if p >= 1:
                return 1.0
            log_spared += len(members) * log1p(-p)
    return 1 - survived - survived * expm1(log_spared)


def larger(nodes: int) -> list[int]:
    """The k that are estimated: SHARES of the nodes, rounded, where that is more than EXACT."""
    rounded = dict.fromkeys(round(nodes * share / 100) for share in SHARES)
    return [k for k in rounded if k > max(EXACT)]


def _triangles(edges: Ints, nodes: int) -> int:
    """The number of triples of which all three pairs are edges."""
    if not len(edges):
        return 0
    width = (nodes + 63) // 64 * 64
    near = np.zeros((nodes, width), bool)
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    bits = np.packbits(near, axis=1).view(np.uint64)
    step = max(1, WORDS_AT_ONCE // bits.shape[1])
    found = 0
    for start in range(0, len(edges), step):
        one, other = edges[start : start + step].T
        found += int(np.bitwise_count(bits[one] & bits[other]).sum(dtype=np.int64))
    return found // 3
