"""Limits the size of answers. A peer announces the size of each answer, and kafka-python allocates that much memory at once.

Before authentication, an answer may have 1 MiB. After that, each connection accepts answers as large as its largest request
allows. For example, a Kafka listener that answers a plaintext client with TLS seems to announce 336 MiB.
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
"""An answer about one broker: half a million replicas, or groups. Many brokers are read at the same time."""
_PER_RESOURCE = 64 << 10
_PER_GROUP = MIB  # the default limit of a record in __consumer_offsets, which has a group with all its members


def largest_answer(request: Any) -> int:
    """The most bytes that the answer to this request can have.

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
    """Let a connection accept answers of `size` bytes, once the peer has authenticated."""

    def raise_limit(_: object) -> None:
        # kafka-python has one limit for all answers.
        parser = connection.parser
        parser._max_frame_size = max(parser._max_frame_size, size)

    connection.init_future.add_callback(raise_limit)
