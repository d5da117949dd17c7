"""Brokers: which are registered, live or fenced, and the release of each."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from durability.collect.reasons import Unread
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
    """The release whose binary supports metadata.version up to `level`. For newer levels, the newest release known here.

    >>> release_of(14), release_of(15), release_of(19), release_of(30)
    ('3.6', '3.7', '3.7', '4.3')
    """
    return RELEASES[max(0, bisect_right(RELEASES, level, key=lambda r: r[0]) - 1)][1]


@dataclass(frozen=True)
class Registered:
    """A broker as the cluster describes it. rack None: no broker.rack. fenced None: the release lists live brokers only."""

    id: int
    rack: str | None
    fenced: bool | None

    @property
    def live(self) -> bool:
        return not self.fenced


@dataclass(frozen=True)
class Version:
    """A broker's ApiVersions.

    max_metadata_version: None without KRaft feature levels (ZooKeeper mode).
    apis: the newest version of each request that it knows, by API key.
    """

    release: str
    max_metadata_version: int | None
    finalized: dict[str, int] | None
    apis: dict[int, int] = field(default_factory=dict)


DESCRIBE = 8  # org.apache.kafka.common.acl.AclOperation


async def registered(wire: Wire) -> tuple[list[Registered], bool | None]:
    """The brokers, sorted by id, and whether the principal has Cluster:Describe (None if the release doesn't state it).

    From 3.9 on (version 2 of DescribeCluster) fenced brokers are included.
    """
    request = DescribeClusterRequest(include_fenced_brokers=True, include_cluster_authorized_operations=True)
    try:
        response = await wire.ask_any(request)
    except Unread as exc:
        if exc.reason != "UNSUPPORTED_VERSION":
            raise
        response = await wire.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        found = [Registered(b.node_id, b.rack, None) for b in response.brokers]
        return sorted(found, key=lambda b: b.id), None
    states_fenced = response.API_VERSION >= 2
    found = [Registered(b.broker_id, b.rack, b.is_fenced if states_fenced else None) for b in response.brokers]
    allowed = response.authorized_operations
    return sorted(found, key=lambda b: b.id), None if allowed is None else DESCRIBE in allowed


async def version(wire: Wire, broker: int) -> Version:
    """A broker's release, from its own supported features, and the cluster's finalized levels as this broker knows them."""
    response = await wire.ask(
        broker, ApiVersionsRequest(client_software_name="kafka-durability-audit", client_software_version="1")
    )
    supported = {f.name: f.max_version for f in response.supported_features or ()}
    finalized = None
    if response.API_VERSION >= 3:
        finalized = {f.name: f.max_version_level for f in response.finalized_features or ()}
    level = supported.get("metadata.version")
    apis = {k.api_key: k.max_version for k in response.api_keys}
    if level is not None:
        return Version(release_of(level), level, finalized, apis)
    keys = {k.api_key: (k.min_version, k.max_version) for k in response.api_keys}
    return Version(".".join(map(str, infer_broker_version_from_api_versions(keys))), None, finalized, apis)
