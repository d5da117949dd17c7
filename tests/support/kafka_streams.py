"""Streams applications on a running cluster."""

from __future__ import annotations

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.streams import INPUT, OUTPUT, StreamsApplication


def read(kafka) -> dict:
    return collect("test", {"bootstrap.servers": kafka.bootstrap}).document


def create_topics(kafka) -> None:
    with kafka.admin() as admin:
        missing = {INPUT, OUTPUT} - set(admin.list_topics())
    seed.create_topics(kafka, [seed.Topic(t, ((1, 2, 3), (2, 3, 1), (3, 1, 2))) for t in missing])


def stop(application: StreamsApplication) -> None:
    for zone in list(application.pids):
        application.stop_instance(zone)
