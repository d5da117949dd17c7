"""The rules for a wave as bit masks: bit n of a mask is the n-th node in order of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """ids: of the nodes, ascending. apart: by node, those that must not stop with it. wide: sets of which a wave takes at most
    so many, more than one. wide_of: by node, the sets that it is in."""

    ids: tuple[int, ...]
    apart: tuple[int, ...]
    wide: tuple[tuple[int, int], ...]
    wide_of: tuple[tuple[tuple[int, int], ...], ...]

    def allows(self, wave: int, node: int) -> bool:
        """May the node stop together with the wave?"""
        if self.apart[node] & wave:
            return False
        return all((mask & wave).bit_count() < most for mask, most in self.wide_of[node])

    def mask(self, nodes: Iterable[int]) -> int:
        """The mask of nodes with these ids."""
        place = {id: n for n, id in enumerate(self.ids)}
        return sum(1 << place[id] for id in set(nodes))

    def named(self, mask: int) -> tuple[int, ...]:
        """The ids of the nodes in a mask."""
        return tuple(self.ids[n] for n in bits(mask))


def rules(ids: Iterable[int], capacity: Mapping[frozenset[int], int]) -> Rules:
    """The rules for nodes. capacity: sets of nodes, each with how many of it a wave takes at most."""
    ordered = tuple(sorted(ids))
    place = {id: n for n, id in enumerate(ordered)}
    apart, wide = [0] * len(ordered), []
    for members, most in capacity.items():
        mask = sum(1 << place[id] for id in members)
        if most == 1:
            for id in members:
                apart[place[id]] |= mask
        elif most < len(members):
            wide.append((mask, most))
    wide_of: list[list[tuple[int, int]]] = [[] for _ in ordered]
    for mask, most in wide:
        for n in bits(mask):
            wide_of[n].append((mask, most))
    apart = [mask & ~(1 << n) for n, mask in enumerate(apart)]
    return Rules(ordered, tuple(apart), tuple(wide), tuple(map(tuple, wide_of)))


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending.

    >>> list(bits(0b1010))
    [1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
