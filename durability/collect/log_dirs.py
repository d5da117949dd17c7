"""Log directories: which are offline, how full each is, and their partitions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kafka.protocol.admin import DescribeLogDirsRequest

from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire

TopicPartition = tuple[str, int]

METADATA_LOG = "__cluster_metadata"
# Directory names of logs that are being moved or deleted, or that were found stray: <partition>.<uuid>-<suffix>.
_LEFTOVER = re.compile(r"\.[0-9a-f]{32}-(delete|stray|future)$")


@dataclass
class LogDirs:
    """A broker's log dirs as rows of the document, and the bytes of each partition in them.

    future: bytes of replicas that are being moved to another log dir of the broker, by partition.
    """

    dirs: list[dict] = field(default_factory=list)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    future: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def offline(self) -> int:
        return sum(1 for each in self.dirs if each["error"])


async def describe(wire: Wire, broker: int) -> LogDirs:
    """A broker's log dirs with all partitions (DescribeLogDirs). Needs Cluster:Describe, independent of the topics' ACLs."""
    response = await wire.ask(broker, DescribeLogDirsRequest(topics=None))
    if not response.results:
        # Versions before 3 have no error code. Without permission, their answer is empty, but every broker has a log dir.
        raise Unread("CLUSTER_AUTHORIZATION_FAILED: the answer names no log dir")
    found = LogDirs()
    for each in response.results:
        found.dirs.append(
            {
                "path": each.log_dir,
                "error": error_name(each.error_code) if each.error_code else None,
                "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
                "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
            }
        )
        for topic in each.topics:
            if topic.name == METADATA_LOG or _LEFTOVER.search(topic.name):
                continue
            for p in topic.partitions:
                sizes = found.future if p.is_future_key else found.sizes
                sizes[topic.name, p.partition_index] = p.partition_size
    found.dirs.sort(key=lambda d: d["path"])
    return found
