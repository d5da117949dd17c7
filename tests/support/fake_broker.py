"""A small broker that answers as some platform does, over a real socket, with kafka-python's own protocol classes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse, ListGroupsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

API_VERSIONS = 18
NEWEST = {3: 8, 16: 2, API_VERSIONS: 3, 32: 3, 35: 1}
"""The newest version that is offered, by API key: the last one before flexible versions, whose answers have another header."""
Answer = Callable[[int, bytes], Any]


@contextlib.contextmanager
def fake_broker(cluster_id: str, topics: dict[str, list[list[int]]], settings: dict[str, str]) -> Iterator[str]:
    """The address of a broker that calls every replica in sync. topics: replicas by partition; settings: of each topic."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    open_connections: list[socket.socket] = []
    answers = _answers(cluster_id, port, topics, settings)

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as stream:
            while size := int.from_bytes(stream.read(4), "big"):
                request = stream.read(size)
                key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
                body = request[4:8] + answers(key, version).encode()
                stream.write(len(body).to_bytes(4, "big") + body)
                stream.flush()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                open_connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in open_connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


def _answers(cluster_id: str, port: int, topics: dict[str, list[list[int]]], settings: dict[str, str]) -> Callable:
    keys = [ApiVersionsResponse.ApiVersion(api_key=k, min_version=0, max_version=v) for k, v in NEWEST.items()]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=port, rack=None) for n in (0, 1, 2)
    ]
    topic, partition = (
        MetadataResponse.MetadataResponseTopic,
        MetadataResponse.MetadataResponseTopic.MetadataResponsePartition,
    )
    rows = [
        topic(
            error_code=0,
            name=name,
            is_internal=False,
            authorized_operations=[],
            partitions=[
                partition(
                    error_code=0,
                    partition_index=n,
                    leader_id=replicas[0],
                    leader_epoch=1,
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                    offline_replicas=[],
                )
                for n, replicas in enumerate(partitions)
            ],
        )
        for name, partitions in topics.items()
    ]
    result = DescribeConfigsResponse.DescribeConfigsResult
    entry = result.DescribeConfigsResourceResult
    configs = [
        entry(name=k, value=v, read_only=False, is_default=False, config_source=1, is_sensitive=False, synonyms=[])
        for k, v in settings.items()
    ]

    def answer(key: int, version: int) -> Any:
        if key == API_VERSIONS:
            return ApiVersionsResponse(version=min(version, 3), error_code=0, api_keys=keys, throttle_time_ms=0)
        if key == 3:
            return MetadataResponse(
                version=version,
                throttle_time_ms=0,
                brokers=brokers,
                cluster_id=cluster_id,
                controller_id=0,
                topics=rows,
                authorized_operations=[],
            )
        if key == 32:
            named = [
                result(error_code=0, error_message=None, resource_type=2, resource_name=name, configs=configs)
                for name in topics
            ]
            return DescribeConfigsResponse(version=version, throttle_time_ms=0, results=named)
        if key == 35:
            row = DescribeLogDirsResponse.DescribeLogDirsResult(error_code=0, log_dir="/data", topics=[])
            return DescribeLogDirsResponse(version=version, throttle_time_ms=0, results=[row])
        return ListGroupsResponse(version=version, throttle_time_ms=0, error_code=0, groups=[])

    return answer
