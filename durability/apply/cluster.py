"""What an application of a plan asks of a cluster: fresh readings, and changes.

`durability.apply.kafka` implements it with Kafka's protocol. Tests implement it in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class ResourceType(StrEnum):
    TOPIC = "topic"
    BROKER = "broker"


class Resource(NamedTuple):
    """What a setting belongs to. name: of the topic, or the broker's id; for BROKER "" is the cluster-wide default."""

    type: ResourceType
    name: str


@dataclass(frozen=True)
class Replicas:
    """A partition as the cluster states it now. isr and replicas are in the cluster's order.

    leader: None without one. elr: eligible leader replicas (KIP-966), () if the cluster has none; None if unknown.
    adding, removing: of a running reassignment.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    elr: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True)
class Reading:
    """A fresh reading. live: brokers that are registered and unfenced. led: does a controller lead, so that changes are possible?

    partitions: those of the topics that were asked for (or all) and exist. moving: every partition of the cluster with a running
    reassignment, with its adding and removing replicas. topic_ids: Kafka's ids of these topics by name, as far as they are known.
    registered: the brokers that are registered, fenced ones too; None if unknown.
    """

    cluster_id: str | None
    live: frozenset[int]
    led: bool
    partitions: Mapping[TopicPartition, Replicas] = field(repr=False)
    moving: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict, repr=False)
    registered: frozenset[int] | None = None

    def is_gone(self, broker: int) -> bool:
        """Was the broker unregistered? False if that is unknown."""
        return self.registered is not None and broker not in self.registered


@dataclass(frozen=True)
class SettingChange:
    """One dynamic setting of a resource. value: None deletes it, so that the inherited value applies."""

    resource: Resource
    name: str
    value: str | None


class Disks(Protocol):
    """What brokers state of their disks."""

    def sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[tuple[int, TopicPartition], int]:
        """Bytes of each replica of the topics on these brokers' disks, future replicas included. A broker that doesn't answer
        is left out."""
        ...

    def usable_bytes(self, brokers: Collection[int]) -> Mapping[int, int | None]:
        """Usable bytes of the brokers' disks (KIP-827); None if a broker doesn't state them or doesn't answer."""
        ...


class Cluster(Disks, Protocol):
    """A cluster that can be changed. Every method raises Unreachable if the cluster doesn't answer in time.

    A change that isn't answered may have been made: read again before it is repeated.
    """

    def read(self, topics: Collection[str] | None) -> Reading:
        """The cluster, and these topics, now. A topic that doesn't exist has no partitions in the reading.

        topics: None for all. An ELR is unknown then, unless the cluster has none.
        """
        ...

    def overrides(
        self, resources: Iterable[Resource], names: tuple[str, ...] | None = None
    ) -> Mapping[Resource, Mapping[str, str]]:
        """The dynamic settings of each resource itself, without inherited ones. A topic that doesn't exist is left out.

        names: of the settings; None for all. A sensitive value is left out. Raises Refused if a resource may not be described.
        """
        ...

    def change(self, changes: Sequence[SettingChange]) -> Mapping[Resource, str]:
        """Makes changes of settings (IncrementalAlterConfigs). Returns the errors by resource; empty if all were made.

        The changes of one resource are made together or not at all.
        """
        ...

    def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, same_factor: bool = False
    ) -> Mapping[TopicPartition, str]:
        """Starts reassignments; None cancels one. Returns the errors by partition, by Kafka's names of them.

        same_factor: forbid a change of the replication factor (KIP-860) where brokers know that option.
        """
        ...

    def elect_preferred(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        """Elects preferred leaders. Returns the errors by partition. ELECTION_NOT_NEEDED is none."""
        ...
