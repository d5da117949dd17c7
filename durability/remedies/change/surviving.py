"""What else lets a topic survive the loss of a rack, where no placement does with the min.insync.replicas of its target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from durability.remedies.moves.model import Broker, Target
from durability.remedies.moves.rules import completes, rule_of

FEW_RACKS = "the racks of the live brokers don't suffice: add a rack, or give it a tier that asks for fewer"
RAISE = (
    "with {replicas} in {racks} that takes min.insync.replicas={least}: raise it and make a new plan, or give it a tier that"
    " asks for less"
)
MORE = (
    "with {replicas} in {racks} no min.insync.replicas does: give each partition {more} and min.insync.replicas={least}, or"
    " give it a tier that asks for less"
)
TRIED = 2
"""How many replicas beyond those of the target are tried."""


def without_placement(
    target: Target, sizes: Collection[int], brokers: Iterable[Broker], avoid: Collection[int], most: int | None
) -> str:
    """Why no placement survives the loss of a rack, and what else helps.

    sizes: the numbers of replicas that partitions get. most: how many the tier allows; None for any.
    """
    capacity = Counter(b.rack for b in brokers if b.live and b.room and b.rack is not None and b.id not in avoid)
    racks = [capacity[rack] for rack in sorted(capacity)]
    found = _least(target, sizes, racks)
    number = max(sizes)
    words = {"replicas": f"{number} replicas", "racks": f"{len(racks)} racks"}  # it takes three of each, at least
    if found is not None:
        return RAISE.format(**words, least=found)
    for more in range(number + 1, number + 1 + TRIED):
        found = _least(target, (more,), racks)
        if found is not None and (most is None or more <= most):
            return MORE.format(**words, more=f"{more} replicas", least=found)
    return FEW_RACKS


def _least(target: Target, sizes: Collection[int], racks: Sequence[int]) -> int | None:
    """The lowest min.insync.replicas, that of the target or higher, with which racks of so many brokers suffice; None for none.

    sizes: the numbers of replicas that partitions get.

    >>> target = Target(3, survives_rack=True, min_isr=2)
    >>> [_least(target, sizes, [2, 2, 2]) for sizes in ((3,), (5,), (4,), (3, 5))], _least(target, (5,), [3, 3, 1])
    ([2, 3, None, None], 3)
    >>> _least(target, (4,), [4, 4]), _least(replace(target, acked=(2, 2)), (5,), [2, 2, 2])
    (None, 3)
    """
    tried = range(target.min_isr or 1, max(sizes) + 1)
    return next((least for least in tried if all(_suffice(target, size, racks, least) for size in sizes)), None)


def _suffice(target: Target, size: int, racks: Sequence[int], least: int) -> bool:
    """Can so many replicas be placed as the target asks, with this min.insync.replicas?"""
    # What acks=all guarantees rises with it.
    acked = None if target.acked is None else (target.acked[0], max(target.acked[1], least))
    asked = replace(target, replication_factor=size, at_most=None, min_isr=least, acked=acked)
    none = [0] * (len(racks) + 1)
    return completes(rule_of(asked, len(racks)), none, [*racks, 0], size)
