"""AssignmentInfo: what the assignor gave a Streams thread (org.apache.kafka.streams' class of that name)."""

from __future__ import annotations

from dataclasses import dataclass

from durability.streams.reader import Reader
from durability.streams.tasks import TaskId, read_task, task_size

OLDEST, NEWEST = 1, 11
NO_REBALANCE = 2**63 - 1
"""Next rebalance when none is planned: Long.MAX_VALUE, and what Kafka's class says where the version has no such field."""
WHAT = "AssignmentInfo"


@dataclass(frozen=True)
class AssignmentInfo:
    """One thread's assignment.

    version: 1 to 11. commonly_supported: None before version 3. standby: standbys, from version 7 also warm-ups (KIP-441).
    error: AssignorError's code (4 and later). next_rebalance_ms: epoch milliseconds of a probing rebalance.
    """

    version: int
    commonly_supported: int | None
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    error: int = 0
    next_rebalance_ms: int = NO_REBALANCE


def decode(data: bytes) -> AssignmentInfo:
    """The AssignmentInfo in `data`; raises Malformed, for a version that isn't known too (then it names it)."""
    reader = Reader(data, WHAT)
    version = reader.i32("the version")
    if not OLDEST <= version <= NEWEST:
        raise reader.malformed(f"version {version} isn't known; {OLDEST} to {NEWEST} are")
    common = reader.i32("the commonly supported version") if version >= 3 else None
    size = task_size(version)
    active = tuple(read_task(reader, version) for _ in range(reader.count(size, "active tasks")))
    standby = tuple(_standby(reader, version) for _ in range(reader.count(size + 4, "standby tasks")))
    if len(set(standby)) != len(standby):
        raise reader.malformed("a standby task stands there twice")
    _skip_hosts(reader, version)
    error = reader.i32("the error code") if version >= 4 else 0
    planned = reader.i64("the next rebalance") if version >= 7 else NO_REBALANCE
    reader.end()
    return AssignmentInfo(version, common, active, standby, error, planned)


def _standby(reader: Reader, version: int) -> TaskId:
    """A standby task; the partitions it reads, which follow it, are passed over."""
    task = read_task(reader, version)
    for _ in range(reader.count(6, "partitions of a standby task")):
        reader.utf("a topic")
        reader.natural("a partition")
    return task


def _skip_hosts(reader: Reader, version: int) -> None:
    """Which host has which partitions: from version 2, with topics by number from 5, of standbys too from 6."""
    if version < 2:
        return
    if version < 5:
        for _ in range(reader.count(10, "hosts")):
            _skip_host(reader)
            for _ in range(reader.count(6, "partitions of a host")):
                reader.utf("a topic")
                reader.natural("a partition")
        return
    topics = set()
    for _ in range(reader.count(6, "topics")):
        topics.add(reader.i32("a topic's number"))
        reader.utf("a topic")
    for _ in range(2 if version >= 6 else 1):
        for _ in range(reader.count(10, "hosts")):
            _skip_host(reader)
            for _ in range(reader.count(8, "partitions of a host")):
                if reader.i32("a topic's number") not in topics:
                    raise reader.malformed("a host's partition is of no listed topic")
                reader.natural("a partition")


def _skip_host(reader: Reader) -> None:
    reader.utf("a host")
    reader.i32("a port")
