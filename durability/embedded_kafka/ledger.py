"""An acked ledger: which records an embedded cluster acknowledged, and whether they are still there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = 12
"""Producers at the same time. Each has a thread of its own."""
ANSWER_MS, DELIVERY_MS = 5_000, 8_000
"""How long a broker may wait for the ISR, and a producer for an answer: more than an ISR of the embedded cluster takes to
shrink."""
READ_SECONDS = 30
ACCEPTED = None
OFFLINE = "LEADER_NOT_AVAILABLE"
ERRORS = {
    "NotEnoughReplicasError": "NOT_ENOUGH_REPLICAS",
    "NotEnoughReplicasAfterAppendError": "NOT_ENOUGH_REPLICAS",
    "RequestTimedOutError": "REQUEST_TIMED_OUT",
    # No broker answered: there is no leader, or a dead one.
    **dict.fromkeys(
        (
            *("KafkaTimeoutError", "KafkaConnectionError", "NodeNotReadyError", "NoBrokersAvailable"),
            *("LeaderNotAvailableError", "NotLeaderForPartitionError", "NotLeaderOrFollowerError"),
        ),
        OFFLINE,
    ),
}


@dataclass
class Ledger:
    """Records by topic. Each topic has one partition. bootstrap: host:port of brokers."""

    bootstrap: list[str]
    acknowledged: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    written: int = 0

    def write(self, topics: Iterable[str]) -> dict[str, str | None]:
        """Writes one record to each topic with acks=all, and gives each answer: None if accepted, else the error's name.

        Each record is a request of its own: a request with several partitions gets no answer while one of them stalls.
        """
        names = list(topics)
        self.written += 1
        value = str(self.written).encode()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = dict(zip(names, pool.map(lambda name: self._write(name, value), names), strict=True))
        for name, answer in answers.items():
            if answer is ACCEPTED:
                self.acknowledged[name].append(value)
        return answers

    def _write(self, topic: str, value: bytes) -> str | None:
        from kafka import KafkaProducer
        from kafka.errors import KafkaError

        producer = None
        try:
            producer = KafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all",
                retries=0,
                enable_idempotence=False,
                request_timeout_ms=ANSWER_MS,
                delivery_timeout_ms=DELIVERY_MS,
                max_block_ms=ANSWER_MS,
            )
            producer.send(topic, value, partition=0).get(DELIVERY_MS / 1000 + 3)
            return ACCEPTED
        except KafkaError as refusal:
            name = type(refusal).__name__
            return ERRORS.get(name, name)
        finally:
            if producer is not None:
                producer.close(0)

    def read(self) -> dict[str, set[bytes] | None]:
        """What is in each topic that acknowledged a record; None if it could not be read."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            names = sorted(self.acknowledged)
            return dict(zip(names, pool.map(self._read, names), strict=True))

    def _read(self, topic: str) -> set[bytes] | None:
        from kafka import KafkaConsumer, TopicPartition
        from kafka.errors import KafkaError

        place = TopicPartition(topic, 0)
        consumer = None
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=self.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            found: set[bytes] = set()
            for _ in range(READ_SECONDS):
                if consumer.position(place) >= end:
                    return found
                for records in consumer.poll(1_000).values():
                    found |= {record.value for record in records}
            return None
        except KafkaError:
            return None
        finally:
            if consumer is not None:
                consumer.close()


def result(
    acknowledged: Mapping[str, Collection[bytes]],
    found: Mapping[str, Collection[bytes] | None],
    places: Mapping[str, tuple[str, int]],
    may_miss: Collection[str],
    why_unread: str | None = None,
) -> dict[str, Any]:
    """What drill.json says of the ledger.

    found: by topic, what is there afterwards; None or no entry: not read. places: the document's topic and partition for each
    topic. may_miss: topics whose records an unclean leader deletes, as predicted.

    >>> result({"a": [b"1", b"2"], "b": [b"1"]}, {"a": [b"1"], "b": [b"1"]}, {"a": ("orders", 3), "b": ("x", 0)}, [])["missing"]
    [{'topic': 'orders', 'partition': 3, 'records': 1}]
    """
    missing, as_predicted, there, unread = [], 0, 0, 0
    for name, records in acknowledged.items():
        read = found.get(name)
        if read is None:
            unread += 1
            continue
        lacks = len(set(records) - set(read))
        there += len(set(records)) - lacks
        if lacks and name in may_miss:
            as_predicted += lacks
        elif lacks:
            topic, partition = places[name]
            missing.append({"topic": topic, "partition": partition, "records": lacks})
    return {
        "acknowledged": sum(map(len, acknowledged.values())),
        "found": there,
        "missing_as_predicted": as_predicted,
        "missing": missing,
        "unread": unread,
        "why_unread": (why_unread or "because no broker answered") if unread else None,
        "whole": not missing and not unread,
    }
