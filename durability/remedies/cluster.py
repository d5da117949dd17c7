"""What planners know of the whole cluster, beside the finding: its release, its quorum and its reassignment plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from durability.remedies.finding import Finding

KEY = "cluster_facts"
"""The member of a finding that has the facts of its cluster while it gets its texts."""


@dataclass(frozen=True)
class Gone:
    """A plan that moves the replicas of brokers that are down to live ones, and the script that runs it; see
    `durability.remedies.gone`.

    script: its path below the report's folder. brokers: those that are down. moves: topic, partition and new replicas.
    left: how many of their partitions stay: no live replica in sync leads them, their reassignment is running, or the live
    brokers don't suffice. running: how many partitions of the cluster are being reassigned.
    """

    script: str
    brokers: tuple[int, ...]
    moves: tuple[tuple[str, int, list[int]], ...]
    left: int
    running: int = 0


@dataclass(frozen=True)
class Fragile:
    """Partitions that can't do without one of their replicas in sync, as numbers, each with a name such as orders-0.

    single: a single replica is in sync, so the partition goes offline with it. least: no more replicas are in sync than
    min.insync.replicas, so acks=all writes stop without one. unknown: not all of their state could be read.
    by_broker: the partitions that have the broker in their ISR; None if it wasn't looked up. Partitions whose ISR is unknown
    are in none. offline: the partition has no leader, and no copy in sync is up but on brokers with a failed disk. It is counted
    by broker alone.
    """

    single: int = 0
    first_single: str | None = None
    least: int = 0
    first_least: str | None = None
    unknown: int = 0
    first_unknown: str | None = None
    by_broker: Mapping[int, Fragile] | None = None
    offline: int = 0
    first_offline: str | None = None

    def of(self, brokers: Sequence[int]) -> list[Fragile]:
        """What a restart of each of these brokers harms; of all partitions if it is unknown which need which broker."""
        if self.by_broker is None or self.unknown:
            return [self]
        return [self.by_broker[broker] for broker in brokers if broker in self.by_broker]


@dataclass(frozen=True)
class StartsFirst:
    """Brokers that are down and have all acknowledged records of offline partitions, whose other replicas are down, too.

    partitions: how many there are. example: one of them, such as orders-0. unclean: is unclean leader election on there? None if
    unknown. Otherwise no other replica would lead.
    """

    brokers: tuple[int, ...]
    partitions: int
    example: str
    unclean: bool | None


@dataclass(frozen=True)
class Restored:
    """A topic's min.insync.replicas before a rack outage. own: was it the topic's own? Otherwise the topic inherited it."""

    value: int
    own: bool


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster in the evaluated snapshot.

    release: the oldest Kafka release of its brokers, as numbers; None if unknown. newest: the newest one; None if any is unknown.
    kraft: False with ZooKeeper, None if unknown.
    led: False if no controller leads: nothing can be changed then. None if unknown.
    elr: are eligible leader replicas on? None if unknown.
    highest_min_isr, lowest_min_isr: the highest and lowest min.insync.replicas of a live broker; None if unknown.
    lowest_default_rf: the lowest default.replication.factor of a live broker; None if unknown.
    spare_voter: does the quorum keep its majority without one more voter? None if unknown.
    provider: who runs the cluster, a key of the catalogue's providers; None if unknown.
    down: brokers that are down. missing_voters: voters that are down or never caught up.
    failed_disks: live brokers with an offline log dir. unracked: brokers without broker.rack.
    fragile: the partitions that a restart of a broker harms; None if unknown.
    lag_shares: the broker that every lagging replica is on or has as its leader; None if there is no single one.
    throttled: are throttles left without a reassignment?
    gone: the plan for brokers that are down, if there is one.
    planned: topics that have a plan in OUT/plans. without: topics that need a plan and have none, with the reason.
    restores: topics whose min.insync.replicas was lowered in a rack outage that is over.
    starts_first: the brokers that must start before others.
    """

    release: tuple[int, ...] | None = None
    newest: tuple[int, ...] | None = None
    kraft: bool | None = None
    led: bool | None = None
    elr: bool | None = None
    highest_min_isr: int | None = None
    lowest_min_isr: int | None = None
    lowest_default_rf: int | None = None
    spare_voter: bool | None = None
    provider: str | None = None
    down: tuple[int, ...] = ()
    missing_voters: tuple[int, ...] = ()
    failed_disks: tuple[int, ...] = ()
    fragile: Fragile | None = None
    lag_shares: int | None = None
    throttled: bool = False
    unracked: tuple[int, ...] = ()
    gone: Gone | None = None
    planned: frozenset[str] = frozenset()
    without: Mapping[str, str] = field(default_factory=dict)
    restores: Mapping[str, Restored] = field(default_factory=dict)
    starts_first: tuple[StartsFirst, ...] = ()

    def restored(self, topic: str, value: int | None) -> Restored | None:
        """What the topic had before a rack outage, if its restore results in this min.insync.replicas; else None.

        The value that a topic inherits may have changed since.
        """
        found = self.restores.get(topic)
        if found is None or found.value != value:
            return None
        return found if found.own or self.lowest_min_isr == self.highest_min_isr == value else None

    def before(self, *release: int) -> bool:
        """Is the cluster's release known, and older than this one?

        >>> ClusterFacts((2, 3)).before(2, 4), ClusterFacts((2, 4, 1)).before(2, 4), ClusterFacts().before(2, 4)
        (True, False, False)
        """
        return self.release is not None and self.release < release


UNKNOWN = ClusterFacts()


def facts_of(finding: Finding) -> ClusterFacts:
    """The facts of the finding's cluster; UNKNOWN if it has none."""
    facts = finding.get(KEY)
    return facts if isinstance(facts, ClusterFacts) else UNKNOWN
