"""SubscriptionInfo: what a Streams thread sends when it joins a classic group (SubscriptionInfoData.json)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from durability.streams.reader import Reader
from durability.streams.tasks import NAMED_TOPOLOGIES, task_id

OFFSET_SUMS = 7
"""The first version with task offset sums in place of previous tasks."""
CLIENT_TAGS = 11
"""The first version with client tags (KIP-708)."""


@dataclass(frozen=True)
class SubscriptionInfo:
    """One thread's subscription, with the state before the rebalance.

    process: the client's process id, as UUID text.
    with_state: ids of the tasks whose state this client had; in version 6, its previous standbys only.
    tags: client tags; None if the version has none.
    """

    version: int
    process: str
    with_state: frozenset[str]
    tags: dict[str, str] | None


def decode(data: bytes) -> SubscriptionInfo:
    """The SubscriptionInfo in `data`. Raises Malformed, which names an unsupported version."""
    reader = Reader(data, "SubscriptionInfo")
    version = reader.version()
    reader.i32()  # the latest supported version
    process = str(uuid.UUID(bytes=reader.take(16)))
    tasks: list[str] = []
    if version < OFFSET_SUMS:
        for _ in ("active", "standby"):  # the list of standbys is the last one
            tasks = [task_id(reader.natural(), reader.natural()) for _ in range(reader.count(8))]
    reader.text(reader.i32())  # application.server
    if version >= NAMED_TOPOLOGIES:
        tasks = _flat_sums(reader)
    elif version >= OFFSET_SUMS:
        tasks = _nested_sums(reader)
    if version >= 8:
        reader.take(1)  # a field that makes subscriptions unique
    if version >= 9:
        reader.i32()  # AssignorError's code
    tags = _tags(reader) if version >= CLIENT_TAGS else None
    reader.end()
    return SubscriptionInfo(version, process, frozenset(tasks), tags)


def _nested_sums(reader: Reader) -> list[str]:
    """Versions 7 to 9: by subtopology, its partitions, each with the sum of its offsets."""
    tasks = []
    for _ in range(reader.count(8)):
        subtopology = reader.natural()
        for _ in range(reader.count(12)):
            tasks.append(task_id(subtopology, reader.natural()))
            reader.i64()
    return tasks


def _flat_sums(reader: Reader) -> list[str]:
    """Version 10 and later: subtopology, partition, the offsets' sum, and the topology's name or null (length -1)."""
    tasks = []
    for _ in range(reader.count(18)):
        subtopology, partition = reader.natural(), reader.natural()
        reader.i64()
        size = reader.i16()
        tasks.append(task_id(subtopology, partition, "" if size == -1 else reader.text(size)))
    return tasks


def _tags(reader: Reader) -> dict[str, str]:
    tags: dict[str, str] = {}
    for _ in range(reader.count(8)):
        key = reader.text(reader.i32())
        if key in tags:
            raise reader.malformed("two client tags have one key")
        tags[key] = reader.text(reader.i32())
    return tags
