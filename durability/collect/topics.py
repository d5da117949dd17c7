"""Topics: partitions with replicas, ISR and ELR, running reassignments, and configs with their sources."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DescribeTopicPartitionsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from durability.collect import configs
from durability.collect.notes import Notes
from durability.collect.reasons import Unread, error_name, is_retriable
from durability.collect.wire import Wire, batches
from durability.topology.elr import electable

LISTENER_NOT_FOUND, UNKNOWN_TOPIC = 72, 3
NOT_AUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
PAGE = 2000  # the default of max.request.partition.size.limit, the most that brokers return
TOPICS_PER_REQUEST = 500  # of DescribeConfigs
MEMBERS = ("leader", "replicas", "isr", "adding", "removing")
OF_ELR = ("elr", "last_known_elr")
"""Members of a partition's row. Metadata doesn't have those of OF_ELR."""


@dataclass
class Topic:
    """A topic in one answer.

    id: Kafka's (KIP-516), as Kafka writes it; None if unknown. A topic that is deleted and created again has another one.
    partitions: the document's rows by partition number.
    error: why its partitions could not be read, else None.
    hidden_leaders: partitions whose leader is unknown, because it has no listener like the one that answered.
    unstated_elrs: partitions whose ELR is NULL in an answer that has ELRs, so it is unknown.
    """

    internal: bool
    partitions: dict[int, dict] = field(default_factory=dict)
    error: str | None = None
    hidden_leaders: set[int] = field(default_factory=set)
    unstated_elrs: set[int] = field(default_factory=set)
    id: str | None = None

    def is_another(self, other: Topic) -> bool:
        """Was the topic deleted and created again between this answer and the other one? An unknown id doesn't show it."""
        return self.id is not None and other.id is not None and self.id != other.id


@dataclass
class Reading:
    """All partitions at one moment.

    with_elr: the answer has ELRs (DescribeTopicPartitions has them, Metadata doesn't).
    reassignments_error: why running reassignments could not be read, else None.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    with_elr: bool = False
    reassignments_error: str | None = None


async def read(wire: Wire, *, with_elr: bool, second: bool = False) -> Reading:
    """Read all partitions and reassignments once.

    with_elr, second: as `partitions` takes them. Raises Unread if not even Metadata answers.
    """
    reading = await partitions(wire, with_elr=with_elr, second=second)
    await add_reassignments(wire, reading)
    return reading


async def partitions(
    wire: Wire, *, with_elr: bool, second: bool = False, names: Sequence[str] | None = None
) -> Reading:
    """Read the partitions of these topics (None: of all) once, without reassignments.

    with_elr: read ELRs, too, if the release has them.
    second: read Metadata from a second broker, to notice a broker whose metadata lags.
    """
    reading = Reading()
    try:
        if with_elr:
            reading = await _by_describe(wire, names)
    except Unread as exc:
        if exc.reason != "UNSUPPORTED_VERSION":
            raise
    if not reading.with_elr:
        wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        response = await wire.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), second=second)
        for found in response.topics:
            _add_topic(reading, found)
    return reading


async def _by_describe(wire: Wire, names: Sequence[str] | None) -> Reading:
    """DescribeTopicPartitions (KIP-966), page by page, from the same broker as long as it answers."""
    reading, cursor = Reading(with_elr=True), None
    if names is not None and not names:  # to brokers, no names are all topics
        return reading
    wanted = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names or ()]
    while True:
        response = await wire.ask_any(
            DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=PAGE, cursor=cursor)
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


def _add_topic(reading: Reading, found: Any) -> None:
    if found.error_code == UNKNOWN_TOPIC:  # deleted after the previous page
        reading.topics.pop(found.name, None)
        return
    topic = reading.topics.setdefault(found.name, Topic(bool(found.is_internal), id=id_text(found.topic_id)))
    if found.error_code and not (is_retriable(found.error_code) and found.partitions):
        topic.error = error_name(found.error_code)
    elr = reading.with_elr
    for p in found.partitions:
        topic.partitions[p.partition_index] = {
            "partition": p.partition_index,
            "leader": p.leader_id if p.leader_id >= 0 else None,
            "replicas": list(p.replica_nodes),
            "isr": list(p.isr_nodes),
            "elr": electable(list(p.eligible_leader_replicas or ()), p.replica_nodes) if elr else [],
            "last_known_elr": list(p.last_known_elr or ()) if elr else [],
            "adding": [],
            "removing": [],
        }
        if p.error_code == LISTENER_NOT_FOUND:
            topic.hidden_leaders.add(p.partition_index)
        if elr and p.eligible_leader_replicas is None:
            topic.unstated_elrs.add(p.partition_index)


def id_text(id: UUID | None) -> str | None:
    """A topic's id as Kafka writes it (org.apache.kafka.common.Uuid): base64 for URLs, without padding.

    None if it isn't known: brokers before 2.8 (Metadata before version 10) state none, and those with an older
    inter.broker.protocol.version state zero.

    >>> id_text(UUID(int=1)), id_text(UUID(int=0)), id_text(None)
    ('AAAAAAAAAAAAAAAAAAAAAQ', None, None)
    """
    return base64.urlsafe_b64encode(id.bytes).decode().rstrip("=") if id is not None and id.int else None


async def add_reassignments(wire: Wire, reading: Reading) -> None:
    """Read running reassignments into a reading, or why they can't be read."""
    timeout = int(wire.limits.controller_timeout * 1000)
    try:
        response = await wire.ask_controller(ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout))
    except Unread as exc:
        reading.reassignments_error = exc.reason
        return
    reading.reassignments_error = None
    for moving in response.topics:
        topic = reading.topics.get(moving.name)
        if topic is None:
            continue
        for p in moving.partitions:
            row = topic.partitions.get(p.partition_index)
            if row is not None:
                row["adding"], row["removing"] = list(p.adding_replicas), list(p.removing_replicas)


def same_state(one: Reading, other: Reading) -> bool:
    """Do two readings show the same topics, and their partitions in the same state? ELRs are compared if both have them."""
    keys = MEMBERS + OF_ELR if one.with_elr and other.with_elr else MEMBERS
    if one.topics.keys() != other.topics.keys():
        return False
    if recreated(one, other):
        return False
    for name, topic in one.topics.items():
        rows, others = topic.partitions, other.topics[name].partitions
        if rows.keys() != others.keys():
            return False
        if any(row != others[n] and any(row[key] != others[n][key] for key in keys) for n, row in rows.items()):
            return False
    return True


def recreated(before: Reading, after: Reading) -> list[str]:
    """The topics that were deleted and created again between two readings."""
    return [
        name for name, topic in after.topics.items() if name in before.topics and topic.is_another(before.topics[name])
    ]


async def topic_configs(wire: Wire, names: Iterable[str], notes: Notes) -> dict[str, configs.Configs]:
    """Configs of these topics. Topics whose configs couldn't be read are noted. Deleted topics are left out."""
    found: dict[str, configs.Configs] = {}

    async def describe(batch: Sequence[str]) -> None:
        try:
            response = await wire.ask_any(configs.request(configs.TOPIC, batch, configs.TOPIC_KEYS))
        except Unread as exc:
            for name in batch:
                notes.add(("topics", name, "configs"), exc.reason)
            return
        for result in response.results:
            if not result.error_code:
                found[result.resource_name] = configs.parsed(result)
            elif result.error_code != UNKNOWN_TOPIC:
                notes.add(("topics", result.resource_name, "configs"), error_name(result.error_code))

    await wire.gather([partial(describe, batch) for batch in batches(sorted(names), TOPICS_PER_REQUEST)])
    return found
