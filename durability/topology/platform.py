"""Recognizes the platform of a cluster. Some platforms speak Kafka's protocol but aren't Kafka, or hide facts from controls.

A platform is recognized by its answers: the cluster's id, its brokers' host names, the settings that it states, and the
requests that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from durability.topology import diskless


@dataclass(frozen=True)
class Platform:
    """How to recognize a platform. One matching mark is enough.

    provider: a key of the catalogue's providers.
    ids: beginnings of a cluster's id.
    hosts: ends of a broker's host name.
    infix: a part that the host name must contain, too.
    settings: beginnings of a setting's name.
    """

    provider: str
    ids: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    infix: str = ""
    settings: tuple[str, ...] = ()


PLATFORMS = (
    Platform("redpanda", ids=("redpanda.",), settings=("redpanda.",)),
    Platform("event-hubs", hosts=(".servicebus.windows.net", ".servicebus.chinacloudapi.cn")),
    Platform(
        "object-storage",
        ids=("vci_",),
        hosts=(".warpstream.com",),
        settings=("elasticstream.", "automq.", "s3.data.buckets", "warpstream.", "bufstream."),
    ),
    Platform("msk-serverless", hosts=(".amazonaws.com", ".amazonaws.com.cn"), infix="kafka-serverless"),
    Platform("msk", hosts=(".amazonaws.com", ".amazonaws.com.cn"), infix=".kafka."),
    Platform("confluent", ids=("lkc-",), hosts=(".confluent.cloud", ".confluentgov.com")),
    Platform("aiven", hosts=(".aivencloud.com",)),
)
SETTINGS_OF_BROKERS = ("elasticstream.enable", "automq.table.topic.catalog.type", "s3.data.buckets")
SETTINGS_OF_TOPICS = (
    *("redpanda.remote.read", "redpanda.remote.write", "automq.table.topic.enable", "bufstream.archive.kind"),
    *diskless.SETTINGS,
)
"""Settings that only a platform states. They are read to recognize it."""
METADATA, DESCRIBE_CONFIGS = 3, 32
METADATA_OF_0_11 = 4
"""The version of Metadata that came with DescribeConfigs. A broker with Kafka's code that has one of them has both."""


def recognized(
    cluster_id: str | None,
    hosts: Collection[str],
    settings: Collection[str],
    *,
    apis: Mapping[int, int] | None = None,
    brokers: int = 0,
    replicas: int = 0,
) -> tuple[str, str] | None:
    """The provider that answered, and the answer that shows it; None if nothing does.

    apis: the newest version of each request that brokers know, by API key. None or empty if unknown.
    brokers: their number.
    replicas: the most of any partition.

    >>> recognized("redpanda.4fb1", [], [])
    ('redpanda', "the cluster's id begins with redpanda.")
    >>> recognized("x", ["b-1.demo.x1.c2.kafka.eu-west-1.amazonaws.com"], [])
    ('msk', 'a broker is at b-1.demo.x1.c2.kafka.eu-west-1.amazonaws.com')
    >>> recognized("MkU3OEVBNTcwNTJENDM2Qg", ["kafka-1.example.com"], ["min.insync.replicas"])
    """
    for platform in PLATFORMS:
        for start in platform.ids:
            if (cluster_id or "").startswith(start):
                return platform.provider, f"the cluster's id begins with {start}"
        for host in sorted(hosts):
            if platform.hosts and host.endswith(platform.hosts) and platform.infix in host:
                return platform.provider, f"a broker is at {host}"
        for setting in sorted(settings):
            if platform.settings and setting.startswith(platform.settings):
                return platform.provider, f"it has the setting {setting}"
    known = apis or {DESCRIBE_CONFIGS: 0}
    hides_configs = DESCRIBE_CONFIGS not in known and known.get(METADATA, 0) >= METADATA_OF_0_11
    if hides_configs and brokers == 1 and replicas <= 1:
        return "event-hubs", "its one broker doesn't know DescribeConfigs, and no partition has a second replica"
    return None
