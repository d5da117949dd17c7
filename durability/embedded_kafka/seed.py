"""What the demo cluster holds: good topics, and one deliberate mistake for every control, as data.

The layout that the assignments mean (`demo.spec`): racks az1 {1, 4}, az2 {2, 5}, az3 {3}; broker 6 has no broker.rack;
broker 5 is killed at the end. `PLANTED` says what an audit under policies/demo has to find, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from durability.embedded_kafka.streams import INPUT, OUTPUT
from durability.errors import AuditError

if TYPE_CHECKING:
    from durability.embedded_kafka.cluster import LocalCluster

CLUSTER = "demo"
DEAD, UNRACKED, BAD_DISK = 5, 6, 3  # broker ids
THROTTLED = (2, 3)
THROTTLE_BYTES = "10000000"

Assignments = tuple[Sequence[int], ...]

# Three replicas in three racks, on brokers that stay up.
SPREAD: Assignments = ((1, 2, 3), (2, 3, 4), (3, 4, 2))
_COMPACT = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Topic:
    """A topic with its replicas placed by hand: `assignments` has one list of broker ids a partition, leader first."""

    name: str
    assignments: Assignments = SPREAD
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Planted:
    """A finding that an audit of the demo must make.

    resource_type, resource, category, outcome and severity as in findings.json (category None: it tells none).
    `companion`: physics makes it come along with another mistake, named by its control; None: planted for its own sake.
    `what`: what was done.
    """

    control: str
    resource_type: str
    resource: str
    severity: str | None
    what: str
    category: str | None = None
    outcome: str = "FAIL"
    companion: str | None = None

    @property
    def key(self) -> tuple[str | None, ...]:
        """What tells findings apart, as `key_of` gives it for one of findings.json."""
        return (self.control, self.resource_type, self.resource, self.category, self.outcome, self.severity)


def key_of(finding: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The `Planted.key` of a finding of findings.json; `observed` holds the category under several names."""
    observed = finding["observed"] or {}
    category = next((observed[k] for k in ("category", "problem", "effect") if observed.get(k)), None)
    named = (finding[k] for k in ("control", "resource_type", "resource"))
    return (*named, category, finding["outcome"], finding["severity"])


