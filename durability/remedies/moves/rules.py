"""What the target of a topic asks of the racks of a partition, and how few replicas must be new for it.

Replicas of a partition are counted by rack: a list with a number for each rack of the cluster, and a last one for brokers
without a rack. Every rule here is kept by a more even list if an uneven list of the same sum keeps it. So the most even list that
can be reached decides what is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from durability.remedies.moves.model import Target

UNRACKED = -1
"""The place of brokers without a rack in a list of counts."""


@dataclass(frozen=True)
class Rule:
    """A target in a cluster of so many racks.

    copies: the fewest replicas. at_most: the most; None for any. span: racks that replicas must span, as far as the cluster has
    them; 0 if nothing is asked: replicas on brokers without a rack may stay. least: the min.insync.replicas with which the topic
    must survive the loss of a rack; None if it needn't.
    """

    copies: int
    at_most: int | None
    span: int
    own_racks: bool
    balanced: bool
    acked: tuple[int, int] | None
    least: int | None
    racks: int

    @property
    def by_rack(self) -> bool:
        """Does the rule ask for racks that the cluster has? Then new replicas need a broker with a rack."""
        asks = self.span > 1 or self.own_racks or self.balanced or self.acked is not None or self.least is not None
        return asks and self.racks > 0

    def size(self, now: int) -> int:
        """How many replicas a partition gets that has `now`."""
        wanted = max(now, self.copies)
        return wanted if self.at_most is None else min(wanted, max(self.at_most, self.copies))

    def kept_by(self, counts: Sequence[int]) -> bool:
        """Do replicas with these counts by rack keep the rule? A replica without a rack may be in any.

        >>> rule = rule_of(Target(3, racks=2, survives_rack=True, min_isr=2), racks=3)
        >>> rule.kept_by([1, 1, 1, 0]), rule.kept_by([2, 1, 0, 0]), rule.kept_by([1, 1, 0, 1])
        (True, False, False)
        """
        unracked, total = counts[UNRACKED], sum(counts)
        fullest = sorted(counts[:UNRACKED], reverse=True)
        spanned = sum(1 for n in fullest if n)
        if spanned < min(max(self.span, total if self.own_racks else 0), self.racks):
            return False
        if self.balanced and self.racks and (unracked or fullest[0] - fullest[-1] > 1):
            return False
        if self.acked is not None:
            racks, least = self.acked
            if spanned < racks or unracked + sum(fullest[: racks - 1]) >= least:
                return False
        if self.least is not None:
            lost = unracked + (fullest[0] if fullest else 0)
            return lost < self.least <= total - lost
        return True


def rule_of(target: Target, racks: int) -> Rule:
    """The rule of a target with a known replication factor, and a known min ISR if it must survive the loss of a rack."""
    if target.replication_factor is None:
        raise ValueError("the target's replication factor is unknown")
    least = target.min_isr if target.survives_rack else None
    return Rule(
        target.replication_factor,
        target.at_most,
        target.racks or 0,
        target.own_racks,
        target.balanced,
        target.acked,
        least,
        racks,
    )


@dataclass(frozen=True)
class Options:
    """The ways to keep a rule with the fewest new replicas.

    new: how many replicas are new. drops: the racks that lose a replica, one of these tuples.
    """

    new: int
    drops: tuple[tuple[int, ...], ...]


def options(rule: Rule, now: Sequence[int], free: Sequence[int], more: int = 0) -> Options | None:
    """The ways to keep the rule with the fewest new replicas, if at least `more` are dropped that needn't be; None for none.

    now: the rack of each replica, ascending. free: how many brokers can get a new replica, by rack.
    """
    size = rule.size(len(now))
    surplus, missing = max(0, len(now) - size), max(0, size - len(now))
    for dropped in range(surplus + more, len(now) + 1):
        new = missing + dropped - surplus
        ways = sorted(set(combinations(now, dropped)))
        drops = tuple(racks for racks in ways if completes(rule, kept(now, racks, rule.racks), free, new))
        if drops:
            return Options(new, drops)
    return None


def kept(now: Iterable[int], dropped: Iterable[int], racks: int) -> list[int]:
    """The counts by rack of replicas in these racks without the dropped ones."""
    counts = [0] * (racks + 1)
    for rack in now:
        counts[rack] += 1
    for rack in dropped:
        counts[rack] -= 1
    return counts


def completes(rule: Rule, counts: Sequence[int], free: Sequence[int], new: int) -> bool:
    """Can `new` more replicas on free brokers keep the rule?"""
    filled, left = list(counts), list(free)
    for _ in range(new):
        open_racks = [rack for rack, brokers in enumerate(left) if brokers > 0]
        if not open_racks:
            return False
        # Brokers without a rack come last: a replica there helps no rule about racks.
        lowest = min(open_racks, key=lambda rack: (rack == rule.racks, filled[rack]))
        filled[lowest] += 1
        left[lowest] -= 1
    return rule.kept_by(filled)


def next_racks(rule: Rule, counts: Sequence[int], free: Sequence[int], new: int) -> list[int]:
    """The racks for the first of `new` more replicas, after which the others can still keep the rule."""
    verdicts: dict[tuple[int, bool, bool], bool] = {}
    found = []
    for rack, brokers in enumerate(free):
        if brokers <= 0:
            continue
        # Racks that are equally full differ only if the new replica takes their last free broker.
        alike = (counts[rack], brokers > new, rack == rule.racks)
        verdict = verdicts.get(alike) if brokers > new else None
        if verdict is None:
            after, left = list(counts), list(free)
            after[rack] += 1
            left[rack] -= 1
            verdict = verdicts[alike] = completes(rule, after, left, new - 1)
        if verdict:
            found.append(rack)
    return found
