"""The KRaft quorum: leader, voters and observers with their lag."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeQuorumRequest

from durability.collect.configs import Configs
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire

TOPIC = "__cluster_metadata"
CONTROLLERS = 2  # org.apache.kafka.clients.admin.internals.AdminBootstrapAddresses, KIP-919
Address = tuple[str, int]
"""Host and port of a listener."""


_ADDRESS = r"(?:\[([^\]]+)\]|([^:\[\]]+)):(\d+)"


@dataclass(frozen=True)
class Member:
    """A voter or observer. lag_ms: the time since it was last caught up with the leader; None if it never was."""

    id: int
    lag_ms: int | None


@dataclass
class Quorum:
    """The quorum.

    leader: None if there is none.
    addresses: controllers' listeners as (host, port), by node id (KIP-853).
    leader_clock_ms: the leader's clock when it answered. None if it doesn't state it.
    clock_offset_ms: how far the leader's clock is ahead of this machine's, to half the time of the request; None if unknown.
    times_known: does the leader state when members caught up? Kafka does since 3.4 (KIP-836). Otherwise lags are unread.
    """

    leader: int | None
    voters: list[Member]
    observers: list[Member]
    addresses: dict[int, list[Address]] = field(default_factory=dict)
    times_known: bool = True
    leader_clock_ms: int | None = field(default=None, compare=False)
    clock_offset_ms: int | None = field(default=None, compare=False)


async def describe(wire: Wire) -> Quorum | None:
    """The quorum as its leader sees it; None in ZooKeeper mode, where brokers don't know the request."""
    try:
        asked = time.time()
        response = await wire.ask_controller(_request(), _error)
        answered = time.time()
    except Unread as exc:
        if exc.reason == "UNSUPPORTED_VERSION":
            return None
        raise
    found = _parsed(response)
    # For itself, the leader states its own clock as the time of being caught up (KIP-836).
    if found.leader_clock_ms is not None:
        found.clock_offset_ms = round(found.leader_clock_ms - (asked + answered) / 2 * 1000)
    return found


async def describe_by_voters(wire: Wire, listeners: Sequence[Address]) -> Quorum | None:
    """The quorum as its leader states it on its own listener; None if no voter says that it leads.

    Brokers wait for a leader that hangs, though the voters have elected another one. listeners: of voters.
    """
    try:
        found = _parsed(await wire.ask_addresses(listeners, _request(), _error))
    except Unread:
        return None
    return None if found.leader is None else found


async def registered(wire: Wire, listeners: Sequence[Address]) -> dict[int, list[Address]]:
    """The listeners of the controllers by id, as one of them states them, with or without a leader (KIP-919).

    Empty if none answers. A controller that is no voter, or not any more, may be among them.
    """
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS, min_version=1)
    try:
        response = await wire.ask_addresses(listeners, request, lambda answer: answer.error_code)
    except Unread:
        return {}
    return {node.broker_id: [(node.host, node.port)] for node in response.brokers}


def _request() -> Any:
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=[topic(topic_name=TOPIC, partitions=[partition])])


def _parsed(response: Any) -> Quorum:
    data = response.topics[0].partitions[0]
    voters, observers = _newest(data.current_voters), _newest(data.observers)
    # A controller that runs with a new disk observes. The voter is the disk that it had before, and never comes back (KIP-853).
    elsewhere = {r.replica_id: r.replica_directory_id for r in observers}
    replaced = {
        r.replica_id for r in voters if r.replica_directory_id != elsewhere.get(r.replica_id, r.replica_directory_id)
    }
    # A leader that removed itself from the quorum is no voter any more (KIP-853).
    stated = {r.replica_id: r.last_caught_up_timestamp for r in (*voters, *observers)}.get(data.leader_id)
    caught_up = -1 if stated is None else stated
    return Quorum(
        data.leader_id if data.leader_id >= 0 else None,
        [
            Member(r.replica_id, None) if r.replica_id in replaced else _member(r, data.leader_id, caught_up)
            for r in voters
        ],
        [_member(r, data.leader_id, caught_up) for r in observers],
        {node.node_id: [(at.host, at.port) for at in node.listeners] for node in response.nodes or ()},
        times_known=caught_up >= 0,
        leader_clock_ms=caught_up if caught_up >= 0 else None,
    )


def _newest(replicas: Iterable[Any]) -> list[Any]:
    """One replica for each node: the one that was caught up last.

    For five minutes after a node got a new disk, the leader lists it with both directory ids (seen on 4.3.1).
    """
    found: dict[int, Any] = {}
    for replica in replicas:
        other = found.get(replica.replica_id)
        if other is None or replica.last_caught_up_timestamp > other.last_caught_up_timestamp:
            found[replica.replica_id] = replica
    return list(found.values())


def _error(response: Any) -> int:
    if response.error_code:
        return response.error_code
    if not response.topics or not response.topics[0].partitions:
        raise Unread(f"{error_name(-1)}: the answer is empty")
    return response.topics[0].partitions[0].error_code


def _member(replica: Any, leader: int, leader_caught_up: int) -> Member:
    """The lag is a difference of last caught-up times, not of offsets, because an idle quorum's offsets stay equal."""
    if replica.replica_id == leader:
        return Member(replica.replica_id, 0)
    own = replica.last_caught_up_timestamp
    known = own is not None and own >= 0 and leader_caught_up >= 0
    return Member(replica.replica_id, max(0, leader_caught_up - own) if known else None)


def stated_listeners(brokers: Iterable[Configs]) -> list[Address]:
    """Controllers' listeners in `controller.quorum.bootstrap.servers`, which quorums with changing voters have instead.

    From the first broker that has it.
    """
    stated = (configs.values.get("controller.quorum.bootstrap.servers", "") for configs in brokers)
    servers = next(filter(None, stated), "").split(",")
    found = [re.fullmatch(rf"\s*{_ADDRESS}\s*", server) for server in servers]
    return [(match[1] or match[2], int(match[3])) for match in found if match]


def stated_voters(brokers: Iterable[Configs]) -> dict[int, list[Address]]:
    """Voters and their listeners, from the first broker that has `controller.quorum.voters`."""
    stated = (configs.values.get("controller.quorum.voters", "") for configs in brokers)
    return stated_addresses(next(filter(None, stated), ""))


def stated_addresses(voters: str) -> dict[int, list[Address]]:
    """Controllers' listeners in `controller.quorum.voters`, for quorums that don't state them (before 3.9).

    >>> stated_addresses("100@a:9093,101@[::1]:9093")
    {100: [('a', 9093)], 101: [('::1', 9093)]}
    """
    found = {}
    for entry in filter(None, voters.split(",")):
        match = re.fullmatch(rf"\s*(\d+)@{_ADDRESS}\s*", entry)
        if match:
            found[int(match[1])] = [(match[2] or match[3], int(match[4]))]
    return found
