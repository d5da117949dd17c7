"""Topics: every partition with its replicas, ISR and ELR, running reassignments, and configs with their source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeTopicPartitionsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from durability.collect import configs
from durability.collect.notes import Notes
from durability.collect.reasons import Unread, error_name, is_retriable
from durability.collect.wire import Wire

LISTENER_NOT_FOUND, UNKNOWN_TOPIC = 72, 3
PAGE = 2000  # max.request.partition.size.limit's default: brokers answer with no more


@dataclass
class Topic:
    """A topic as one answer showed it: partition rows in the document's shape, by partition number.

    error: why its partitions could not be read, else None. hidden_leaders: partitions whose leader has no listener
    of the kind that was asked, so that who leads them isn't known.
    """

    internal: bool
    partitions: dict[int, dict] = field(default_factory=dict)
    error: str | None = None
    hidden_leaders: set[int] = field(default_factory=set)


@dataclass
class Reading:
    """All partitions at one moment.

    with_elr: whether the answer states ELRs (DescribeTopicPartitions does, Metadata doesn't).
    reassignments_error: why running reassignments could not be read, else None.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    with_elr: bool = False
    reassignments_error: str | None = None

    @property
    def partitions(self) -> int:
        return sum(len(t.partitions) for t in self.topics.values())


async def read(wire: Wire, *, with_elr: bool, second: bool = False) -> Reading:
    """One reading of all partitions and reassignments; without ELRs where this release doesn't know them.

    second: by Metadata of a second broker, so that a broker that lags behind the cluster's metadata is noticed.
    Raises Unread if not even Metadata answers.
    """
    if with_elr:
        try:
            reading = await _by_describe(wire)
        except Unread as exc:
            if exc.reason != "UNSUPPORTED_VERSION":
                raise
            reading = await _by_metadata(wire)
    else:
        reading = await _by_metadata(wire, second=second)
    try:
        await _add_reassignments(wire, reading)
    except Unread as exc:
        reading.reassignments_error = exc.reason
    return reading


async def _by_describe(wire: Wire) -> Reading:
    """DescribeTopicPartitions (KIP-966), page by page, all pages from the same broker while it answers."""
    reading, cursor = Reading(with_elr=True), None
    while True:
        response = await wire.ask_any(
            partial(DescribeTopicPartitionsRequest, topics=[], response_partition_limit=PAGE, cursor=cursor)
        )
        for found in response.topics:
            _add_topic(reading, found)
        after = response.next_cursor
        if after is None:
            return reading
        place = (after.topic_name, after.partition_index)
        if cursor is not None and place <= (cursor.topic_name, cursor.partition_index):
            raise Unread("CORRUPT_MESSAGE: the cursor of DescribeTopicPartitions doesn't advance")
        cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=place[0], partition_index=place[1])


async def _by_metadata(wire: Wire, *, second: bool = False) -> Reading:
    reading = Reading()
    response = await wire.ask_any(
        lambda: MetadataRequest(topics=None, allow_auto_topic_creation=False), lambda r: r.error_code, second=second
    )
    for found in response.topics:
        _add_topic(reading, found)
    return reading


def _add_topic(reading: Reading, found: Any) -> None:
    if found.error_code == UNKNOWN_TOPIC:  # deleted since the page before
        reading.topics.pop(found.name, None)
        return
    topic = reading.topics.setdefault(found.name, Topic(bool(found.is_internal)))
    if found.error_code and not (is_retriable(found.error_code) and found.partitions):
        topic.error = error_name(found.error_code)
    elr = reading.with_elr
    for p in found.partitions:
        topic.partitions[p.partition_index] = {
            "partition": p.partition_index,
            "leader": p.leader_id if p.leader_id >= 0 else None,
            "replicas": list(p.replica_nodes),
            "isr": list(p.isr_nodes),
            "elr": list(p.eligible_leader_replicas or ()) if elr else [],
            "last_known_elr": list(p.last_known_elr or ()) if elr else [],
            "adding": [],
            "removing": [],
        }
        if p.error_code == LISTENER_NOT_FOUND:
            topic.hidden_leaders.add(p.partition_index)


async def _add_reassignments(wire: Wire, reading: Reading) -> None:
    timeout = int(wire.request_timeout * 1000)
    response = await wire.ask_any(
        lambda: ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout), lambda r: r.error_code
    )
    for moving in response.topics:
        topic = reading.topics.get(moving.name)
        if topic is None:
            continue
        for p in moving.partitions:
            row = topic.partitions.get(p.partition_index)
            if row is not None:
                row["adding"], row["removing"] = list(p.adding_replicas), list(p.removing_replicas)


_COMPARED = ("leader", "replicas", "isr", "adding", "removing")


def differences(before: Reading, after: Reading) -> list[str]:
    """What two readings disagree on, one text per topic or partition; ELRs count where both state them."""
    found = [f"topic {name} is gone" for name in sorted(before.topics.keys() - after.topics.keys())]
    found += [f"topic {name} is new" for name in sorted(after.topics.keys() - before.topics.keys())]
    keys = (*_COMPARED, "elr", "last_known_elr") if before.with_elr and after.with_elr else _COMPARED
    for name in sorted(before.topics.keys() & after.topics.keys()):
        old, new = before.topics[name].partitions, after.topics[name].partitions
        if len(old) != len(new):
            found.append(f"topic {name} has {len(new)} partitions, had {len(old)}")
        for number, row in old.items():
            other = new.get(number)
            if other is None or row == other:
                continue
            changed = [key for key in keys if row[key] != other[key]]
            if changed:
                found.append(f"topic {name} partition {number}: {', '.join(changed)}")
    return found


async def topic_configs(wire: Wire, names: Iterable[str], notes: Notes) -> dict[str, configs.Configs]:
    """Configs of these topics; those that couldn't be read are noted, those deleted meanwhile left out."""
    ordered, step = sorted(names), wire.limits.topics_per_request
    batches = [ordered[i : i + step] for i in range(0, len(ordered), step)]
    found: dict[str, configs.Configs] = {}

    async def describe(batch: list[str]) -> None:
        try:
            response = await wire.ask_any(lambda: configs.request(configs.TOPIC, batch, configs.TOPIC_KEYS))
        except Unread as exc:
            for name in batch:
                notes.add(("topics", name, "configs"), exc.reason)
            return
        for result in response.results:
            if not result.error_code:
                found[result.resource_name] = configs.parsed(result)
            elif result.error_code != UNKNOWN_TOPIC:
                notes.add(("topics", result.resource_name, "configs"), error_name(result.error_code))

    await wire.gather([partial(describe, batch) for batch in batches])
    return found
