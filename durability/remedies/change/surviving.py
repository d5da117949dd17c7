"""What else lets a topic survive the loss of a rack, where no placement does with the min.insync.replicas of its target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from durability.remedies.moves.model import Broker, Target

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
    found = _least(sizes, racks, target.min_isr or 1)
    number = max(sizes)
    words = {"replicas": f"{number} replicas", "racks": f"{len(racks)} racks"}  # it takes three of each, at least
    if found is not None:
        return RAISE.format(**words, least=found)
    for more in range(number + 1, number + 1 + TRIED):
        found = _least((more,), racks, target.min_isr or 1)
        if found is not None and (most is None or more <= most):
            return MORE.format(**words, more=f"{more} replicas", least=found)
    return FEW_RACKS


def _least(sizes: Iterable[int], racks: Sequence[int], least: int) -> int | None:
    """The lowest min.insync.replicas, `least` or higher, with which an even spread survives the loss of any rack.

    >>> _least((3,), [2, 2, 2], 2), _least((5,), [2, 2, 2], 2), _least((4,), [2, 2, 2], 2), _least((5,), [3, 3, 1], 2)
    (2, 3, None, 3)
    >>> _least((3, 5), [2, 2, 2], 2), _least((4,), [4, 4], 2)
    (None, None)
    """
    lowest, highest = least, max(sizes := list(sizes))
    for size in sizes:
        if size > sum(racks):
            return None
        fullest = next(n for n in range(1, size + 1) if sum(min(n, brokers) for brokers in racks) >= size)
        lowest, highest = max(lowest, fullest + 1), min(highest, size - fullest)
    return lowest if lowest <= highest else None
