"""DescribeConfigs: the keys that are read, and answers as `configs` and `config_sources`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from durability.catalogue.settings import read_of_brokers, read_of_topics
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire
from durability.topology import platform

TOPIC, BROKER = 2, 4  # org.apache.kafka.common.config.ConfigResource.Type

# DescribeConfigsResponse.ConfigSource -> its name in `config_sources`.
SOURCES = {1: "topic", 2: "broker-dynamic", 3: "cluster-default", 4: "broker", 5: "default"}

# Evidence, besides the settings that the controls read. min.insync.racks is KIP-1290's proposal: no broker has it yet.
_EVIDENCE_OF_TOPICS = (
    *platform.SETTINGS_OF_TOPICS,
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
    *platform.SETTINGS_OF_BROKERS,
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "broker.rack",
    "broker.session.timeout.ms",
    "confluent.log.placement.constraints",
    "controlled.shutdown.enable",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "cordoned.log.dirs",
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

    values: by key. Keys with a null value are left out.
    sources: the source of each value, one of SOURCES. Keys with another source are left out.
    """

    values: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def members(self) -> dict[str, dict[str, str]]:
        """The members of the document for these configs, sorted by key."""
        return {"configs": dict(sorted(self.values.items())), "config_sources": dict(sorted(self.sources.items()))}


def request(kind: int, names: Sequence[str], keys: tuple[str, ...] | None) -> Any:
    """DescribeConfigs of these resources. keys: None for all settings."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    key_list = None if keys is None else list(keys)
    return DescribeConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=key_list) for name in names],
        include_synonyms=False,
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
    return configs


async def names_of_topic(wire: Wire, topic: str) -> frozenset[str]:
    """The names of all settings of a topic. Some identify a platform."""
    response = await wire.ask_any(request(TOPIC, [topic], None), _first_error)
    return frozenset(entry.name for entry in response.results[0].configs)


async def of_broker(wire: Wire, broker: int) -> Configs:
    """A broker's configs, from the broker itself, because only it knows its static ones."""
    return parsed((await wire.ask(broker, _node_request(broker), _first_error)).results[0])


async def of_controller(wire: Wire, node: int, addresses: list[tuple[str, int]]) -> Configs:
    """Configs of a controller that is no broker, from its own listener (KIP-919). There is one attempt.

    That listener is often closed to clients, or has another security protocol. Raises Unread then.
    """
    failure = Unread("NETWORK_EXCEPTION: the quorum names no listener of this controller")
    for host, port in addresses:
        try:
            response = await wire.ask_address(host, port, _node_request(node), _first_error)
        except Unread as exc:
            failure = exc
        else:
            return parsed(response.results[0])
    raise failure


def _node_request(node: int) -> Any:
    return request(BROKER, [str(node)], BROKER_KEYS)


def _first_error(response: Any) -> int:
    if not response.results:
        raise Unread(f"{error_name(-1)}: the answer is empty")
    return response.results[0].error_code
