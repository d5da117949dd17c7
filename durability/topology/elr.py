"""The eligible leader replicas (ELR) of a partition (KIP-966)."""

from __future__ import annotations

from collections.abc import Collection


def electable(elr: list[int] | None, replicas: Collection[int] | None) -> list[int] | None:
    """The members of an ELR that can be elected: those among the replicas. None if unknown.

    When a reassignment leaves fewer replicas than min.insync.replicas, Kafka 4.1 to 4.3 puts replicas that it removes into the
    ELR, where they stay until the ISR changes (seen on 4.3.1). Kafka elects no broker without a replica (PartitionChangeBuilder).

    >>> electable([3, 4], [5]), electable([3], [2, 3]), electable([3], None), electable(None, [3])
    ([], [3], [3], None)
    """
    return elr if not elr or replicas is None else [broker for broker in elr if broker in replicas]
