"""What the planner of moves reads and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Name = tuple[str, int]
"""A partition: its topic and number."""

Code = Literal[
    "unknown-target",  # the target's replication factor is unknown
    "unknown-replicas",  # the replicas of a partition are unknown
    "few-brokers",  # the target needs more replicas than there are live brokers
    "few-racks",  # the racks of live brokers don't allow the placement
    "avoided",  # only with the brokers named in `avoid`
    "no-room",  # only with brokers that have no room on their disks
]
"""Why a topic is left out of the plan."""


@dataclass(frozen=True)
class Broker:
    """A broker of the cluster.

    rack: None if it has none or the rack is unknown. Such a broker may be in any rack, and adds none.
    live: None if unknown. Only a live broker gets new replicas.
    usable_bytes, total_bytes: sums over its healthy log dirs (KIP-827); None if unknown. A broker with unknown bytes gets
        replicas of any size.
    room: False if a log dir failed or is nearly full. Such a broker gets no new replicas.
    log_dirs: usable and total bytes of each healthy log dir. Kafka puts a new replica into any of them, whatever room it has, so
        a replica must fit in each. Empty if unknown.
    """

    id: int
    rack: str | None = None
    live: bool | None = True
    usable_bytes: int | None = None
    total_bytes: int | None = None
    room: bool = True
    log_dirs: tuple[tuple[int, int | None], ...] = ()


@dataclass(frozen=True)
class Target:
    """What a topic must become; `target_*` of `topic_posture`.

    replication_factor: the fewest replicas of each partition; None if unknown, which leaves the topic out.
    at_most: the most replicas of a partition; None keeps any that there are. Replicas above it are removed.
    racks: the racks that replicas must span, as far as the cluster has them; None if nothing is asked of them.
    own_racks: must each replica be in its own rack, as far as the cluster has racks?
    balanced: must no rack of the cluster have two replicas more than another? Each replica then needs a rack.
    acked: (racks, n): any n of the replicas must span that many racks.
    survives_rack: must acknowledged records and writes survive the loss of any rack? Then no rack has `min_isr` replicas, and
        the other racks have at least that many.
    min_isr: min.insync.replicas once the plan is done; None if unknown. `survives_rack` and the copysets read it.
    """

    replication_factor: int | None
    racks: int | None = None
    own_racks: bool = False
    balanced: bool = False
    acked: tuple[int, int] | None = None
    survives_rack: bool = False
    min_isr: int | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class Partition:
    """A partition of the cluster, whether or not its topic changes.

    replicas: broker ids, the preferred leader first; None if unknown. isr: None if unknown. leader: None if none or unknown.
    bytes: the size of one replica; None if unknown.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    bytes: int | None = None

    @property
    def name(self) -> Name:
        return self.topic, self.partition


@dataclass(frozen=True)
class Problem:
    """A cluster, and the topics to change.

    partitions: all of the cluster, so that the load of brokers is known.
    targets: by topic, only those to change. No other topic changes.
    min_isr: the min.insync.replicas in force now, by topic. Only the copysets read it.
    avoid: brokers that get no new replicas. What they have stays.
    margin_disk: the part of a broker's total bytes that stays free. Bytes that leave a broker don't count as free, because a
        replica is deleted only after all new ones are in sync.
    limit: the most replicas of a broker, as a multiple of the fair share of all that may get replicas. A broker that has more
        now gets none. Where racks leave no other choice, a broker gets more (`Solution.above_limit`).
    reorder: may a plan change which replica is the preferred leader of a partition whose topic moves?
    not_led: by topic, sets of brokers. None of a set becomes preferred leader of a partition that a broker outside it leads or
        would lead, if the partition has another replica.
    """

    brokers: Sequence[Broker]
    partitions: Sequence[Partition]
    targets: Mapping[str, Target]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    avoid: frozenset[int] = frozenset()
    margin_disk: float = 0.2
    limit: float = 1.1
    reorder: bool = True
    not_led: Mapping[str, Sequence[frozenset[int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Moved:
    """What the plan copies.

    replicas: new replicas. bytes: their bytes. bound_replicas, bound_bytes: the least that any plan copies that meets the
    targets of the same topics, whatever room and load brokers have. Partitions of unknown size count 0 bytes, in both.
    unknown_bytes: the new replicas of partitions of unknown size.
    why_not_bound: why more is copied than the bound: "no-room", "too-loaded". Empty if nothing is.
    """

    replicas: int
    bytes: int
    bound_replicas: int
    bound_bytes: int
    unknown_bytes: int = 0
    why_not_bound: tuple[str, ...] = ()


@dataclass(frozen=True)
class Load:
    """A load by broker id, of all brokers that have one or could.

    bound: no plan that moves as little has a lower load on its most loaded broker. It is the higher of the optimum of a linear
        relaxation and the load that whole replicas need (`bounds`). Limits, disks, and which brokers are down don't count.
    """

    before: Mapping[int, int]
    after: Mapping[int, int]
    bound: float


@dataclass(frozen=True)
class Losses:
    """The share of sets of k brokers whose loss breaks at least one partition; all replicas in sync before it.

    k: 2 for pairs, 3 for triples. writes: acks=all writes stop. data: every replica is lost. None if the cluster has fewer
    brokers.
    """

    k: int
    writes: float | None
    data: float | None


@dataclass(frozen=True)
class Copysets:
    """The distinct replica sets of the cluster, and what the loss of pairs and triples of brokers breaks.

    A partition counts for `writes` only if its topic's min.insync.replicas is known.
    """

    before: int
    after: int
    losses_before: tuple[Losses, ...]
    losses_after: tuple[Losses, ...]


@dataclass(frozen=True)
class LeftOut:
    """A topic that isn't changed. partition: the first one that can't meet the target; None if the whole topic."""

    topic: str
    why: Code
    partition: int | None = None


@dataclass(frozen=True)
class Solution:
    """A plan of moves.

    replicas: the partitions that change, with their new replicas, the preferred leader first. A partition whose replicas only
        change their order is among them: it copies nothing.
    load: replicas by broker. load_bytes: bytes by broker; None if no size is known. leaders: partitions by preferred leader.
    left_out: by topic.
    above_limit: brokers that have more replicas than the limit and than before, because racks leave no other choice
        without more new replicas.
    """

    replicas: Mapping[Name, tuple[int, ...]]
    moved: Moved
    load: Load
    load_bytes: Load | None
    leaders: Load
    copysets: Copysets
    left_out: tuple[LeftOut, ...] = ()
    above_limit: tuple[int, ...] = ()
