"""Brokers: who is registered, live or fenced, which release each runs, and its configs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from durability.collect import configs
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire

# First metadata.version level of each release (org.apache.kafka.server.common.MetadataVersion).
RELEASES = (
    (1, "3.0"),
    (2, "3.1"),
    (3, "3.2"),
    (4, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
)


def release_of(level: int) -> str:
    """The release whose binary supports metadata.version up to `level`; of newer ones the newest known here.

    >>> release_of(14), release_of(15), release_of(19), release_of(30)
    ('3.6', '3.7', '3.7', '4.3')
    """
    return RELEASES[max(0, bisect_right(RELEASES, level, key=lambda r: r[0]) - 1)][1]


@dataclass(frozen=True)
class Registered:
    """A broker as the cluster describes it. rack None: no broker.rack."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None  # None: this release lists live brokers only

    @property
    def live(self) -> bool:
        return not self.fenced


@dataclass(frozen=True)
class Version:
    """What a broker's ApiVersions says. max_metadata_version None: no KRaft feature levels (ZooKeeper mode)."""

    release: str
    max_metadata_version: int | None
    finalized: dict[str, int] | None


DESCRIBE = 8  # org.apache.kafka.common.acl.AclOperation


@dataclass(frozen=True)
class Registration:
    """The brokers the cluster knows, by id. may_describe: has the principal Cluster:Describe; None: it isn't said."""

    brokers: list[Registered]
    may_describe: bool | None


async def registered(wire: Wire) -> Registration:
    """DescribeCluster: fenced brokers too where it has version 2 (3.9 and later), live ones only before."""
    try:
        response = await wire.ask_any(
            lambda: DescribeClusterRequest(include_fenced_brokers=True, include_cluster_authorized_operations=True),
            lambda r: r.error_code,
        )
    except Unread as exc:
        if exc.reason != "UNSUPPORTED_VERSION":
            raise
        response = await wire.ask_any(lambda: MetadataRequest(topics=[], allow_auto_topic_creation=False))
        found = [Registered(b.node_id, b.host, b.port, b.rack, None) for b in response.brokers]
        return Registration(sorted(found, key=lambda b: b.id), None)
    says_fenced = response.API_VERSION >= 2
    found = [
        Registered(b.broker_id, b.host, b.port, b.rack, b.is_fenced if says_fenced else None) for b in response.brokers
    ]
    allowed = response.authorized_operations
    return Registration(sorted(found, key=lambda b: b.id), None if allowed is None else DESCRIBE in allowed)


async def version(wire: Wire, broker: int) -> Version:
    """The release a broker runs, by its own supported features; the cluster's finalized levels as it knows them."""
    response = await wire.checked(
        broker,
        lambda: ApiVersionsRequest(client_software_name="kafka-durability-audit", client_software_version="1"),
        lambda r: r.error_code,
    )
    supported = {f.name: f.max_version for f in response.supported_features or ()}
    finalized = None
    if response.API_VERSION >= 3:
        finalized = {f.name: f.max_version_level for f in response.finalized_features or ()}
    level = supported.get("metadata.version")
    if level is not None:
        return Version(release_of(level), level, finalized)
    keys = {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}
    return Version(".".join(map(str, infer_broker_version_from_api_versions(keys))), None, finalized)


async def broker_configs(wire: Wire, broker: int) -> configs.Configs:
    """A broker's configs, from the broker itself: its static ones are known to no other."""
    response = await wire.checked(broker, lambda: node_configs(broker), first_error)
    return configs.parsed(response.results[0])


def node_configs(node: int) -> Any:
    """The request for a node's (broker's or controller's) configs."""
    return configs.request(configs.BROKER, [str(node)], configs.BROKER_KEYS)


def first_error(response: Any) -> int:
    """The error code of a DescribeConfigs answer about one resource."""
    if not response.results:
        raise Unread(f"{error_name(-1)}: the answer is empty")
    return response.results[0].error_code
