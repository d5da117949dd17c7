"""Platforms that speak Kafka's protocol are recognized by what they answer."""

from __future__ import annotations

import pytest

from durability.catalogue import CONTROLS, PROVIDERS
from durability.collect import Limits, collect
from durability.collect.platform import PLATFORMS, recognized
from durability.lake import rows
from tests.support.fake_broker import fake_broker

TOPICS = {"orders": [[0, 1, 2], [1, 2, 0]]}


def read(cluster_id: str, settings: dict[str, str]):
    with fake_broker(cluster_id, TOPICS, settings) as address:
        return collect("eu", {"bootstrap.servers": address}, limits=Limits(connect_timeout=2.0, request_timeout=5.0))


@pytest.mark.parametrize(
    ("cluster_id", "settings", "provider", "evidence"),
    [
        ("redpanda.6f1c", {}, "redpanda", "the cluster's id begins with redpanda."),
        ("x", {"redpanda.remote.read": "false"}, "redpanda", "it has the setting redpanda.remote.read"),
        ("lkc-4wq2", {}, "confluent", "the cluster's id begins with lkc-"),
    ],
)
def test_a_platform_is_recognized_over_the_wire(cluster_id, settings, provider, evidence):
    topology = read(cluster_id, settings | {"min.insync.replicas": "2"})
    cluster = topology.document["cluster"]
    assert (cluster["provider"], cluster["implementation"]) == (provider, {"name": provider, "evidence": evidence})
    assert [p["isr"] for p in topology.document["topics"][0]["partitions"]] == TOPICS["orders"]
    assert rows.build(topology, "s", "a")["clusters"]["provider"].to_pylist() == [provider]
    # Somebody declared another one: neither is believed.
    declared = rows.build(topology, "s", "a", provider="msk")["clusters"]["provider"].to_pylist()
    assert declared == ["contradicted"]


def test_kafka_is_no_platform():
    document = read("MkU3OEVBNTcwNTJENDM2Qg", {"min.insync.replicas": "2"}).document
    assert "provider" not in document["cluster"] and "implementation" not in document["cluster"]


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("ns.servicebus.windows.net", "event-hubs"),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com", "msk-serverless"),
        ("b-1.demo.x.c2.kafka.eu-west-1.amazonaws.com", "msk"),
        ("pkc-1.eu-west-1.aws.confluent.cloud", "confluent"),
        ("kafka.amazonaws.com.example.org", None),
        ("ec2-1.eu-west-1.compute.amazonaws.com", None),
    ],
)
def test_hosts(host, provider):
    found = recognized("x", [host], [])
    assert (found and found[0]) == provider


def test_every_platform_is_a_provider():
    assert {platform.provider for platform in PLATFORMS} <= set(PROVIDERS)
    assert set(CONTROLS["partition-health"].provider_hides) == {"redpanda"}
    assert all("event-hubs" in control.provider_duty for control in CONTROLS.values())
