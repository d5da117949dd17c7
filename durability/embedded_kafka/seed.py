"""The topics of the demo cluster: good ones, and deliberate mistakes. tests/support/planted.py lists their findings.

Assignments refer to `demo.spec`: racks az1 {1, 4}, az2 {2, 5}, az3 {3}; broker 6 has no broker.rack; broker 5 is killed
at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from durability.embedded_kafka.streams import INPUT, OUTPUT
from durability.errors import AuditError

if TYPE_CHECKING:
    from durability.embedded_kafka.cluster import LocalCluster

DEAD, UNRACKED, BAD_DISK = 5, 6, 3  # broker ids
THROTTLED = (2, 3)
THROTTLE_BYTES = "10000000"

Assignments = tuple[Sequence[int], ...]

# Three replicas in three racks, on brokers that stay up.
SPREAD: Assignments = ((1, 2, 3), (2, 3, 4), (3, 4, 2))
_COMPACT = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Topic:
    """A topic. assignments: the broker ids of each partition's replicas, leader first."""

    name: str
    assignments: Assignments = SPREAD
    configs: Mapping[str, str] = field(default_factory=dict)


STREAMS_INTERNAL = tuple(
    f"streams-wordcount-KSTREAM-AGGREGATE-STATE-STORE-0000000003-{kind}" for kind in ("changelog", "repartition")
)
# Two data centres, which aren't among the application's rack.aware.assignment.tags. Four of six stateful tasks are active in
# blue, where only the green instance is a good place for their standbys. Kafka's assignor takes the least loaded instance,
# which is a blue one after two standbys. So some standby is in its active's data centre, whatever the order.
STREAMS_TAGS = {"az1": {"dc": "blue"}, "az2": {"dc": "blue"}, "az3": {"dc": "green"}}
STREAMS_GROUP = "streams-wordcount"
GOOD = (
    # Placed by hand, since automatic placement would use the broker that is killed.
    Topic("__consumer_offsets", SPREAD, {**_COMPACT, "compression.type": "producer", "segment.bytes": "104857600"}),
    Topic(STREAMS_INTERNAL[0], SPREAD * 2, _COMPACT),
    Topic(STREAMS_INTERNAL[1], SPREAD * 2, {"cleanup.policy": "delete", "retention.ms": "-1"}),
    Topic(INPUT, SPREAD * 2),
    Topic(OUTPUT),
    Topic("orders.placed"),
    Topic("orders.shipped", SPREAD, {"min.insync.replicas": "2"}),
    Topic("customers.profiles", ((4, 3, 2),), _COMPACT),
    Topic("scratch.notebooks", ((1, 2), (3, 4)), {"min.insync.replicas": "1"}),
)
MISTAKEN = (
    Topic("clickstream.raw", ((1, 2), (2, 3), (3, 4)), {"min.insync.replicas": "1"}),
    Topic("sessions.enriched", SPREAD, {"min.insync.replicas": "1"}),
    Topic("test.load-results", ((1, 2), (2, 3)), {"min.insync.replicas": "3"}),
    Topic("ledger.entries", SPREAD, {"min.insync.replicas": "3"}),
    Topic("metrics.cache", SPREAD, {"unclean.leader.election.enable": "true"}),
    Topic("metrics.gauges", SPREAD, {"unclean.leader.election.enable": "true"}),
    Topic("billing.invoices", ((1, 4, UNRACKED), (1, 2, 3))),
    Topic("_schemas", ((1, DEAD, 4),), _COMPACT),
    Topic("connect-offsets", ((1, 2, 4), (2, 4, 1)), _COMPACT),
    Topic("regulated.trades", SPREAD),
    Topic("payments.settled", ((1, 2, 3), (DEAD, 3, 4), (3, 4, 2))),
    Topic("dev.build-cache", ((DEAD,),), {"min.insync.replicas": "1"}),
    Topic("test.stuck-writes", ((4, DEAD),), {"min.insync.replicas": "2"}),
    Topic("shipments.tracking", SPREAD, {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }),
)  # fmt: skip
TOPICS = (*GOOD, *MISTAKEN)


def create_topics(cluster: LocalCluster, topics: Iterable[Topic]) -> None:
    """Creates topics; returns when every broker knows them, with leaders. AuditError names a topic that failed."""
    wanted = {
        topic.name: {
            "assignments": {partition: list(replicas) for partition, replicas in enumerate(topic.assignments)},
            "configs": dict(topic.configs),
        }
        for topic in topics
    }
    if not wanted:
        return
    with cluster.admin() as admin:
        # A broker that has just started may be named as controller before every broker's metadata knows it.
        answer = cluster.wait_until(lambda: admin.create_topics(wanted, raise_errors=False), "topics are created")
    for topic in answer["topics"]:
        if topic["error_code"]:
            raise AuditError(f"can't create topic {topic['name']}: {topic['error_message'] or topic['error_code']}")
    cluster.wait_for_topics(wanted)


def set_broker_configs(cluster: LocalCluster, brokers: Iterable[int], configs: Mapping[str, str]) -> None:
    """Sets dynamic configs of brokers, also configs that DescribeConfigs doesn't list before they are set."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.BROKER, str(broker), dict(configs)) for broker in brokers]
    with cluster.admin() as admin:
        answer = admin.alter_configs(resources, raise_on_unknown=False)
    refused = {name: said for results in answer.values() for name, said in results.items() if said != "OK"}
    if refused:
        raise AuditError(f"can't set {', '.join(configs)} on broker {refused}")


def produce(cluster: LocalCluster, topic: str, lines: Iterable[str]) -> None:
    """Writes lines to a topic with acks=all and waits for the acknowledgements."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks="all")
    try:
        for sent in [producer.send(topic, line.encode()) for line in lines]:
            sent.get(30)
    finally:
        producer.close(10)


def plant(cluster: LocalCluster) -> None:
    """Creates TOPICS, and a throttle that is left without a reassignment."""
    create_topics(cluster, TOPICS)
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    set_broker_configs(cluster, THROTTLED, dict.fromkeys(rates, THROTTLE_BYTES))