STREAMS_INTERNAL = tuple(
    f"streams-wordcount-KSTREAM-AGGREGATE-STATE-STORE-0000000003-{kind}" for kind in ("changelog", "repartition")
)
# Two data centres, of which the application's rack.aware.assignment.tags doesn't speak. Of six stateful tasks four are active
# in the blue one and want their standby on the one green instance, but Kafka's assignor takes the least loaded: after two
# standbys that is a blue one, so some standby is in its active's data centre whatever the order.
STREAMS_TAGS = {"az1": {"dc": "blue"}, "az2": {"dc": "blue"}, "az3": {"dc": "green"}}
STREAMS_GROUP = "streams-wordcount"
GOOD = (
    # Made by hand, as their automatic placement would use the broker that dies.
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
CRITICAL_TOPICS = ("__consumer_offsets", *STREAMS_INTERNAL, "_schemas", "connect-offsets")


def _of_topic(control: str, topic: str, severity: str | None, what: str, **more: str) -> Planted:
    return Planted(control, "topic", topic, severity, what, **more)


PLANTED: tuple[Planted, ...] = (
    _of_topic("replication-factor", "clickstream.raw", "critical", "two replicas, three required"),
    _of_topic("min-insync-replicas", "clickstream.raw", "critical", "two replicas leave headroom only with 1",
              companion="replication-factor"),
    _of_topic("min-insync-replicas", "sessions.enriched", "critical", "min.insync.replicas=1; its waiver has expired"),
    Planted("waiver-expired", "waiver", r"min-insync-replicas:.*:sessions\.enriched", "warning",
            "the waiver for sessions.enriched ended in 2025"),
    _of_topic("min-isr-within-replication-factor", "test.load-results", "warning", "min ISR 3, two replicas",
              category="silent-downgrade"),
    _of_topic("partition-health", "test.load-results", "info", "both replicas are needed, so the ISR is at its minimum",
              category="at-min-isr", companion="min-isr-within-replication-factor"),
    _of_topic("write-headroom", "ledger.entries", "warning", "min.insync.replicas=3 on three replicas"),
    _of_topic("partition-health", "ledger.entries", "info", "all replicas are needed, so the ISR is at its minimum",
              category="at-min-isr", companion="write-headroom"),
    _of_topic("unclean-leader-election", "metrics.cache", "critical", "switched on for the topic"),
    _of_topic("unclean-leader-election", "metrics.gauges", "critical", "the same, under a waiver that counts",
              outcome="EXEMPT"),
    _of_topic("replica-rack-spread", "billing.invoices", "warning", "partition 0 on az1's brokers and the unracked"),
    _of_topic("isr-rack-spread", "_schemas", "critical", "two of three replicas in az1, the third on the dead broker",
              category="under-min-rack-isr"),
    _of_topic("partition-health", "_schemas", "warning", "one replica is on the dead broker",
              category="at-min-isr", companion="isr-rack-spread"),
    _of_topic("partition-health", "_schemas", "info", "one replica is on the dead broker",
              category="under-replicated", companion="isr-rack-spread"),
    _of_topic("acked-durability", "connect-offsets", "critical", "the two replicas that suffice may both be in az1"),
    _of_topic("acked-durability", "_schemas", "critical", "the same", companion="isr-rack-spread"),
    *(_of_topic("acked-durability", topic, "critical", "one copy suffices", companion="min-insync-replicas")
      for topic in ("clickstream.raw", "sessions.enriched")),
    _of_topic("min-insync-racks-valid", "regulated.trades", "critical", "its tier wants five racks in sync of three",
              category="above-known-racks"),
    _of_topic("isr-rack-spread", "regulated.trades", "critical", "five racks wanted of three",
              category="under-min-rack-isr", companion="min-insync-racks-valid"),
    Planted("policy-feasible", "tier", "regulated", "warning", "five racks wanted, three there"),
    _of_topic("partition-health", "dev.build-cache", "critical", "its one replica is on the dead broker",
              category="offline"),
    _of_topic("partition-health", "test.stuck-writes", "critical", "it needs both replicas, one is on the dead broker",
              category="under-min-isr"),
    _of_topic("partition-health", "test.stuck-writes", "info", "the same", category="under-replicated",
              companion="partition-health"),
    _of_topic("partition-health", "payments.settled", "warning", "partition 1 has a replica on the dead broker",
              category="at-min-isr"),
    _of_topic("partition-health", "payments.settled", "info", "the same", category="under-replicated"),
    Planted("broker-rack", "broker", str(UNRACKED), "warning", "no broker.rack"),
    Planted("min-insync-racks-valid", "broker", str(UNRACKED), "critical", "no broker.rack, racks wanted in sync",
            category="broker-without-rack", companion="broker-rack"),
    *(_of_topic("min-insync-racks-valid", topic, "critical", "racks wanted in sync, while broker 6 has no broker.rack",
                category="broker-without-rack", companion="broker-rack") for topic in CRITICAL_TOPICS),
    Planted("broker-defaults", "cluster", CLUSTER, "warning", "default.replication.factor=1 on every node"),
    Planted("controller-quorum", "cluster", CLUSTER, "critical", "two of three voters in az1",
            category="rack-majority"),
    Planted("eligible-leader-replicas", "cluster", CLUSTER, "info", "formatted with the feature off"),
    Planted("log-dirs", "broker", str(BAD_DISK), "critical", "one of two log dirs is no directory any more"),
    Planted("log-dirs", "broker", str(DEAD), None, "a dead broker doesn't tell", outcome="UNKNOWN",
            companion="partition-health"),
    Planted("min-insync-racks-valid", "broker", str(DEAD), None, "a dead broker doesn't tell", outcome="UNKNOWN",
            companion="partition-health"),
    Planted("standby-replicas", "application", STREAMS_GROUP, "warning", "one standby a task, two required"),
    Planted("standby-spread", "application", STREAMS_GROUP, "warning", "the tag dc isn't among its rack-aware ones",
            category="below-achievable"),
    Planted("reassignment-leftovers", "cluster", CLUSTER, "warning", "throttles left on two brokers and a topic"),
)  # fmt: skip


def create_topics(cluster: LocalCluster, topics: Iterable[Topic]) -> None:
    """Create topics exactly as stated and wait until each partition has a leader; AuditError names one that failed."""
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


def set_broker_configs(cluster: LocalCluster, brokers: Iterable[int], configs: Mapping[str, str]) -> None:
    """Set dynamic configs of each of `brokers`, also those that DescribeConfigs doesn't list before they are set."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.BROKER, str(broker), dict(configs)) for broker in brokers]
    with cluster.admin() as admin:
        answer = admin.alter_configs(resources, raise_on_unknown=False)
    refused = {name: said for results in answer.values() for name, said in results.items() if said != "OK"}
    if refused:
        raise AuditError(f"can't set {', '.join(configs)} on broker {refused}")


def produce(cluster: LocalCluster, topic: str, lines: Iterable[str]) -> None:
    """Write `lines` to `topic` with acks=all and wait for the acknowledgements."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks="all")
    try:
        for sent in [producer.send(topic, line.encode()) for line in lines]:
            sent.get(30)
    finally:
        producer.close(10)


def plant(cluster: LocalCluster) -> None:
    """Everything of TOPICS, and the throttle that somebody forgot."""
    create_topics(cluster, TOPICS)
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    set_broker_configs(cluster, THROTTLED, dict.fromkeys(rates, THROTTLE_BYTES))
