"""Platforms that speak Kafka's protocol are recognized by what they answer."""

from __future__ import annotations

import socket

import pytest

from durability.catalogue import CONTROLS, PROVIDERS
from durability.collect import Limits, collect
from durability.lake import rows
from durability.topology import validate
from durability.topology.platform import PLATFORMS, recognized
from tests.support.fake_broker import DESCRIBE_CONFIGS, fake_broker
from tests.support.topology import document

TOPICS = {"orders": [[0, 1, 2], [1, 2, 0]]}


def read(cluster_id: str, settings: dict[str, str], topics=TOPICS, **more):
    with fake_broker(cluster_id, topics, settings, **more) as address:
        return collect("eu", {"bootstrap.servers": address}, limits=Limits(connect_timeout=20, request_timeout=20))


@pytest.mark.parametrize(
    ("cluster_id", "settings", "provider", "evidence"),
    [
        ("redpanda.6f1c", {}, "redpanda", "the cluster's id begins with redpanda."),
        ("x", {"redpanda.remote.read": "false"}, "redpanda", "it has the setting redpanda.remote.read"),
        ("x", {"redpanda.iceberg.mode": "disabled"}, "redpanda", "it has the setting redpanda.iceberg.mode"),
        ("lkc-4wq2", {}, "confluent", "the cluster's id begins with lkc-"),
        ("x", {"automq.table.topic.enable": "false"}, "object-storage", "it has the setting automq.table.topic.enable"),
        ("x", {"bufstream.archive.kind": "FLAT"}, "object-storage", "it has the setting bufstream.archive.kind"),
        ("x", {"warpstream.compression": "lz4"}, "object-storage", "it has the setting warpstream.compression"),
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


@pytest.fixture
def every_name_is_this_host(monkeypatch):
    """So that a broker may say that it is at any name."""
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **named: real("127.0.0.1", *more, **named))


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("ns.servicebus.windows.net", "event-hubs"),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com", "msk-serverless"),
        ("b-1.demo.x.c2.kafka.eu-west-1.amazonaws.com", "msk"),
        ("pkc-1.eu-west-1.aws.confluent.cloud", "confluent"),
        ("api-1.discovery.prod-z.us-east-1.warpstream.com", "object-storage"),
        ("kafka-1.acme.aivencloud.com", "aiven"),
    ],
)
def test_a_platform_is_recognized_by_where_its_brokers_say_that_they_are(every_name_is_this_host, host, provider):
    cluster = read("x", {"min.insync.replicas": "2"}, host=host).document["cluster"]
    assert cluster["implementation"] == {"name": provider, "evidence": f"a broker is at {host}"}


def test_one_broker_without_describe_configs_is_event_hubs():
    topology = read("x", {}, {"hub": [[0], [0]]}, brokers=1, without=(DESCRIBE_CONFIGS,))
    assert topology.document["cluster"]["implementation"]["name"] == "event-hubs"
    assert rows.build(topology, "s", "a")["clusters"]["provider"].to_pylist() == ["event-hubs"]
    # Kafka before 0.11 didn't know it either, and a proxy may hide it.
    assert recognized("x", [], [], apis={3: 2}, brokers=1, replicas=1) is None
    assert recognized("x", [], [], apis={3: 8}, brokers=3, replicas=1) is None
    assert recognized("x", [], [], apis={3: 8, 32: 1}, brokers=1, replicas=1) is None


def test_a_diskless_topic_is_read_as_it_is():
    topology = read(
        "x",
        {"min.insync.replicas": "2"},
        {"events": [[], []], **TOPICS},
        own={"events": {"diskless.enable": "true"}},
    )
    events, orders = topology.document["topics"]
    assert (events["configs"]["diskless.enable"], events["partitions"][0]["leader"]) == ("true", None)
    assert "diskless.enable" not in orders["configs"]
    assert "implementation" not in topology.document["cluster"]
    assert rows.build(topology, "s", "a")["clusters"]["provider"].to_pylist() == ["self"]


def test_what_only_the_clusters_file_knows_is_believed(every_name_is_this_host):
    msk = read("x", {}, host="b-1.demo.x.c2.kafka.eu-west-1.amazonaws.com")
    for declared, counts in (("msk-express", "msk-express"), ("msk", "msk"), ("confluent", "contradicted")):
        assert rows.build(msk, "s", "a", provider=declared)["clusters"]["provider"].to_pylist() == [counts]


@pytest.mark.parametrize(
    ("declared", "brokers", "quorum", "counts"),
    [
        ("event-hubs", "1:a", None, "event-hubs"),
        ("event-hubs", "1:a 2:b", None, "contradicted"),
        ("redpanda", "1:a 2:b", None, "redpanda"),
        ("redpanda", "1:a 2:b", "101:a", "contradicted"),
        ("object-storage", "1:a 2:b", "101:a", "object-storage"),
    ],
)
def test_a_declared_platform_that_answers_as_kafka_alone_does_is_not_believed(declared, brokers, quorum, counts):
    """Neither if the clusters file declares it, nor if the document does."""
    for place, stated in ((declared, {}), ("self", {"cluster_provider": declared})):
        drawn = validate(document("topic replicas\norders 1", brokers=brokers, quorum=quorum, **stated), "x.json")
        assert rows.build(drawn, "s", "a", provider=place)["clusters"]["provider"].to_pylist() == [counts]


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
