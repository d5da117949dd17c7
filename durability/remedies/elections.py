"""Which replica may lead a partition that has no leader, and what each election costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from durability.catalogue.listing import named, with_noun
from durability.remedies import providers
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import UNAVAILABLE, Elect
from durability.remedies.steps import Remedy, Step, advice

ELECTION_MISSING = (
    "Replicas that can lead are up, but no leader is elected. See the logs of the active controller and of these brokers, and"
    " whether the brokers just started. This lists such partitions:"
)
PROVIDER_ELECTS = (
    "Replicas that can lead are up, but no leader is elected. Ask the cluster's provider to elect one: it runs the controllers."
    " This lists such partitions:"
)
NEW_DISK = (
    "Since Kafka 3.7, KRaft doesn't elect a replica by itself if its broker started with an empty disk. If that is so, stop the"
    " broker, and don't start it so again: bring back its old disk. If that is lost, elect another replica that is up"
    " (kafka-leader-election, unclean) while the broker is down. While it runs, every election takes the empty replica, and the"
    " others delete their records."
)
"""Seen on 4.3.1: a preferred election, an unclean one, or another start makes the empty replica lead, and 50 records of two
others were gone. With the broker down, an unclean election took one of the others, and the empty replica followed it."""
ASKS = "This asks the controller to elect a leader that has all acknowledged records:"
ONLY_IN_SYNC = "Only a replica of the ISR, or of the ELR if the ISR is empty, can be elected without losing records."
LAST_KNOWN = (
    "If both are empty, the controller elects the last known leader (LastKnownElr) as soon as that broker is unfenced. Records"
    " that it lacks are then lost."
)
"""`PartitionChangeBuilder.canElectLastKnownLeader` (KIP-966)."""
LED_LAST = (
    "No replica is in the ISR or ELR of {}. The controller elects the last known leader (LastKnownElr) as soon as that broker is"
    " up, also with unclean leader election off. Acknowledged records that it lacks are then lost."
)
MOVE_CONTROLLER = (
    "With ZooKeeper, delete the node /controller (zookeeper-shell): another broker becomes the controller, and elects a leader"
    " among the replicas in sync. A preferred election helps only if the partition's first replica is in sync."
)
DELETED = (
    "First see whether the topic is being deleted (zookeeper-shell: ls /admin/delete_topics): its partitions then have no leader."
    " Its deletion ends when all its brokers are up."
)
OUTDATED = (
    "For {}, the metadata still names a leader that is down, although a replica in sync is up. When the broker's session ends,"
    " the controller elects that replica. If it doesn't, see the active controller's log."
)
CONTROLLERS_FIRST = "First restore the controller quorum: without it no leader is elected and no replica is moved"
SHOWN = 10
"""The most partitions with a command."""


def missing(facts: ClusterFacts) -> Step:
    """Where to look if replicas that can lead are up and none does."""
    return Step(UNAVAILABLE, (PROVIDER_ELECTS if providers.moves_replicas(facts.provider) else ELECTION_MISSING,))


def elect(topic: str, electable: Sequence[int], facts: ClusterFacts, only: Sequence[Mapping[str, int]] = ()) -> Remedy:
    """The remedy for partitions without a leader although their replicas are up.

    electable: those of which a replica of the ISR, or of the ELR if the ISR is empty, is up. KRaft's preferred election takes the
    first such replica, so no record is lost. ZooKeeper's controller takes no other than the partition's first replica.
    only: those of electable of which just one such replica is up, each with its `partition` and `broker`.
    """
    if facts.led is False:
        return advice(CONTROLLERS_FIRST)
    look = missing(facts)
    if providers.moves_replicas(facts.provider):
        return [look]
    if not electable:
        return [
            look,
            Step(about=(ONLY_IN_SYNC, *(() if facts.elr is False or facts.kraft is False else (LAST_KNOWN, NEW_DISK)))),
        ]
    if facts.kraft is False:
        return [look, Step(about=(DELETED, MOVE_CONTROLLER))]
    # Older brokers don't tell the controller which log dir a replica is in, so one with an empty disk leads at once.
    of_broker = {} if facts.before(3, 7) else {each["partition"]: each["broker"] for each in only}
    asks = Step(about=(*_new_disks(of_broker), ASKS))
    return [look, asks, *(Step(Elect(topic, n, of_broker.get(n)), alone=True) for n in electable[:SHOWN])]


def expected(evidence: Mapping[str, Any], facts: ClusterFacts) -> Remedy:
    """What elections take once brokers are back, or earlier, in partitions without a leader. evidence: of partition-health."""
    led, provided, steps = facts.led is not False, providers.runs_brokers(facts.provider), []
    if evidence.get("first") and not provided:
        steps.append(Step(about=_order(evidence["first"], evidence["unclean"], led)))
    if evidence.get("last_known") and facts.elr is not False and not provided:
        steps.append(Step(about=(LED_LAST.format(named(evidence["last_known"])),)))
    if evidence.get("overtaken") and evidence["unclean"] is not False and not provided:
        steps.append(Step(about=_overtaken(evidence["overtaken"], evidence["unclean"], led)))
    if evidence.get("outdated") and led:
        then = (f"Only then: {MOVE_CONTROLLER}",) if facts.kraft is False else ()
        steps.append(Step(about=(OUTDATED.format(named(evidence["outdated"])), *then)))
    return steps


def _new_disks(of_broker: Mapping[int, int]) -> tuple[str, ...]:
    """What else explains that a replica isn't elected, and how an election then harms. of_broker: the one to elect, by partition.

    >>> _new_disks({4: 3})[0]
    'Only broker 3 can lead partition 4.'
    >>> _new_disks({4: 3, 2: 1})[0]
    'One broker alone can lead each of these: partition 2 (broker 1), partition 4 (broker 3).'
    """
    if not of_broker:
        return ()
    brokers = sorted(set(of_broker.values()))
    if len(brokers) == 1:
        return f"Only broker {brokers[0]} can lead {named(sorted(of_broker))}.", NEW_DISK
    each = ", ".join(f"partition {partition} (broker {broker})" for partition, broker in sorted(of_broker.items()))
    return f"One broker alone can lead each of these: {each}.", NEW_DISK


def _order(first: Sequence[Mapping[str, Any]], unclean: bool | None, led: bool) -> tuple[str, ...]:
    """Which brokers start before others, and what happens if they don't. With unclean leader election off, any order is safe.

    first: `brokers` that have all acknowledged records, and the offline `partitions` whose other replicas may lack some.
    unclean: do controllers elect unclean leaders? None: unknown. led: may a controller lead, so that a setting can be changed?

    >>> _order([{"brokers": [3], "partitions": [0, 4]}], True, led=False)  # doctest: +NORMALIZE_WHITESPACE
    ('Start broker 3 before the other replicas of partitions 0, 4: these may lack acknowledged records.',
     'Unclean leader election is on: if another replica starts first, it leads, and the records that it lacks are deleted.')
    >>> _order([{"brokers": [2, 3], "partitions": [1]}], False, led=True)  # doctest: +NORMALIZE_WHITESPACE
    ('Until one of brokers 2, 3 is up, partition 1 stays offline: the other replicas may lack acknowledged records.',
     'No unclean leader is elected here, so the brokers may start in any order: no other replica leads before.')
    """
    sentences = []
    for found in first:
        brokers, partitions = found["brokers"], named(found["partitions"])
        who = with_noun(brokers, "broker")
        if unclean is False:
            until = who if len(brokers) == 1 else f"one of {who}"
            stay = "stays" if len(found["partitions"]) == 1 else "stay"
            sentences.append(
                f"Until {until} is up, {partitions} {stay} offline: the other replicas may lack acknowledged records."
            )
        else:
            sentences.append(
                f"Start {who} before the other replicas of {partitions}: these may lack acknowledged records."
            )
    if unclean is False:
        off = "No unclean leader is elected here, so the brokers may start in any order: no other replica leads before."
        return (*sentences, off)
    on = "Unclean leader election is on: if" if unclean else "If unclean leader election is on and"
    sentences.append(f"{on} another replica starts first, it leads, and the records that it lacks are deleted.")
    if led:
        sentences.append(
            "Or first set unclean.leader.election.enable=false on the topic: then the brokers may start in any order."
        )
    return tuple(sentences)


def _overtaken(partitions: Sequence[int], unclean: bool | None, led: bool) -> tuple[str, ...]:
    """What an unclean election deletes while the brokers that have all records are down, although other replicas are up.

    unclean, led: as for `_order`.

    >>> _overtaken([0], True, led=False)  # doctest: +NORMALIZE_WHITESPACE
    ('Unclean leader election is on: a replica of partition 0 that is up and out of sync can become the leader, and the
    acknowledged records that it lacks are then deleted.',)
    """
    on = "Unclean leader election is on:" if unclean else "If unclean leader election is on,"
    harm = (
        f"{on} a replica of {named(partitions)} that is up and out of sync can become the leader, and the acknowledged records"
        " that it lacks are then deleted."
    )
    forbid = (
        "To get all records back, first set unclean.leader.election.enable=false on the topic, and then start the brokers that"
        " have them."
    )
    return (harm, forbid) if led else (harm,)
