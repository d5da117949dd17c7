"""DescribeConfigs: which keys are read, and how an answer becomes `configs` and `config_sources`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from durability.catalogue.settings import read_of_brokers, read_of_topics

TOPIC, BROKER = 2, 4  # org.apache.kafka.common.config.ConfigResource.Type

# DescribeConfigsResponse.ConfigSource -> the names shared by all rooms.
SOURCES = {1: "topic", 2: "broker-dynamic", 3: "cluster-default", 4: "broker", 5: "default"}

# What the controls read, and evidence beside it. min.insync.racks is KIP-1290's proposal: no broker has it yet.
_EVIDENCE_OF_TOPICS = (
    "cleanup.policy",
    "confluent.placement.constraints",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "min.insync.racks",
    "min.insync.replicas",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)
_EVIDENCE_OF_BROKERS = (
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "broker.rack",
    "broker.session.timeout.ms",
    "confluent.log.placement.constraints",
    "controlled.shutdown.enable",
    "controller.quorum.voters",
    "default.replication.factor",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "log.dir",
    "log.dirs",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "min.insync.racks",
    "min.insync.replicas",
    "node.id",
    "num.partitions",
    "offsets.topic.replication.factor",
    "process.roles",
    "remote.log.storage.system.enable",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "replica.lag.time.max.ms",
    "replica.selector.class",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
    "unclean.leader.election.enable",
)
TOPIC_KEYS = tuple(sorted({*_EVIDENCE_OF_TOPICS, *read_of_topics()}))
BROKER_KEYS = tuple(sorted({*_EVIDENCE_OF_BROKERS, *read_of_brokers()}))


@dataclass
class Configs:
    """One resource's configs.

    values: by key; a key without a value (null) is left out.
    sources: where each value comes from, one of SOURCES; left out where Kafka said something else.
    synonyms: [source, value] in order of precedence, for keys set in more than one place.
    """

    values: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    synonyms: dict[str, list[list[str | None]]] = field(default_factory=dict)


def request(kind: int, names: list[str], keys: tuple[str, ...]) -> Any:
    """DescribeConfigs of these resources, `keys` only, with synonyms."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=list(keys)) for name in names],
        include_synonyms=True,
        include_documentation=False,
    )


def parsed(result: Any) -> Configs:
    """The configs of one resource of a DescribeConfigs answer."""
    configs = Configs()
    for entry in result.configs:
        if entry.value is None or entry.is_sensitive:
            continue
        configs.values[entry.name] = entry.value
        if entry.config_source in SOURCES:
            configs.sources[entry.name] = SOURCES[entry.config_source]
        if len(entry.synonyms or ()) > 1:
            configs.synonyms[entry.name] = [[SOURCES.get(s.source), s.value] for s in entry.synonyms]
    return configs
