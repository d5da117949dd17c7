"""A running cluster at rest, seen by three: the collector, kafka-topics and a producer; and what keeps it from resting."""

from __future__ import annotations

import copy
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from durability.collect import collect
from durability.local_kafka.cluster import LocalCluster

# The filter of kafka-topics for each category, and the category of KIP-427 it stands for.
FILTERS = {
    "offline": "--unavailable-partitions",
    "under-min-isr": "--under-min-isr-partitions",
    "at-min-isr": "--at-min-isr-partitions",
    "under-replicated": "--under-replicated-partitions",
}
THROTTLE = "follower.replication.throttled"

Partition = tuple[str, int]


@dataclass(frozen=True)
class Described:
    """One line of `kafka-topics --describe`."""

    leader: int | None
    replicas: list[int]
    isr: list[int]
    adding: list[int]

    @property
    def meant(self) -> int:
        """The replicas that a running reassignment found, as kafka-topics and KIP-427 count them."""
        return len(self.replicas) - len(self.adding)


@dataclass(frozen=True)
class State:
    """A cluster at rest: as collected, as kafka-topics prints it, and what acks=all writes were answered."""

    document: dict
    described: dict[Partition, Described]
    listed: dict[str, set[Partition]]
    answered: dict[Partition, str]

    def as_cluster(self, name: str) -> dict:
        document = copy.deepcopy(self.document)
        document["cluster"]["id"] = name
        return document


def described(printed: str) -> dict[Partition, Described]:
    found = {}
    for line in printed.splitlines():
        cells = dict(re.findall(r"([A-Za-z ]+): ([^\t]*)", line))
        if "Partition" not in cells:
            continue
        ids = [
            [int(i) for i in cells.get(key, "").strip().split(",") if i]
            for key in ("Replicas", "Isr", "Adding Replicas")
        ]
        leader = None if cells["Leader"].strip() == "none" else int(cells["Leader"])
        found[cells["Topic"].strip(), int(cells["Partition"])] = Described(leader, *ids)
    return found


def collected(kafka: LocalCluster) -> tuple[dict, dict[Partition, Described]]:
    """The collected document with this module's topics alone, and the same as kafka-topics would print it."""
    document = collect("health", {"bootstrap.servers": kafka.bootstrap}).document
    assert document["cluster"]["consistent"] is True
    document["topics"] = [t for t in document["topics"] if t["name"].startswith("h-")]
    return document, {
        (t["name"], p["partition"]): Described(p["leader"], p["replicas"], p["isr"], p["adding"])
        for t in document["topics"]
        for p in t["partitions"]
    }


def look(kafka: LocalCluster) -> State:
    """The cluster once the collector saw the same before and after the tools ran, and the tools too."""

    def show(*options: str) -> dict[Partition, Described]:
        return described(kafka.cli("TopicCommand", "--describe", "--topic", "h-.*", *options))

    for _ in range(5):
        _, before = collected(kafka)
        with ThreadPoolExecutor(2) as pool:
            whole, *filtered = pool.map(lambda options: show(*options), [(), *((f,) for f in FILTERS.values())])
        document, after = collected(kafka)
        if before == whole == after:
            break
    assert before == whole == after
    listed = {category: set(lines) for category, lines in zip(FILTERS, filtered, strict=True)}
    return State(document, after, listed, answers(kafka, after))


def answers(kafka: LocalCluster, partitions: dict[Partition, Described]) -> dict[Partition, str]:
    """What Kafka answers, "accepted" or an error's name, to a record for each partition with a leader: acks=all, no retries."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap.split(","),
        acks="all",
        retries=0,
        enable_idempotence=False,
        request_timeout_ms=8000,
        delivery_timeout_ms=10_000,
    )
    said = {}
    try:
        led = [key for key, p in partitions.items() if p.leader is not None]
        sent = {key: producer.send(key[0], b"x", partition=key[1]) for key in led}
        for key, future in sent.items():
            try:
                future.get(15)
                said[key] = "accepted"
            except KafkaError as refusal:
                said[key] = type(refusal).__name__
    finally:
        producer.close(1)
    return said


def reassign(kafka: LocalCluster, topic: str, replicas: list[int] | None) -> None:
    """Partition 0 of `topic` to these replicas; None takes a reassignment back, if one runs."""
    from kafka import TopicPartition
    from kafka.errors import NoReassignmentInProgressError

    with kafka.admin() as admin:
        answer = set(admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas}).values())
    assert answer == {None} or (replicas is None and answer == {NoReassignmentInProgressError}), answer


def throttle(kafka: LocalCluster, brokers: tuple[int, ...], rate: str | None) -> None:
    """Bytes a second that each of `brokers` may copy of throttled partitions; None: the setting is deleted."""
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=f"{THROTTLE}.rate", config_operation=int(rate is None), value=rate)
    for broker in brokers:
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=4, resource_name=str(broker), configs=[change])], validate_only=False
        )
        with kafka.admin() as admin:
            response = admin._manager.run(admin._manager.send, request, broker)
        assert [r.error_code for r in response.responses] == [0]
