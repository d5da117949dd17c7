"""What waves must obey: of each partition's replicas, a wave takes no more than the partition can spare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations


@dataclass(frozen=True)
class Partitions:
    """Partitions with the same replicas and minimum.

    replicas, isr: broker ids. minimum: the effective min.insync.replicas, None if unknown. count: how many partitions; 0 for the
    replicas before a reassignment, because its partitions are counted with the replicas that it leaves.
    example: one of them, as topic and number.
    """

    replicas: frozenset[int]
    isr: frozenset[int]
    minimum: int | None
    count: int
    example: tuple[str, int]

    def capacity(self, members: frozenset[int], margin: int) -> int | None:
        """How many of `members` may stop at once while acks=all writes stay accepted; None if unknown."""
        return None if self.minimum is None else len(members) - self.minimum - margin


@dataclass
class Constraints:
    """The sets that limit waves, by their broker ids: `capacity` is the smallest one of the partitions with these replicas.

    known: the same without the partitions whose minimum is unknown, for bounds. counts: how many partitions have these replicas
    and can spare at least one. examples: one of them.
    """

    brokers: tuple[int, ...]
    capacity: dict[frozenset[int], int] = field(default_factory=dict)
    known: dict[frozenset[int], int] = field(default_factory=dict)
    counts: dict[frozenset[int], int] = field(default_factory=lambda: defaultdict(int))
    examples: dict[frozenset[int], tuple[str, int]] = field(default_factory=dict)

    def add(
        self, members: frozenset[int], capacity: int, count: int, example: tuple[str, int], known: bool = True
    ) -> None:
        """Partitions that can spare `capacity` (at least 1) of `members`. known: False if that is an assumption."""
        self.counts[members] += max(count, 1)
        if known:
            self.known[members] = min(capacity, self.known.get(members, capacity))
        if capacity < self.capacity.get(members, len(members) + 1):
            self.capacity[members], self.examples[members] = capacity, example

    def broken_by(self, wave: Iterable[int]) -> list[frozenset[int]]:
        """The sets of which the wave takes too many, those of most partitions first."""
        taken = set(wave)
        broken = [members for members, capacity in self.capacity.items() if len(members & taken) > capacity]
        return sorted(broken, key=lambda members: (-self.counts[members], sorted(members)))


def pairs_of(
    broken: Iterable[frozenset[int]], waves: Iterable[set[int]]
) -> dict[tuple[int, int], list[frozenset[int]]]:
    """By pair of brokers of one wave, the broken sets that have both."""
    found: dict[tuple[int, int], list[frozenset[int]]] = defaultdict(list)
    for members in broken:
        for wave in waves:
            for pair in combinations(sorted(members & wave), 2):
                found[pair].append(members)
    return found


def constraints(
    partitions: Iterable[Partitions], brokers: Iterable[int], *, margin: int, whole: bool
) -> tuple[Constraints, list[tuple[Partitions, str]]]:
    """The constraints, and the partitions that bind nothing with what happens to them: `offline`, `rejects` or `unknown`.

    whole: capacities count the ISR as it is; else all replicas, as if they were in sync. A partition without capacity is
    `unavoidable`: each of its brokers stops its writes once, whatever the waves. One whose minimum is unknown is taken to spare
    one replica.
    """
    made, unavoidable = Constraints(tuple(sorted(brokers))), []
    for same in partitions:
        members = same.isr if whole else same.replicas
        capacity = same.capacity(members, margin)
        if capacity is None:
            if same.count:
                unavoidable.append((same, "unknown"))
            if len(members) > 1:
                # Whatever the minimum is, one replica at a time is never worse.
                made.add(members, 1, same.count, same.example, known=False)
            continue
        at_all = capacity + margin
        if at_all >= 1:
            # A margin that can't be kept still leaves the minimum.
            made.add(members, capacity if capacity >= 1 else at_all, same.count, same.example)
        if capacity < 1 and same.count:
            happens = "offline" if len(members) <= 1 else "rejects"
            unavoidable.append((same, happens if at_all < 1 else "margin"))
    return made, unavoidable
