"""What planners know of the whole cluster, beside the finding: its release, its quorum and its reassignment plans."""

from __future__ import annotations

from collections.abc import Mapping
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
    brokers don't suffice.
    """

    script: str
    brokers: tuple[int, ...]
    moves: tuple[tuple[str, int, list[int]], ...]
    left: int


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster in the evaluated snapshot.

    release: the oldest Kafka release of its brokers, as numbers; None if unknown. newest: the newest one; None if any is unknown.
    kraft: False with ZooKeeper, None if unknown.
    led: False if no controller leads: nothing can be changed then. None if unknown.
    elr: are eligible leader replicas on? None if unknown.
    highest_min_isr, lowest_min_isr: the highest and lowest min.insync.replicas of a live broker; None if unknown.
    down: brokers that are down.
    gone: the plan for brokers that are down, if there is one.
    planned: topics that have a plan in OUT/plans. without: topics that need a plan and have none, with the reason.
    """

    release: tuple[int, ...] | None = None
    newest: tuple[int, ...] | None = None
    kraft: bool | None = None
    led: bool | None = None
    elr: bool | None = None
    highest_min_isr: int | None = None
    lowest_min_isr: int | None = None
    down: tuple[int, ...] = ()
    gone: Gone | None = None
    planned: frozenset[str] = frozenset()
    without: Mapping[str, str] = field(default_factory=dict)

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
