"""Pastes remedies into bash with Kafka's own tools, while producers write to every partition."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from durability.embedded_kafka.cluster import LocalCluster
from tests.support import kafka_tools
from tests.support.kafka_states import Partition

REFUSED = ("NotEnoughReplicasError", "NotEnoughReplicasAfterAppendError")
"""Answers of a leader with too few replicas in sync. Other errors, such as a moved leader, disappear with a retry."""
TICK = 0.15
"""Seconds between two records for the same partition."""


def with_short_pauses(folder: Path) -> None:
    """Put a `sleep` of half a second into a folder of tools, because scripts pause for ten seconds between two checks."""
    (folder / "sleep").write_text(f"#!/bin/bash\nexec {shutil.which('sleep')} 0.5\n")
    (folder / "sleep").chmod(0o755)


class Shell:
    """Bash with the tools of `kafka`'s release. folder: for the tools. out: where scripts run, the report's folder."""

    def __init__(self, kafka: LocalCluster, folder: Path, out: Path):
        with_short_pauses(folder)
        self.environment = kafka_tools.install(kafka, folder)
        self.out = out

    def paste(self, script: str) -> subprocess.CompletedProcess:
        """Run a whole script. It ends at the first command that fails."""
        return subprocess.run(
            ["bash", "-e"],
            input=script,
            text=True,
            capture_output=True,
            env=self.environment,
            cwd=self.out,
            timeout=200,
        )


@dataclass(frozen=True)
class Answer:
    """The result of a record: "accepted" or an error's name. Times are of time.monotonic."""

    sent: float
    known: float
    said: str


class Writers:
    """Writes to partitions with acks=all, until closed.

    Records without retries show each rejection. An idempotent producer also writes to partitions that accept.

    answers: by partition, of records without retries.
    failures: of the idempotent producer.
    acknowledged: values of both, by partition.
    steady: by partition, when the idempotent producer sent its last acknowledged record.
    """

    def __init__(self, kafka: LocalCluster, partitions: Iterable[Partition]):
        self.kafka = kafka
        self.partitions = list(partitions)
        self.answers: defaultdict[Partition, list[Answer]] = defaultdict(list)
        self.failures: list[tuple[Partition, Answer]] = []
        self.acknowledged: defaultdict[Partition, set[bytes]] = defaultdict(set)
        self.steady: dict[Partition, float] = {}
        self._stop, self._renewed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def add(self, partitions: Iterable[Partition]) -> None:
        self.partitions += partitions

    def close(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def accepting(self) -> set[Partition]:
        """The partitions that accept the last record sent from now on, if its answer arrives within some seconds.

        From now on there is a new idempotent producer, because one whose batch has expired sends nothing more to that partition.
        """
        self._renewed.set()
        start = time.monotonic()
        self.wait(lambda p: any(a.sent >= start for a in self.answers[p]), self.partitions, 6)
        return {p for p in self.partitions if self.answers[p] and self._last(p).said == "accepted"}

    def _last(self, partition: Partition) -> Answer:
        return max(list(self.answers[partition]), key=lambda answer: answer.sent)

    def refused(self, since: float) -> dict[Partition, Answer]:
        """The partitions that rejected a record after `since`, with the first rejection."""
        found = {
            p: [a for a in list(self.answers[p]) if a.sent >= since and a.said in REFUSED] for p in self.partitions
        }
        return {p: min(answers, key=lambda a: a.sent) for p, answers in found.items() if answers}

    def silent(self, partitions: Iterable[Partition], since: float, seconds: float = 20) -> set[Partition]:
        """Those of `partitions` that accept no record of each producer sent after `since`, within so many seconds."""

        def accepts(partition: Partition) -> bool:
            answers = list(self.answers[partition])
            steady = self.steady.get(partition, 0) >= since
            return steady and any(a.sent >= since and a.said == "accepted" for a in answers)

        return self.wait(accepts, partitions, seconds)

    @staticmethod
    def wait(condition: Callable[[Partition], bool], partitions: Iterable[Partition], seconds: float) -> set[Partition]:
        deadline, left = time.monotonic() + seconds, set(partitions)
        while left and time.monotonic() < deadline:
            time.sleep(TICK)
            left = {p for p in left if not condition(p)}
        return left

    def lost(self) -> dict[Partition, int]:
        """The number of acknowledged records of a partition that can't be read, if any."""
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self.kafka.bootstrap.split(","), enable_auto_commit=False)
        try:
            ends = consumer.end_offsets([TopicPartition(*p) for p in self.partitions])
            consumer.assign(list(ends))
            consumer.seek_to_beginning()
            missing = {p: set(values) for p, values in self.acknowledged.items()}
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and any(consumer.position(p) < end for p, end in ends.items()):
                for place, records in consumer.poll(timeout_ms=500, max_records=20_000).items():
                    missing.get((place.topic, place.partition), set()).difference_update(r.value for r in records)
        finally:
            consumer.close()
        return {p: len(values) for p, values in missing.items() if values}

    def _write(self) -> None:
        from kafka import KafkaProducer

        common = {"bootstrap_servers": self.kafka.bootstrap.split(","), "acks": "all", "max_block_ms": 3000}
        common |= {"request_timeout_ms": 3000, "retry_backoff_ms": 50, "reconnect_backoff_max_ms": 500}
        once = KafkaProducer(retries=0, enable_idempotence=False, delivery_timeout_ms=4000, **common)
        steady = None
        number = 0
        while not self._stop.wait(TICK):
            number += 1
            if self._renewed.is_set() or steady is None:
                self._renewed.clear()
                # Closing may wait for answers that never come.
                threading.Thread(target=_end, args=(steady,), daemon=True).start()
                steady = KafkaProducer(enable_idempotence=True, delivery_timeout_ms=10_000, **common)
            for partition in list(self.partitions):
                last = self.answers[partition][-1:]
                self._send(once, partition, b"once %d" % number, idempotent=False)
                if last and last[0].said == "accepted":
                    self._send(steady, partition, b"steady %d" % number, idempotent=True)
        _end(once)
        _end(steady)

    def _send(self, producer, partition: Partition, value: bytes, *, idempotent: bool) -> None:
        sent = time.monotonic()

        def answered(said: str) -> None:
            answer = Answer(sent, time.monotonic(), said)
            if said == "accepted":
                self.acknowledged[partition].add(value)
            if not idempotent:
                self.answers[partition].append(answer)
            elif said == "accepted":
                self.steady[partition] = max(sent, self.steady.get(partition, 0))
            else:
                self.failures.append((partition, answer))

        try:
            future = producer.send(partition[0], value, partition=partition[1])
        except Exception as error:
            answered(type(error).__name__)
            return
        future.add_callback(lambda _: answered("accepted"))
        future.add_errback(lambda error: answered(type(error).__name__))


def _end(producer: Any) -> None:
    """Close a producer, even if it waits for answers."""
    from kafka.errors import KafkaError

    if producer is None:
        return
    with suppress(KafkaError):
        producer.close(4)
        return
    producer._sender.force_close()
    producer._sender.join(4)
    with suppress(KafkaError):
        producer.close(1)
