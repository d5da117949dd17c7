"""A cluster that is changed only while this run has it claimed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from durability.apply.cluster import Cluster, Resource, SettingChange, TopicPartition
from durability.apply.record import Changes


class ClaimedCluster:
    """Implements `durability.apply.cluster.Cluster`.

    A row is written some time before its change, and a process can be suspended for hours in between. So the claim is checked
    again right before each change, which raises Unreachable if the claim is over.
    """

    def __init__(self, cluster: Cluster, changes: Changes):
        self._cluster, self._changes = cluster, changes
        self.read, self.overrides = cluster.read, cluster.overrides
        self.sizes, self.usable_bytes = cluster.sizes, cluster.usable_bytes

    def change(self, changes: Sequence[SettingChange]) -> Mapping[Resource, str]:
        self._changes.check()
        return self._cluster.change(changes)

    def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, same_factor: bool = False
    ) -> Mapping[TopicPartition, str]:
        self._changes.check()
        return self._cluster.reassign(targets, same_factor=same_factor)

    def elect_preferred(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        self._changes.check()
        return self._cluster.elect_preferred(partitions)
