"""AssignmentInfo: the tasks that the assignor gave to a Streams thread (Kafka's class of that name)."""

from __future__ import annotations

from dataclasses import dataclass

from durability.streams.reader import Reader
from durability.streams.tasks import NAMED_TOPOLOGIES, task_id

NO_REBALANCE = 2**63 - 1
"""`next_rebalance_ms` if no rebalance is planned (Long.MAX_VALUE). Kafka's class has it for version 6, too."""


@dataclass(frozen=True)
class AssignmentInfo:
    """One thread's assignment.

    active, standby: task ids. From version 7 on, standbys include warm-ups (KIP-441).
    error: AssignorError's code.
    next_rebalance_ms: epoch milliseconds of a probing rebalance.
    """

    version: int
    active: tuple[str, ...]
    standby: tuple[str, ...]
    error: int
    next_rebalance_ms: int


def decode(data: bytes) -> AssignmentInfo:
    """The AssignmentInfo in `data`. Raises Malformed, which names an unsupported version."""
    reader = Reader(data, "AssignmentInfo")
    version = reader.version()
    reader.i32()  # the commonly supported version
    smallest = 12 if version >= NAMED_TOPOLOGIES else 8
    active = tuple(_task(reader, version) for _ in range(reader.count(smallest)))
    standby = tuple(_standby(reader, version) for _ in range(reader.count(smallest + 4)))
    if len(set(standby)) != len(standby):
        raise reader.malformed("a standby task is listed twice")
    _skip_hosts(reader)
    error = reader.i32()
    next_rebalance_ms = reader.i64() if version >= 7 else NO_REBALANCE
    reader.end()
    return AssignmentInfo(version, active, standby, error, next_rebalance_ms)


def _task(reader: Reader, version: int) -> str:
    """Two i32, and from version 10 on the topology's name: an i32 count of UTF-16BE units and the units."""
    subtopology, partition = reader.natural(), reader.natural()
    name = reader.take(2 * reader.count(2)) if version >= NAMED_TOPOLOGIES else b""
    return task_id(subtopology, partition, reader.decoded(name, "utf-16-be"))


def _standby(reader: Reader, version: int) -> str:
    task = _task(reader, version)
    for _ in range(reader.count(6)):  # its partitions
        reader.utf()
        reader.natural()
    return task


def _skip_hosts(reader: Reader) -> None:
    """The active, then the standby partitions of each host, with topics by number."""
    topics = set()
    for _ in range(reader.count(6)):
        topics.add(reader.i32())
        reader.utf()
    for _ in ("active", "standby"):
        for _ in range(reader.count(10)):
            reader.utf()  # the host's name
            reader.i32()  # its port
            for _ in range(reader.count(8)):
                if reader.i32() not in topics:
                    raise reader.malformed("a host's partition is of no listed topic")
                reader.natural()
