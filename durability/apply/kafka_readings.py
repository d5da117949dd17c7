"""What a cluster states to an application of a plan, by Kafka's protocol. See `durability.apply.kafka`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from durability.apply.cluster import Reading, Replicas, Resource, ResourceType, TopicPartition
from durability.apply.permissions import Authorized, Operation
from durability.collect import brokers, configs, log_dirs, quorum, topics
from durability.collect.log_dirs import LogDirs
from durability.collect.reasons import Unread, error_name
from durability.collect.voters import FETCHED_WITHIN, SEEN_WITHIN_MS
from durability.collect.wire import Wire, batches
from durability.errors import Refused
from durability.plain import plain
from durability.remedies.elr import FEATURE

SINCE = {
    "AlterPartitionReassignments": "2.4",
    "ElectLeaders": "2.2",
    "IncrementalAlterConfigs": "2.3",
    "ListPartitionReassignments": "2.4",
}
"""The first Kafka release that knows a request."""
RESOURCES_AT_ONCE = 500
KINDS = {ResourceType.TOPIC: configs.TOPIC, ResourceType.BROKER: configs.BROKER}
NO_ANSWER = -1  # UNKNOWN_SERVER_ERROR
TOPIC_AUTHORIZATION_FAILED = 29
# org.apache.kafka.common.acl.AclOperation
OPERATIONS = {7: Operation.ALTER, 8: Operation.DESCRIBE, 10: Operation.DESCRIBE_CONFIGS, 11: Operation.ALTER_CONFIGS}


@contextmanager
def known(wire: Wire, request: str) -> Iterator[None]:
    """Raises Refused if the block shows that brokers are too old for this request."""
    try:
        yield
    except Unread as exc:
        if exc.reason != "UNSUPPORTED_VERSION":
            raise
        raise Refused(
            f"cluster {wire.cluster} can't be changed here: a broker doesn't know the request {request}. "
            f"Kafka {SINCE[request]} and newer know it"
        ) from exc


async def reach_controller(wire: Wire) -> Any:
    """The running reassignments, as the controller states them.

    Further requests begin with the broker that has reached the controller: its metadata is up to date, and a change that it
    gets is made at once.
    """
    with known(wire, "ListPartitionReassignments"):
        response = await wire.ask_controller(ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout(wire)))
    wire.nodes.sort(key=lambda node: node != wire.forwarded_by)
    return response


def timeout(wire: Wire) -> int:
    """Milliseconds that the controller has for a request."""
    return int(wire.limits.controller_timeout * 1000)


async def read(wire: Wire, names: Sequence[str] | None) -> Reading:
    """names: of topics; None for all, without ELRs: Metadata states all partitions in one answer, and has no ELRs."""
    led = await _led(wire)
    # Before the partitions, so that a reassignment that ends meanwhile is still called running.
    moving = _moving(await reach_controller(wire)) if led else {}
    metadata = await _metadata(wire)
    found = await topics.partitions(wire, with_elr=names is not None, names=names)
    registered, _ = await brokers.registered(wire)
    stated = found.with_elr and not any(topic.unstated_elrs for topic in found.topics.values())
    otherwise = None if stated else await _elr_if_unstated(wire)
    partitions = {}
    for name, topic in found.topics.items():
        if topic.error:
            raise Unread(f"{topic.error}: topic {plain(name)}")
        for number, row in topic.partitions.items():
            key = TopicPartition(name, number)
            running = moving.get(key)
            partitions[key] = Replicas(
                tuple(row["replicas"]),
                tuple(row["isr"]),
                row["leader"],
                tuple(row["elr"]) if found.with_elr and number not in topic.unstated_elrs else otherwise,
                running.adding if running else (),
                running.removing if running else (),
            )
    live = frozenset(broker.id for broker in registered if broker.live)
    return Reading(
        metadata.cluster_id,
        live,
        led,
        partitions,
        {key: partitions.get(key, moving[key]) for key in moving},
        {name: topic.id for name, topic in found.topics.items() if topic.id is not None},
        frozenset(broker.id for broker in registered) if all(b.fenced is not None for b in registered) else None,
    )


async def _elr_if_unstated(wire: Wire) -> tuple[int, ...] | None:
    """The ELR of a partition whose ELR isn't stated: none if the cluster's features say that ELRs are off, else unknown.

    Kafka before 4.0 doesn't know the feature.
    """
    finalized = (await brokers.version(wire, wire.nodes[0])).finalized
    return () if finalized is not None and not finalized.get(FEATURE) else None


async def _metadata(wire: Wire) -> Any:
    return await wire.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))


async def _led(wire: Wire) -> bool:
    """Does a controller lead, and has a majority of the voters fetched from it lately?

    Before 3.7, a controller that doesn't reach the other voters goes on answering (KAFKA-15489). Its voters' lags show it after
    SEEN_WITHIN_MS.
    """
    try:
        found = await quorum.describe(wire)
        if found and found.times_known and any(voter.lag_ms is None for voter in found.voters):
            await wire.pause(FETCHED_WITHIN)  # a new leader knows no voter before it has fetched
            found = await quorum.describe(wire)
    except Unread:
        if wire.no_controller:
            return False
        raise
    if found is None:  # ZooKeeper mode
        return (await _metadata(wire)).controller_id >= 0
    if found.leader is None or not found.times_known:
        return found.leader is not None
    fetching = [voter for voter in found.voters if voter.lag_ms is not None and voter.lag_ms <= SEEN_WITHIN_MS]
    return 2 * len(fetching) > len(found.voters)


def _moving(response: Any) -> dict[TopicPartition, Replicas]:
    return {
        TopicPartition(topic.name, p.partition_index): Replicas(
            tuple(p.replicas), (), None, adding=tuple(p.adding_replicas), removing=tuple(p.removing_replicas)
        )
        for topic in response.topics
        for p in topic.partitions
    }


def requests(wire: Wire, resources: Sequence[Resource]) -> list[tuple[int, Sequence[Resource]]]:
    """The broker and the resources of each request. A broker states and takes only its own settings."""
    own = [resource for resource in resources if resource.type is ResourceType.BROKER and resource.name]
    default = [resource for resource in resources if resource.type is ResourceType.BROKER and not resource.name]
    of_topics = [resource for resource in resources if resource.type is ResourceType.TOPIC]
    shared = [*batches(of_topics, RESOURCES_AT_ONCE), *batches(default, 1)]
    return [(wire.nodes[0], each) for each in shared] + [(int(each.name), [each]) for each in own]


async def overrides(
    wire: Wire, resources: Sequence[Resource], names: tuple[str, ...] | None
) -> dict[Resource, dict[str, str]]:
    await reach_controller(wire)
    found: dict[Resource, dict[str, str]] = {}

    async def describe(node: int, batch: Sequence[Resource]) -> None:
        request = configs.request(KINDS[batch[0].type], [resource.name for resource in batch], names)
        try:
            results = {result.resource_name: result for result in (await wire.ask(node, request)).results}
        except Unread as exc:
            raise Unread(f"{exc.reason} (broker {node})", connection=exc.connection) from exc
        for resource in batch:
            result = results.get(resource.name)
            code = NO_ANSWER if result is None else result.error_code
            if not code:
                found[resource] = _own(resource, configs.parsed(result))
            elif resource.type is not ResourceType.TOPIC or code != topics.UNKNOWN_TOPIC:
                raise Unread(f"{error_name(code)}: settings of {resource.type} {plain(resource.name)}")

    await wire.gather([partial(describe, *each) for each in requests(wire, resources)])
    return found


def _own(resource: Resource, found: configs.Configs) -> dict[str, str]:
    """The values that are set for the resource itself."""
    of_broker = "broker-dynamic" if resource.name else "cluster-default"
    source = "topic" if resource.type is ResourceType.TOPIC else of_broker
    return {name: value for name, value in found.values.items() if found.sources.get(name) == source}


async def log_dirs_of(wire: Wire, ids: Collection[int]) -> dict[int, LogDirs]:
    """The log dirs of each of these brokers that answers."""
    found: dict[int, LogDirs] = {}

    async def describe(broker: int) -> None:
        try:
            found[broker] = await log_dirs.describe(wire, broker)
        except Unread as exc:
            if not exc.connection:
                raise

    await wire.gather([partial(describe, broker) for broker in sorted(set(ids))])
    return found


def usable(found: LogDirs) -> int | None:
    stated = [each["usable_bytes"] for each in found.dirs if not each["error"]]
    return sum(stated) if stated and None not in stated else None


async def authorized(wire: Wire, names: Sequence[str]) -> Authorized:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    try:
        of_cluster = _operations((await wire.ask_any(request)).authorized_operations)
    except Unread as exc:
        if exc.reason != "UNSUPPORTED_VERSION":
            raise
        of_cluster = None
    wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    response = await wire.ask_any(
        MetadataRequest(topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    )
    of_topics: dict[str, frozenset[Operation] | None] = dict.fromkeys(names)
    for topic in response.topics:
        refused = topic.error_code == TOPIC_AUTHORIZATION_FAILED
        of_topics[topic.name] = frozenset() if refused else _operations(topic.authorized_operations)
    return Authorized(of_cluster, of_topics)


def _operations(stated: Collection[int] | None) -> frozenset[Operation] | None:
    """None if brokers don't state them: those before 2.3 don't know the request's option."""
    return None if stated is None else frozenset(OPERATIONS[code] for code in stated if code in OPERATIONS)
