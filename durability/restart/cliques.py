"""Nodes of which no two, or no three, may stop together, as many as are found."""

from __future__ import annotations

from durability.restart.rules import Rules, bits

BRANCHES = 30_000
"""Steps of the search for a larger clique."""
DEEPEST = 500
"""The most nodes of a clique that is searched further."""
STARTS = 60
"""Nodes from which a clique is grown first."""


def largest_clique(rules: Rules, waves: int) -> int:
    """A mask of nodes that all need waves of their own.

    Branch and bound (Tomita and Seki 2003): a colouring bounds how far a clique can grow. Ends after BRANCHES steps with the best
    one so far.

    waves: a plan has so many. No clique is larger, so one of that size ends the search.
    """
    order = sorted(range(len(rules.ids)), key=lambda n: (-rules.apart[n].bit_count(), n))
    place = {node: n for n, node in enumerate(order)}
    # Nodes in order of degree, so that colourings start with those of many conflicts.
    apart = [sum(1 << place[other] for other in bits(rules.apart[node])) for node in order]
    found = _Search(apart, waves)
    found.grow(0, 0, (1 << len(order)) - 1)
    return sum(1 << order[n] for n in bits(found.best))


class _Search:
    def __init__(self, apart: list[int], enough: int):
        self.apart = apart
        self.enough = enough
        self.best = _greedy(apart, enough)
        self.left = BRANCHES

    def grow(self, clique: int, size: int, candidates: int) -> None:
        """Every clique of `clique` (with `size` nodes) and of candidates that is larger than the best one."""
        for node, colour in reversed(self._coloured(candidates, self.best.bit_count() - size)):
            best = self.best.bit_count()
            if size + colour <= best or best >= self.enough or self.left <= 0 or size >= DEEPEST:
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


def _greedy(apart: list[int], enough: int) -> int:
    """The largest of the cliques that grow from the first nodes, always by the node that leaves the most candidates.

    enough: the size at which it stops looking for a larger one.
    """
    best = 0
    for start, others in enumerate(apart[:STARTS]):
        if best.bit_count() >= enough:
            break
        clique, candidates = 1 << start, others
        while candidates and clique.bit_count() + candidates.bit_count() > best.bit_count():
            node = max(bits(candidates), key=lambda n: ((apart[n] & candidates).bit_count(), -n))
            clique |= 1 << node
            candidates &= apart[node]
        if clique.bit_count() > best.bit_count():
            best = clique
    return best


def largest_without_three(rules: Rules) -> int:
    """A mask of nodes of which no three may stop together, as many as are found: waves take at most two of them.

    It grows from the pairs that conflict with the most third nodes, always by the node that leaves the most candidates.
    """
    if not any(most == 2 for _, most in rules.wide):
        return 0
    third = _third(rules)
    count, best = len(rules.ids), 0
    pairs = [(n, other) for n in range(count) for other in range(n)]
    pairs.sort(key=lambda pair: -third[pair[0]][pair[1]].bit_count())
    for first, second in pairs[:STARTS]:
        chosen, candidates = 1 << first | 1 << second, third[first][second]
        # By candidate, the nodes that it leaves as candidates.
        leaves = [third[first][n] & third[second][n] for n in range(count)]
        while candidates:
            node = max(bits(candidates), key=lambda n: ((leaves[n] & candidates).bit_count(), -n))
            chosen |= 1 << node
            candidates &= leaves[node] & ~(1 << node)
            leaves = [mask & others for mask, others in zip(leaves, third[node], strict=True)]
        if chosen.bit_count() > best.bit_count():
            best = chosen
    return best


def _third(rules: Rules) -> list[list[int]]:
    """By pair of nodes, the nodes that must not be the third to stop with them."""
    count = len(rules.ids)
    every = (1 << count) - 1
    third = [[0] * count for _ in range(count)]
    for mask, most in rules.wide:
        if most == 2:
            members = list(bits(mask))
            for n in members:
                for other in members:
                    third[n][other] |= mask
    for n in range(count):
        for other in range(count):
            if rules.apart[n] >> other & 1:
                third[n][other] = every
            else:
                # A third node that conflicts with one of the two is none with both.
                third[n][other] |= rules.apart[n] | rules.apart[other]
            third[n][other] &= ~(1 << n | 1 << other)
    return third
