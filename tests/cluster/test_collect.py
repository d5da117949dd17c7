"""What the collector reads of a real cluster, held against what Kafka's own tools print."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import pytest

from durability.collect import Limits, collect
from durability.collect.probe import probe
from durability.collect.wire import Wire
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from tests.support.topology import unread

SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker-dynamic",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "cluster-default",
    "STATIC_BROKER_CONFIG": "broker",
    "DEFAULT_CONFIG": "default",
}


def read(kafka: LocalCluster, **changes) -> dict:
    before = set(threading.enumerate())
    document = collect("test", {"bootstrap.servers": kafka.bootstrap}, **changes).document
    assert set(threading.enumerate()) <= before
    return document


def listed_acls(kafka: LocalCluster) -> tuple[list[tuple[str, str, str]] | None, str | None]:
    """The ACLs that a collection records, or why there are none."""
    record = collect("test", {"bootstrap.servers": kafka.bootstrap}).collection
    acls = record["acls"] and [(a["permission"], a["operation"], a["resource"]) for a in record["acls"]["listed"]]
    return acls, record["acls_reason"]


def create(kafka: LocalCluster, topics: dict[str, list[list[int]]], configs: dict[str, str] | None = None) -> None:
    """Topics with these replicas by partition, those that exist already left alone."""
    with kafka.admin() as admin:
        there = set(admin.list_topics())
    seed.create_topics(kafka, [seed.Topic(t, tuple(topics[t]), configs or {}) for t in topics.keys() - there])


def alter(kafka: LocalCluster, broker: str, configs: dict[str, str | None]) -> None:
    """Sets (None: deletes) dynamic configs of a broker, "": of all; kafka-python's own method refuses that name."""
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name=key, config_operation=int(value is None), value=value)
        for key, value in configs.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=4, resource_name=broker, configs=changes)], validate_only=False
    )
    with kafka.admin() as admin:
        response = admin._manager.run(admin._manager.send, request, int(broker) if broker else None)
    assert [r.error_code for r in response.responses] == [0]


def partitions(document: dict) -> dict[tuple[str, int], tuple]:
    keys = ("leader", "replicas", "isr", "elr", "last_known_elr", "adding", "removing")
    return {
        (topic["name"], p["partition"]): tuple(p[key] for key in keys)
        for topic in document["topics"]
        for p in topic["partitions"]
    }


def described(printed: str) -> dict[tuple[str, int], tuple]:
    """The same of `kafka-topics --describe`."""
    found = {}
    for line in printed.splitlines():
        cells = dict(re.findall(r"([A-Za-z ]+): ([^\t]*)", line))
        if "Partition" not in cells:
            continue
        lists = [
            cells.get(key) for key in ("Replicas", "Isr", "Elr", "LastKnownElr", "Adding Replicas", "Removing Replicas")
        ]
        leader = None if cells["Leader"].strip() == "none" else int(cells["Leader"])
        ids = ([int(i) for i in (text or "").strip().split(",") if i] for text in lists)
        found[cells["Topic"].strip(), int(cells["Partition"])] = (leader, *ids)
    return found


def configured(printed: str) -> dict[str, tuple[str, str | None]]:
    """Value and source by key, as `kafka-configs --describe --all` prints them; no source where it prints no synonyms."""
    pattern = re.compile(r"^  (\S+?)=(.*) sensitive=false synonyms=\{(?:(\w+):)?", re.MULTILINE)
    return {key: (value, SOURCES.get(source)) for key, value, source in pattern.findall(printed)}


