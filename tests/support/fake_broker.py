"""A small broker that answers like a platform, over a real socket, with kafka-python's own protocol classes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsResponse,
    ListGroupsResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

API_VERSIONS = 18
NEWEST = {3: 8, 16: 2, API_VERSIONS: 3, 32: 3, 35: 1}
"""The newest offered version by API key: the last one before flexible versions, whose answers have another header."""
DESCRIBE_CONFIGS = 32


@contextlib.contextmanager
def fake_broker(
    cluster_id: str,
    topics: dict[str, list[list[int]]],
    settings: dict[str, str],
    *,
    own: dict[str, dict[str, str]] | None = None,
    host: str = "127.0.0.1",
    brokers: int = 3,
    without: tuple[int, ...] = (),
    more: Mapping[int, str] | None = None,
    on: Mapping[int, Callable[[], Any]] | None = None,
) -> Iterator[str]:
    """The address of a broker that reports every replica as in sync.

    A partition without replicas has no leader. DescribeConfigs answers with the requested settings.

    topics: replicas by partition.
    settings: of each topic.
    own: further settings by topic.
    host: the address that all `brokers` report.
    without: API keys that it doesn't know.
    more: addresses of further brokers, by node id.
    on: by API key, what happens before a request is answered. What it returns is the answer, in version 0; None: the usual one.
    """
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    open_connections: list[socket.socket] = []
    of_topics = {name: settings | (own or {}).get(name, {}) for name in topics}
    addresses = {n: (host, port) for n in range(brokers)}
    addresses |= {n: (address.split(":")[0], int(address.split(":")[1])) for n, address in (more or {}).items()}
    on = on or {}
    answers = _answers(cluster_id, addresses, topics, of_topics, without, on)

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as stream:
            while size := int.from_bytes(stream.read(4), "big"):
                request = stream.read(size)
                key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
                after = 10 + max(0, int.from_bytes(request[8:10], "big", signed=True))  # the client's id
                body = request[4:8] + answers(key, version, request[after:]).encode()
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


def _answers(
    cluster_id: str,
    addresses: dict[int, tuple[str, int]],
    topics: dict[str, list[list[int]]],
    settings: dict[str, dict[str, str]],
    without: tuple[int, ...],
    on: Mapping[int, Callable[[], Any]],
) -> Callable:
    known = {key: newest for key, newest in (dict.fromkeys(on, 0) | NEWEST).items() if key not in without}
    keys = [ApiVersionsResponse.ApiVersion(api_key=k, min_version=0, max_version=v) for k, v in known.items()]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=n, host=host, port=port, rack=None)
        for n, (host, port) in addresses.items()
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
                    leader_id=replicas[0] if replicas else -1,
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

    def described(asked: Any) -> Any:
        configs = [
            entry(name=k, value=v, read_only=False, is_default=False, config_source=1, is_sensitive=False, synonyms=[])
            for k, v in settings.get(asked.resource_name, {}).items()
            if asked.configuration_keys is None or k in asked.configuration_keys
        ]
        kind, name = asked.resource_type, asked.resource_name
        return result(error_code=0, error_message=None, resource_type=kind, resource_name=name, configs=configs)

    def answer(key: int, version: int, request: bytes) -> Any:
        if key in on and (special := on[key]()) is not None:
            return special
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
        if key == DESCRIBE_CONFIGS:
            asked = DescribeConfigsRequest.decode(request, version=version, header=False)
            return DescribeConfigsResponse(
                version=version, throttle_time_ms=0, results=[described(resource) for resource in asked.resources]
            )
        if key == 35:
            row = DescribeLogDirsResponse.DescribeLogDirsResult(error_code=0, log_dir="/data", topics=[])
            return DescribeLogDirsResponse(version=version, throttle_time_ms=0, results=[row])
        return ListGroupsResponse(version=version, throttle_time_ms=0, error_code=0, groups=[])

    return answer
