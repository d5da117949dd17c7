"""Changes of a cluster by Kafka's protocol. `durability.apply.kafka` says when a change is sent again.

Each function raises Unread if a change isn't answered, and Refused if brokers don't know the request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)

from durability.apply.cluster import Resource, ResourceType, SettingChange, TopicPartition
from durability.apply.kafka_readings import KINDS, NO_ANSWER, known, reach_controller, requests, timeout
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import NO_CONTROLLER, Wire, batches
from durability.plain import plain

PARTITIONS_AT_ONCE = 1000
"""Of one request. A controller makes at most 10,000 records of one (QuorumController.MAX_RECORDS_PER_USER_OP)."""
SET, DELETE = 0, 1  # org.apache.kafka.clients.admin.AlterConfigOp.OpType
NOT_NEEDED = "ELECTION_NOT_NEEDED"


async def alter(wire: Wire, changes: Sequence[SettingChange]) -> dict[Resource, str]:
    await reach_controller(wire)
    by_resource: defaultdict[Resource, list[SettingChange]] = defaultdict(list)
    for change in changes:
        by_resource[change.resource].append(change)
    own = {resource for resource in by_resource if resource.type is ResourceType.BROKER and resource.name}
    errors: dict[Resource, str] = {}

    async def send(node: int, batch: Sequence[Resource]) -> None:
        request = _alteration({resource: by_resource[resource] for resource in batch})
        try:
            with known(wire, "IncrementalAlterConfigs"):
                response = await wire.ask(node, request, _no_controller)
        except Unread as exc:
            if not exc.connection or batch[0] not in own:
                raise
            errors[batch[0]] = exc.reason
            return
        answered = {(r.resource_type, r.resource_name): r for r in response.responses}
        for resource in batch:
            result = answered.get((KINDS[resource.type], resource.name))
            if code := NO_ANSWER if result is None else result.error_code:
                said = plain(result.error_message or "") if result else ""
                errors[resource] = ": ".join(filter(None, (error_name(code), said)))

    await wire.gather([partial(send, *each) for each in requests(wire, list(by_resource))])
    return errors


def _alteration(changes: Mapping[Resource, Sequence[SettingChange]]) -> Any:
    altered = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = []
    for resource, of_resource in changes.items():
        values = [
            altered.AlterableConfig(
                name=change.name, config_operation=DELETE if change.value is None else SET, value=change.value
            )
            for change in of_resource
        ]
        resources.append(altered(resource_type=KINDS[resource.type], resource_name=resource.name, configs=values))
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


def _no_controller(response: Any) -> int:
    """The error of the whole request, which this answer states for each resource; 0 if the controller was reached."""
    code = response.responses[0].error_code if response.responses else 0
    return code if error_name(code) in NO_CONTROLLER else 0


async def reassign(
    wire: Wire, targets: Mapping[TopicPartition, Sequence[int] | None], same_factor: bool
) -> dict[TopicPartition, str]:
    await reach_controller(wire)
    errors: dict[TopicPartition, str] = {}
    of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    for batch in batches(sorted(targets), PARTITIONS_AT_ONCE):
        moved = []
        for name, partitions in _by_topic(batch).items():
            rows = [
                of_topic.ReassignablePartition(
                    partition_index=number, replicas=_listed(targets[TopicPartition(name, number)])
                )
                for number in partitions
            ]
            moved.append(of_topic(name=name, partitions=rows))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=timeout(wire), allow_replication_factor_change=not same_factor, topics=moved
        )
        with known(wire, "AlterPartitionReassignments"):
            response = await wire.ask(wire.nodes[0], request)
        answered = {(t.name, p.partition_index): p.error_code for t in response.responses for p in t.partitions}
        errors |= _errors(batch, answered)
    return errors


async def elect(wire: Wire, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
    await reach_controller(wire)
    errors: dict[TopicPartition, str] = {}
    for batch in batches(partitions, PARTITIONS_AT_ONCE):
        elected = [
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=numbers)
            for name, numbers in _by_topic(batch).items()
        ]
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED, topic_partitions=elected, timeout_ms=timeout(wire)
        )
        with known(wire, "ElectLeaders"):
            response = await wire.ask(wire.nodes[0], request)
        results = response.replica_election_results
        answered = {(t.topic, p.partition_id): p.error_code for t in results for p in t.partition_result}
        errors |= _errors(batch, answered)
    return {partition: error for partition, error in errors.items() if error != NOT_NEEDED}


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        found[topic].append(number)
    return found


def _errors(asked: Iterable[TopicPartition], answered: Mapping[tuple[str, int], int]) -> dict[TopicPartition, str]:
    """Kafka's names of the errors. A partition that isn't answered has one, too."""
    codes = {partition: answered.get(partition, NO_ANSWER) for partition in asked}
    return {partition: error_name(code) for partition, code in codes.items() if code}