def test_partitions_with_a_dead_broker_and_a_running_reassignment(kafka):
    from kafka import TopicPartition

    create(kafka, {"c-spread": [[1, 2, 3], [2, 3, 5], [5, 4, 3]], "c-single": [[5]], "c-moving": [[1], [4]]})
    kafka.wait_for_full_isr()
    kafka.kill_broker(5)  # first: the new replica must not catch up
    kafka.wait_for_loss_of([5])
    with kafka.admin() as admin:
        moves = {TopicPartition("c-moving", 0): [1, 5], TopicPartition("c-moving", 1): [5, 4]}
        assert set(admin.alter_partition_reassignments(moves).values()) == {None}

    document = read(kafka)

    printed = described(kafka.cli("TopicCommand", "--describe"))
    assert partitions(document) == printed
    assert printed["c-single", 0][:3] == (None, [5], [])
    assert printed["c-moving", 0][5:] == ([5], [])
    assert document["cluster"]["consistent"] is True
    assert document["cluster"]["hidden_partitions"] is None  # the dead broker may hold topics that aren't shown
    assert "without the log dirs of broker" in unread(document)["/cluster/hidden_partitions"]
    assert document["cluster"]["declared"]["partitions"] == len(printed)
    assert document["cluster"]["kafka_cluster_id"] == kafka.cluster_id
    dead = next(b for b in document["brokers"] if b["id"] == 5)
    assert (dead["live"], dead["fenced"], dead["rack"]) == (False, True, "az2")
    index = document["brokers"].index(dead)
    assert {f"/brokers/{index}/configs", f"/brokers/{index}/log_dirs"} <= unread(document).keys()


def unclean_of(document: dict, topic: str) -> str | None:
    return next(t for t in document["topics"] if t["name"] == topic)["configs"].get("unclean.leader.election.enable")


def test_configs_and_their_sources(kafka):
    create(kafka, {"c-configured": [[1, 2, 3]]}, {"min.insync.replicas": "1"})
    alter(kafka, "2", {"leader.replication.throttled.rate": "1000"})
    alter(kafka, "", {"unclean.leader.election.enable": "true"})
    try:
        # A broker that has the record but hasn't applied it yet tells the old value with the new source.
        kafka.wait_until(lambda: unclean_of(read(kafka), "c-configured") == "true", "the default is applied")
        document = read(kafka)
        show = ("ConfigCommand", "--describe", "--all", "--entity-type")
        of_topic = configured(kafka.cli(*show, "topics", "--entity-name", "c-configured"))
        of_broker = configured(kafka.cli(*show, "brokers", "--entity-name", "2"))
    finally:
        alter(kafka, "2", {"leader.replication.throttled.rate": None})
        alter(kafka, "", {"unclean.leader.election.enable": None})
    topic = next(t for t in document["topics"] if t["name"] == "c-configured")
    broker = next(b for b in document["brokers"] if b["id"] == 2)
    for element, printed in ((topic, of_topic), (broker, of_broker)):
        for key, value in element["configs"].items():
            source = element["config_sources"][key]
            assert (key, value, printed[key][1] and source) == (key, *printed[key])
    assert topic["config_sources"]["min.insync.replicas"] == "topic"
    assert topic["config_sources"]["unclean.leader.election.enable"] == "cluster-default"
    assert broker["config_sources"]["leader.replication.throttled.rate"] == "broker-dynamic"


def test_quorum_and_features(kafka):
    document = read(kafka)
    status = kafka.cli("MetadataQuorumCommand", "describe", "--status")
    quorum = document["cluster"]["quorum"]
    assert quorum["leader"] == int(re.search(r"LeaderId:\s+(\d+)", status)[1])
    assert [v["id"] for v in quorum["voters"]] == sorted(kafka.spec.controllers)
    assert [v["rack"] for v in quorum["voters"]] == [kafka.spec.controllers[v["id"]] for v in quorum["voters"]]
    assert all(v["lag_ms"] < 10_000 for v in quorum["voters"] + quorum["observers"])
    printed = kafka.cli("FeatureCommand", "describe")
    levels = dict(re.findall(r"Feature: (\S+).*?FinalizedVersionLevel: (\d+)", printed))
    finalized = {name: int(level) for name, level in levels.items() if int(level)}
    ours = {name: level for name, level in document["cluster"]["features"].items() if name != "metadata.version"}
    assert ours.items() <= finalized.items()
    assert {(b["kafka_version"], b["max_metadata_version"]) for b in document["brokers"]} == {("4.3", 30)}


