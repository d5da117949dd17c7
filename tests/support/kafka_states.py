"""A running cluster at rest, seen by the collector, kafka-topics and a producer, and ways to change it."""

from __future__ import annotations

import copy
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from durability.collect import collect
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.tools import Described, described

# The filter of kafka-topics for each of KIP-427's categories.
FILTERS = {
    "offline": "--unavailable-partitions",
    "under-min-isr": "--under-min-isr-partitions",
    "at-min-isr": "--at-min-isr-partitions",
    "under-replicated": "--under-replicated-partitions",
}
THROTTLE = "follower.replication.throttled"

Partition = tuple[str, int]


@dataclass(frozen=True)
class Written:
    """The result of one record to each partition with a leader ("accepted" or an error's name), and whether a consumer saw it."""

    answered: dict[Partition, str]
    seen: set[Partition]


@dataclass(frozen=True)
class State:
    """A cluster at rest: as collected, as kafka-topics prints it, and the results of writes with each acks value."""

    document: dict
    described: dict[Partition, Described]
    listed: dict[str, set[Partition]]
    written: dict[str, Written]

    @property
    def answered(self) -> dict[Partition, str]:
        """The answers to acks=all writes."""
        return self.written["all"].answered

    def as_cluster(self, name: str) -> dict:
        document = copy.deepcopy(self.document)
        document["cluster"]["id"] = name
        return document


def collected(kafka: LocalCluster) -> tuple[dict, dict[Partition, Described]]:
    """The collected document with only this module's topics, and the same as kafka-topics would print it."""
    document = collect("health", {"bootstrap.servers": kafka.bootstrap}).document
    assert document["cluster"]["consistent"] is True
    document["topics"] = [t for t in document["topics"] if t["name"].startswith("h-")]
    return document, {
        (t["name"], p["partition"]): Described(p["leader"], p["replicas"], p["isr"], p["adding"])
        for t in document["topics"]
        for p in t["partitions"]
    }


def look(kafka: LocalCluster) -> State:
    """The cluster, once collector and tools saw the same state before and after the writes."""

    def show(*options: str) -> dict[Partition, Described]:
        return described(kafka.cli("TopicCommand", "--describe", "--topic", "h-.*", *options))

    for _ in range(5):
        _, before = collected(kafka)
        led = [key for key, p in before.items() if p.leader is not None]
        with ThreadPoolExecutor(3) as pool:
            # Writing mostly waits, while the tools compute.
            writing = pool.submit(write_everywhere, kafka, led)
            whole, *filtered = pool.map(lambda options: show(*options), [(), *((f,) for f in FILTERS.values())])
            written = writing.result()
        document, after = collected(kafka)
        if before == whole == after:
            break
    assert before == whole == after
    listed = {category: set(lines) for category, lines in zip(FILTERS, filtered, strict=True)}
    return State(document, after, listed, written)


ACKS = {"0": 0, "1": 1, "all": "all", "min.insync.replicas": -2}


def write_everywhere(kafka: LocalCluster, led: list[Partition]) -> dict[str, Written]:
    """By acks value, the result of a record for each of these partitions: no retries, read up to the high watermark."""
    from kafka import KafkaConsumer, TopicPartition

    mark = uuid.uuid4().hex
    places = {TopicPartition(*key): key for key in led}
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap.split(","), enable_auto_commit=False)
    try:
        starts = consumer.end_offsets(list(places))
        with ThreadPoolExecutor(len(ACKS)) as pool:
            texts = [f"{mark} {value}".encode() for value in ACKS]
            said = pool.map(lambda acks, text: answers(kafka, led, acks, text), ACKS.values(), texts)
            answered = dict(zip(ACKS, said, strict=True))
        consumer.assign(list(places))
        for place, offset in starts.items():
            consumer.seek(place, offset)
        seen: dict[str, set[Partition]] = {value: set() for value in ACKS}
        quiet = time.monotonic() + 4
        while time.monotonic() < quiet:
            for place, records in consumer.poll(timeout_ms=500).items():
                for record in records:
                    found, _, value = record.value.decode(errors="replace").partition(" ")
                    if found == mark and places[place] not in seen[value]:
                        seen[value].add(places[place])
                        quiet = max(quiet, time.monotonic() + 2)
    finally:
        consumer.close()
    return {value: Written(answered[value], seen[value]) for value in ACKS}


def answers(kafka: LocalCluster, led: list[Partition], acks: int | str, text: bytes) -> dict[Partition, str]:
    """Kafka's answer to a record for each partition: "accepted" or an error's name."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap.split(","),
        acks=acks,
        retries=0,
        enable_idempotence=False,
        request_timeout_ms=8000,
        delivery_timeout_ms=10_000,
    )
    said = {}
    try:
        sent = {key: producer.send(key[0], text, partition=key[1]) for key in led}
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
    """Reassign partition 0 of `topic` to these replicas. None cancels a running reassignment."""
    from kafka import TopicPartition
    from kafka.errors import NoReassignmentInProgressError

    with kafka.admin() as admin:
        answer = set(admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas}).values())
    assert answer == {None} or (replicas is None and answer == {NoReassignmentInProgressError}), answer


def throttle(kafka: LocalCluster, brokers: tuple[int, ...], rate: str | None) -> None:
    """Limit the bytes per second that each of `brokers` may copy of throttled partitions. None deletes the setting."""
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
