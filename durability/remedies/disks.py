"""Failed disks of live brokers, and the copies that only these disks have.

A broker whose disk was replaced returns with empty replicas. If it is the only member of a partition's ISR, it can lead again.
The other replicas then delete what they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from durability.remedies.cluster import ClusterFacts, Fragile
from durability.remedies.steps import restart

EMPTY = "A broker with an empty disk can lead again, and the other replicas then delete their records"


def replaced(change: str, act: str, facts: ClusterFacts, brokers: Sequence[int]) -> str:
    """Advice to replace the failed disks of brokers and restart these; or to save what the disks have, if nothing else has it.

    change, act: as `restart` takes them.
    """
    return only_copies(facts, brokers) or restart(change, act, facts, brokers)


def only_copies(facts: ClusterFacts, brokers: Sequence[int], provided: bool = False) -> str | None:
    """Why the failed disks of these brokers must not be replaced by empty ones; None if nothing is known that forbids it.

    provided: does a provider replace disks, and not its customers?

    >>> of_broker = {3: Fragile(offline=2, first_offline="orders-0")}
    >>> only_copies(ClusterFacts(fragile=Fragile(by_broker=of_broker)), [3])  # doctest: +ELLIPSIS
    "Don't replace the disk of broker 3 with an empty one: nothing else that is up has the copies in sync of 2 partitions..."
    >>> only_copies(ClusterFacts(fragile=Fragile(by_broker=of_broker)), [2])
    """
    of_brokers = (facts.fragile.by_broker if facts.fragile else None) or {}
    holding = [broker for broker in brokers if broker in of_brokers and of_brokers[broker].offline]
    if not holding:
        return None
    which = (
        f"the disk of broker {holding[0]}"
        if len(holding) == 1
        else f"the disks of brokers {', '.join(map(str, holding))}"
    )
    what = " and ".join(dict.fromkeys(_partitions(of_brokers[broker]) for broker in holding))
    empty = "an empty one" if len(holding) == 1 else "empty ones"
    dont = "The cluster's provider must not" if provided else "Don't"
    repair = f"{'First ask the provider to repair' if provided else 'Repair'} {_rest(len(holding))}"
    return f"{dont} replace {which} with {empty}: nothing else that is up has the copies in sync of {what}. {EMPTY}. {repair}"


def _rest(disks: int) -> str:
    """What has to be done with failed disks, after the verb."""
    if disks == 1:
        return (
            "the disk, or copy what it has to a new one, and restart the broker. If its content is lost, first elect another"
            " replica that is up, if there is one (kafka-leader-election, unclean). Acknowledged records that it lacks are then"
            " lost"
        )
    return (
        "the disks, or copy what they have to new ones, and restart the brokers. If the content of one is lost, first elect"
        " other replicas that are up, if there are any (kafka-leader-election, unclean). Acknowledged records that these lack"
        " are then lost"
    )


def _partitions(of: Fragile) -> str:
    """The partitions whose only copies a broker's failed disk has."""
    return (
        f"partition {of.first_offline}"
        if of.offline == 1
        else f"{of.offline:,} partitions (such as {of.first_offline})"
    )