@pytest.mark.parametrize("hung", [1, 6], ids=["that is asked first", "that is asked last"])
def test_a_broker_that_hangs_delays_the_collection_only_a_little(kafka, hung):
    pid = kafka.pids()[hung]
    os.kill(pid, signal.SIGSTOP)
    try:
        document = read(kafka, limits=Limits(connect_timeout=1.0, request_timeout=2.0, session_timeout=0))
    finally:
        os.kill(pid, signal.SIGCONT)
    index = next(i for i, b in enumerate(document["brokers"]) if b["id"] == hung)
    assert f"/brokers/{index}/configs" in unread(document)
    assert "configs" not in document["brokers"][index]


def test_a_leader_of_the_quorum_that_hangs_is_not_taken_for_one_that_is_missing(kafka):
    """Brokers wait for it. The voters have elected another one, and state that on their own listeners."""
    leader = read(kafka)["cluster"]["quorum"]["leader"]
    pid = kafka.pids()[leader]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(4)
        document = read(kafka, limits=Limits(connect_timeout=1.0, request_timeout=3.0, controller_timeout=3.0))
    finally:
        os.kill(pid, signal.SIGCONT)
    quorum = document["cluster"]["quorum"]
    assert quorum["leader"] in set(kafka.spec.controllers) - {leader}
    hangs = next(voter for voter in quorum["voters"] if voter["id"] == leader)
    assert hangs["lag_ms"] is None or hangs["lag_ms"] > 2_000 or hangs.get("live") is False
    # Brokers wait for its answer to their heartbeats, too, so the new leader may have fenced them meanwhile.
    kafka.wait_for_brokers(kafka.spec.brokers)


def test_a_controller_among_the_bootstrap_servers_costs_nothing(kafka):
    """It doesn't serve metadata. What it knows of requests says nothing of brokers."""
    stated = kafka.cli("MetadataQuorumCommand", "describe", "--status")
    port = re.search(r"CONTROLLER://[^:]+:(\d+)", stated)
    assert port is not None, stated
    for _ in range(6):  # the servers are asked in random order
        bootstrap = f"127.0.0.1:{port[1]},{kafka.addresses[0]}"
        document = collect("eu", {"bootstrap.servers": bootstrap}).document
        assert len(document["brokers"]) == len(kafka.spec.brokers)


def test_members_of_a_classic_group_that_is_no_streams_group_are_not_kept(kafka):
    from kafka import KafkaConsumer

    create(kafka, {"c-consumed": [[1, 2, 3], [2, 3, 1]]})
    consumer = KafkaConsumer("c-consumed", bootstrap_servers=kafka.bootstrap, group_id="c-readers")
    try:
        kafka.wait_until(lambda: consumer.poll(timeout_ms=500) is not None and consumer.assignment(), "it has joined")
        group = next(g for g in read(kafka)["groups"] if g["group"] == "c-readers")
    finally:
        consumer.close()
    assert (group["type"], group["protocol_type"], group["state"]) == ("classic", "consumer", "Stable")
    assert group["members"] == []


def test_a_dedicated_controllers_configs_come_from_its_own_listener():
    spec = ClusterSpec(
        brokers={1: "az1", 2: None},
        controllers={101: "az1"},
        node_configs={101: {"default.replication.factor": "1"}},
    )
    with LocalCluster(spec) as kafka:
        document = read(kafka, controllers={101: "az7"})
    (controller,) = document["cluster"]["controllers"]
    assert (controller["id"], controller["rack"]) == (101, "az7")
    assert controller["configs"]["default.replication.factor"] == "1"
    assert [b["rack"] for b in document["brokers"]] == ["az1", None]
    assert unread(document) == {}


