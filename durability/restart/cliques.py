"""Nodes of which no two may stop together, as many as possible: the largest clique, or the largest one found."""

from __future__ import annotations

from durability.restart.rules import Rules, bits

BRANCHES = 30_000
"""Steps of the search for a larger clique."""
DEEPEST = 500
"""The most nodes of a clique that is searched further."""
STARTS = 60
"""Nodes from which a clique is grown first."""


def largest_clique(rules: Rules) -> int:
    """A mask of nodes that all need waves of their own.

    Branch and bound (Tomita and Seki 2003): a colouring bounds how far a clique can grow. Ends after BRANCHES steps with the best
    one so far.
    """
    order = sorted(range(len(rules.ids)), key=lambda n: (-rules.apart[n].bit_count(), n))
    place = {node: n for n, node in enumerate(order)}
    # Nodes in order of degree, so that colourings start with those of many conflicts.
    apart = [sum(1 << place[other] for other in bits(rules.apart[node])) for node in order]
    found = _Search(apart)
    found.grow(0, 0, (1 << len(order)) - 1)
    return sum(1 << order[n] for n in bits(found.best))


class _Search:
    def __init__(self, apart: list[int]):
        self.apart = apart
        self.best = _greedy(apart)
        self.left = BRANCHES

    def grow(self, clique: int, size: int, candidates: int) -> None:
        """Every clique of `clique` (with `size` nodes) and of candidates that is larger than the best one."""
        for node, colour in reversed(self._coloured(candidates, self.best.bit_count() - size)):
            if size + colour <= self.best.bit_count() or self.left <= 0 or size >= DEEPEST:
                return
            self.left -= 1
            larger, rest = clique | 1 << node, candidates & self.apart[node]
            if rest:
                self.grow(larger, size + 1, rest)
            elif size + 1 > self.best.bit_count():
                self.best = larger
            candidates &= ~(1 << node)

    def _coloured(self, candidates: int, least: int) -> list[tuple[int, int]]:
        """The candidates with their colours, ascending, without those of colours up to `least`: a clique has each colour once."""
        found, colour = [], 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                lowest = free & -free
                node = lowest.bit_length() - 1
                candidates ^= lowest
                free &= ~(self.apart[node] | lowest)
                if colour > least:
                    found.append((node, colour))
        return found


def _greedy(apart: list[int]) -> int:
    """The largest of the cliques that grow from the first nodes, always by the node that leaves the most candidates."""
    best = 0
    for start, others in enumerate(apart[:STARTS]):
        clique, candidates = 1 << start, others
        while candidates and clique.bit_count() + candidates.bit_count() > best.bit_count():
            node = max(bits(candidates), key=lambda n: ((apart[n] & candidates).bit_count(), -n))
            clique |= 1 << node
            candidates &= apart[node]
        if clique.bit_count() > best.bit_count():
            best = clique
    return best
