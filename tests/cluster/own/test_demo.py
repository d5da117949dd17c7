"""The demo's mistakes are real: what was planted is seen with Kafka's own tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from durability.collect.probe import probe
from durability.embedded_kafka import demo, seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.streams import StreamsApplication


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with demo.running() as running:
        yield running


def partitions(cluster: LocalCluster, option: str) -> set[str]:
    described = cluster.cli("TopicCommand", "--describe", option)
    return {f"{m[1]}-{m[2]}" for m in re.finditer(r"\tTopic: (\S+)\tPartition: (\d+)", described)}


@pytest.mark.slow
class TestRunning:
    def test_partitions_suffer_as_planted(self, cluster: LocalCluster) -> None:
        shrunk = {"_schemas-0", "payments.settled-1"}
        assert partitions(cluster, "--unavailable-partitions") == {"dev.build-cache-0"}
        assert partitions(cluster, "--under-replicated-partitions") == {*shrunk, "test.stuck-writes-0"}
        # The tool compares the raw value: it calls under min ISR what the broker accepts (test.load-results). It also
        # counts the offline partition, whose last ISR member stays on record.
        raw = {"test.load-results-0", "test.load-results-1"}
        offline = {"dev.build-cache-0"}
        assert partitions(cluster, "--under-min-isr-partitions") == {"test.stuck-writes-0", *raw, *offline}
        ledger = {f"ledger.entries-{i}" for i in range(3)}
        assert partitions(cluster, "--at-min-isr-partitions") == {*shrunk, *ledger, *offline}

    def test_each_start_is_the_same_cluster(self, cluster: LocalCluster) -> None:
        assert probe("demo", {"bootstrap.servers": cluster.bootstrap}).cluster_id == demo.CLUSTER_ID

    def test_brokers_are_as_planted(self, cluster: LocalCluster) -> None:
        with cluster.admin() as admin:
            brokers = {b["broker_id"]: b for b in admin.describe_cluster()["brokers"]}
            log_dirs = admin.describe_log_dirs(brokers=[seed.BAD_DISK])[0]["log_dirs"]
            voters = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["current_voters"]
        assert [i for i, b in brokers.items() if b["is_fenced"]] == [seed.DEAD]
        assert [i for i, b in brokers.items() if b["rack"] is None] == [seed.UNRACKED]
        assert sorted(d["error_code"] for d in log_dirs) == [0, 56]  # KAFKA_STORAGE_ERROR
        assert sorted(brokers[v["replica_id"]]["rack"] for v in voters) == ["az1", "az1", "az2"]

    def test_settings_are_as_planted(self, cluster: LocalCluster) -> None:
        static = cluster.cli("ConfigCommand", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
        assert re.search(r"^\s*default\.replication\.factor=1\b", static, re.M)
        throttled = cluster.cli("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "2")
        assert f"leader.replication.throttled.rate={seed.THROTTLE_BYTES}" in throttled
        assert not cluster.cli("ReassignPartitionsCommand", "--list").count("replicas:")
        features = cluster.cli("FeatureCommand", "describe")
        assert re.search(r"eligible\.leader\.replicas\.version.*FinalizedVersionLevel: 0", features)

    def test_the_streams_application_counts_words(self, cluster: LocalCluster) -> None:
        application = StreamsApplication(cluster)
        with cluster.admin() as admin:
            described = admin.describe_groups([application.group])[application.group]
            names = {topic["name"] for topic in admin.describe_topics()}
        assert described["group_state"] == "Stable"
        assert described["protocol_type"] == "consumer"
        assert {re.search("az[123]", m["client_id"])[0] for m in described["members"]} == {"az1", "az2", "az3"}
        assert set(application.internal_topics) == set(seed.STREAMS_INTERNAL)
        assert names == {topic.name for topic in seed.TOPICS}, "something was created that the seed doesn't know"
        cluster.wait_until(lambda: written(cluster) > 0, "words were counted")


def written(cluster: LocalCluster) -> int:
    offsets = cluster.cli("GetOffsetShell", "--topic", "streams-wordcount-output").split()
    return sum(int(line.rpartition(":")[2]) for line in offsets)