def test_an_old_release_reads_as_it_is():
    racks = {1: "az1", 2: "az2"}
    with LocalCluster(ClusterSpec(brokers=racks, controllers={1: "az1"}, version="3.6.2")) as kafka:
        create(kafka, {"orders": [[1, 2], [2, 1]]})
        kafka.wait_for_full_isr()
        whole = read(kafka)
        kafka.kill_broker(2)
        broken = read(kafka)
        printed = described(kafka.cli("TopicCommand", "--describe"))
    assert unread(whole) == {}
    assert (whole["cluster"]["kafka_version"], whole["brokers"][0]["max_metadata_version"]) == ("3.6", 14)
    assert partitions(broken) == printed
    assert (broken["brokers"][1]["described"], broken["brokers"][1]["live"]) == (False, False)
    assert unread(broken)["/brokers/1/rack"] == "BROKER_NOT_AVAILABLE"


def acl(operation: str, kind: str, name: str, permission: str):
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

    pattern = ResourcePattern(ResourceType[kind], name)
    return ACL("User:ANONYMOUS", "*", ACLOperation[operation], ACLPermissionType[permission], pattern)


def test_what_the_principal_may_not_see_is_counted_or_said():
    configs = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "default.replication.factor": "1",
    }
    with LocalCluster(ClusterSpec(brokers={1: "az1"}, controllers={1: "az1"}, configs=configs)) as kafka:
        create(kafka, {topic: [[1], [1], [1]] for topic in ("shown", "sealed", "secret")})
        with kafka.admin() as admin:
            admin.create_acls(
                [
                    acl("DESCRIBE", "TOPIC", "secret", "DENY"),
                    acl("ALL", "TOPIC", "sealed", "ALLOW"),
                    acl("DESCRIBE_CONFIGS", "TOPIC", "sealed", "DENY"),
                ]
            )
            document = kafka.wait_until(
                lambda: (d := read(kafka))["cluster"]["hidden_partitions"] and d, "it is hidden"
            )
            acls = listed_acls(kafka)
            admin.create_acls(
                [
                    acl("ALL", "CLUSTER", "kafka-cluster", "ALLOW"),
                    acl("DESCRIBE", "CLUSTER", "kafka-cluster", "DENY"),
                    acl("DESCRIBE_CONFIGS", "CLUSTER", "kafka-cluster", "DENY"),
                ]
            )
            blind = kafka.wait_until(lambda: (d := read(kafka))["cluster"]["quorum"] is None and d, "it is denied")
        assert listed_acls(kafka) == (None, "CLUSTER_AUTHORIZATION_FAILED")
    assert acls == (
        [("ALLOW", "ALL", "sealed"), ("DENY", "DESCRIBE", "secret"), ("DENY", "DESCRIBE_CONFIGS", "sealed")],
        None,
    )
    assert [t["name"] for t in document["topics"]] == ["sealed", "shown"]
    assert document["cluster"]["hidden_partitions"] == 3
    assert unread(document).keys() == {"/topics/0/configs", "/topics/hidden"}
    assert unread(document)["/topics/0/configs"] == "TOPIC_AUTHORIZATION_FAILED"
    assert blind["cluster"]["hidden_partitions"] is None
    denied = {"/brokers/0/configs", "/brokers/0/log_dirs", "/cluster/quorum", "/cluster/controllers"}
    denied |= {"/cluster/reassignments", "/topics/hidden", "/groups"}
    assert denied <= unread(blind).keys()
    assert all(reason.startswith("CLUSTER_AUTHORIZATION_FAILED") for p, reason in unread(blind).items() if p in denied)


def test_a_probe_asks_for_metadata_alone(kafka, monkeypatch):
    asked = []
    send = Wire._send

    async def recorded(self, manager, node, request, *seconds):
        asked.append(type(request).__name__)
        return await send(self, manager, node, request, *seconds)

    monkeypatch.setattr(Wire, "_send", recorded)
    before = set(threading.enumerate())
    answer = probe("test", {"bootstrap.servers": kafka.bootstrap})
    assert (answer.brokers, asked) == (6, ["MetadataRequest"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", answer.cluster_id)
    assert set(threading.enumerate()) <= before
