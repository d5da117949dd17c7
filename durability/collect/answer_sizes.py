"""How large an answer may be. A peer announces the size of each, and kafka-python makes room for it at once.

Before a peer has authenticated, answers have 1 MiB at most. After that, each connection takes answers as large as the largest
request on it can have. A Kafka listener that speaks TLS to a plaintext client announces 336 MiB.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from durability.collect.messages import StreamsGroupDescribeRequest

MIB = 1 << 20
UNAUTHENTICATED = MIB
ONE = 16 * MIB
"""An answer about one thing, or one page of DescribeTopicPartitions."""
LISTING = 128 * MIB
"""Metadata of three million partitions, at 42 bytes each with three replicas."""
OF_BROKER = 32 * MIB
"""What one broker has: half a million replicas, or groups. Many brokers are asked at the same time."""
_PER_RESOURCE = 64 << 10
_PER_GROUP = MIB  # what one record of __consumer_offsets can have by default: a group with all its members


def largest_answer(request: Any) -> int:
    """Bytes that the answer to this request can have at most.

    >>> largest_answer(MetadataRequest(topics=[])) // MIB, largest_answer(MetadataRequest(topics=None)) // MIB
    (16, 128)
    >>> largest_answer(DescribeGroupsRequest(groups=["a"] * 100)) // MIB
    101
    """
    match request:
        case MetadataRequest() | ListPartitionReassignmentsRequest():
            return LISTING if request.topics is None else ONE
        case DescribeLogDirsRequest() | ListGroupsRequest():
            return OF_BROKER
        case DescribeConfigsRequest():
            return MIB + _PER_RESOURCE * len(request.resources)
        case DescribeGroupsRequest():
            return MIB + _PER_GROUP * len(request.groups)
        case StreamsGroupDescribeRequest():
            return MIB + _PER_GROUP * len(request.group_ids)
    return ONE


def allow(connection: Any, size: int) -> None:
    """Lets a connection take answers of so many bytes, once the peer has authenticated."""

    def raise_limit(_: object) -> None:
        # kafka-python has one limit, of all answers from the first on.
        parser = connection.parser
        parser._max_frame_size = max(parser._max_frame_size, size)

    connection.init_future.add_callback(raise_limit)
