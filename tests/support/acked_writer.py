"""An application beside a change: it writes with acks=all all the time, and knows which records were acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable

PAUSE = 0.2
"""Seconds between two rounds, of one record to each partition."""


class AckedWriter:
    """Writes until the end of a `with` block. Each record is sent once, so that the answer to it is known.

    answers: by error, how many records got it; None: acknowledged. bootstrap: host:port, separated by commas.
    """

    def __init__(self, bootstrap: str, partitions: Iterable[tuple[str, int]]):
        self.partitions = list(partitions)
        self.answers: Counter[str | None] = Counter()
        self.acknowledged: set[tuple[str, int, bytes]] = set()
        self._bootstrap, self._ended = bootstrap.split(","), threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> AckedWriter:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            retries=0,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
        )
        number = 0
        try:
            while not self._ended.is_set():
                number += 1
                value = b"%d" % number
                for topic, partition in self.partitions:
                    place = (topic, partition, value)
                    sent = producer.send(topic, value, partition=partition)
                    sent.add_callback(lambda _, place=place: self._accepted(place))
                    sent.add_errback(lambda error: self.answers.update([type(error).__name__]))
                time.sleep(PAUSE)
        finally:
            producer.close(30)

    def _accepted(self, place: tuple[str, int, bytes]) -> None:
        self.answers[None] += 1
        self.acknowledged.add(place)

    def accepted_by_all(self) -> bool:
        """Has each partition acknowledged one of the last records?"""
        acknowledged = [*self.acknowledged]
        newest = max((int(value) for _, _, value in acknowledged), default=0)
        recent = {(topic, partition) for topic, partition, value in acknowledged if int(value) > newest - 10}
        return recent == {*self.partitions}

    def refused(self) -> list[str]:
        """The answers of partitions that had too few replicas in sync."""
        return [error for error in self.answers if error and error.startswith("NotEnoughReplicas")]

    def lost(self, seconds: float = 60) -> set[tuple[str, int, bytes]]:
        """The acknowledged records that aren't there. Raises TimeoutError if not everything could be read."""
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)
        try:
            places = [TopicPartition(*place) for place in self.partitions]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends, found, until = consumer.end_offsets(places), set(), time.monotonic() + seconds
            while any(consumer.position(place) < end for place, end in ends.items()):
                if time.monotonic() > until:
                    raise TimeoutError(f"not read within {seconds} s")
                for place, records in consumer.poll(500).items():
                    found |= {(place.topic, place.partition, record.value) for record in records}
            return self.acknowledged - found
        finally:
            consumer.close()
