"""SubscriptionInfo: what a Streams thread says of itself when it joins a classic group (SubscriptionInfoData.json)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from durability.streams.reader import Reader
from durability.streams.tasks import NAMED_TOPOLOGIES, TaskId

OLDEST, NEWEST = 1, 11
OFFSET_SUMS = 7
"""The first version with task offset sums in place of previous tasks."""
CLIENT_TAGS = 11
"""The first version with client tags (KIP-708)."""
WHAT = "SubscriptionInfo"


@dataclass(frozen=True)
class SubscriptionInfo:
    """One thread's subscription, as of before the rebalance.

    version: 1 to 11. latest_supported: None before version 3. process: the client's process id, as UUID text.
    offset_sums: of each task whose state it has, its changelog offsets' sum; -2 for an active task that runs, -3 where
        it is unknown (version 7 and later). previous_active, previous_standby: before that.
    end_point: application.server, "" if none or before version 2. unique: i8 (8 and later).
    error: AssignorError's code (9 and later). tags: client tags; None where the version has none.
    """

    version: int
    latest_supported: int | None
    process: str
    end_point: str = ""
    offset_sums: dict[TaskId, int] = field(default_factory=dict)
    previous_active: tuple[TaskId, ...] = ()
    previous_standby: tuple[TaskId, ...] = ()
    unique: int = 0
    error: int = 0
    tags: dict[str, str] | None = None

    @property
    def with_state(self) -> set[TaskId]:
        """The tasks whose state this thread's client had; of versions before 7 its previous standbys alone."""
        return set(self.offset_sums) | set(self.previous_standby)


def decode(data: bytes) -> SubscriptionInfo:
    """The SubscriptionInfo in `data`; raises Malformed, for a version that isn't known too (then it names it)."""
    reader = Reader(data, WHAT)
    version = reader.i32("the version")
    if not OLDEST <= version <= NEWEST:
        raise reader.malformed(f"version {version} isn't known; {OLDEST} to {NEWEST} are")
    latest = reader.i32("the latest supported version") if version >= 3 else None
    process = str(uuid.UUID(bytes=reader.take(16, "the process id")))
    found: dict = {}
    if version < OFFSET_SUMS:
        for name in ("previous_active", "previous_standby"):
            found[name] = tuple(_task(reader) for _ in range(reader.count(8, "previous tasks")))
    if version >= 2:
        found["end_point"] = reader.text(reader.sized("the user end point"), "the user end point")
    if version >= OFFSET_SUMS:
        found["offset_sums"] = _flat_sums(reader) if version >= NAMED_TOPOLOGIES else _nested_sums(reader)
    if version >= 8:
        found["unique"] = reader.i8("the unique field")
    if version >= 9:
        found["error"] = reader.i32("the error code")
    if version >= CLIENT_TAGS:
        found["tags"] = _tags(reader)
    reader.end()
    return SubscriptionInfo(version, latest, process, **found)


def _task(reader: Reader) -> TaskId:
    return TaskId(reader.natural("a task's subtopology"), reader.natural("a task's partition"))


def _nested_sums(reader: Reader) -> dict[TaskId, int]:
    """Versions 7 to 9: by subtopology."""
    sums = {}
    for _ in range(reader.count(8, "subtopologies")):
        subtopology = reader.natural("a task's subtopology")
        for _ in range(reader.count(12, "offset sums")):
            task = TaskId(subtopology, reader.natural("a task's partition"))
            sums[task] = reader.i64("an offset sum")
    return sums


def _flat_sums(reader: Reader) -> dict[TaskId, int]:
    """Version 10 and later: a task each, with the name of its topology or null."""
    sums = {}
    for _ in range(reader.count(18, "offset sums")):
        task, offset = _task(reader), reader.i64("an offset sum")
        sums[task._replace(topology=reader.nullable_string("a topology's name") or "")] = offset
    return sums


def _tags(reader: Reader) -> dict[str, str]:
    tags: dict[str, str] = {}
    for _ in range(reader.count(8, "client tags")):
        key = reader.text(reader.sized("a client tag's key"), "a client tag's key")
        if key in tags:
            raise reader.malformed("two client tags have one key")
        tags[key] = reader.text(reader.sized("a client tag's value"), "a client tag's value")
    return tags
