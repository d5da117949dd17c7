"""The findings of an audit of the demo cluster under policies/demo."""

from __future__ import annotations

from dataclasses import dataclass

from durability.embedded_kafka.seed import BAD_DISK, DEAD, STREAMS_GROUP, STREAMS_INTERNAL, UNRACKED

CLUSTER = "demo"
CRITICAL_TOPICS = ("__consumer_offsets", *STREAMS_INTERNAL, "_schemas", "connect-offsets")


@dataclass(frozen=True)
class Planted:
    """A finding that an audit of the demo must have.

    resource_type, resource, category, outcome, severity: as in findings.json. category None: it has none.
    companion: the control of the mistake that this finding is a consequence of; None if the mistake was made for this finding.
    what: the mistake.
    """

    control: str
    resource_type: str
    resource: str
    severity: str | None
    what: str
    category: str | None = None
    outcome: str = "FAIL"
    companion: str | None = None


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
