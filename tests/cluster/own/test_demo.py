"""The demo's mistakes are real: what was planted is seen with Kafka's own tools."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from durability.collect.probe import probe
from durability.embedded_kafka import demo, seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.streams import StreamsApplication
from durability.errors import Unreachable


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with demo.running() as running:
        yield running


def partitions(cluster: LocalCluster, option: str) -> set[str]:
    described = cluster.cli("TopicCommand", "--describe", option)
    return {f"{m[1]}-{m[2]}" for m in re.finditer(r"\tTopic: (\S+)\tPartition: (\d+)", described)}


def eventually(cluster: LocalCluster, option: str, expected: set[str]) -> set[str]:
    """`expected` once the tool prints it, else what it printed last.

    On a busy machine a live broker may miss its heartbeats and be fenced for a moment (seen in CI).
    """
    printed: list[set[str]] = []

    def is_expected() -> bool:
        printed.append(partitions(cluster, option))
        return printed[-1] == expected

    with contextlib.suppress(Unreachable):
        cluster.wait_until(is_expected, option)
    return printed[-1]


@pytest.mark.slow
class TestRunning:
    def test_partitions_suffer_as_planted(self, cluster: LocalCluster) -> None:
        shrunk, offline, stuck = {"_schemas-0", "payments.settled-1"}, {"dev.build-cache-0"}, {"test.stuck-writes-0"}
        # The tool compares the raw value: it calls under min ISR what the broker accepts (test.load-results). It also
        # counts the offline partition, whose last ISR member stays on record.
        raw = {"test.load-results-0", "test.load-results-1"}
        ledger = {f"ledger.entries-{i}" for i in range(3)}
        planted = {
            "--unavailable-partitions": offline,
            "--under-replicated-partitions": {*shrunk, *stuck},
            "--under-min-isr-partitions": {*stuck, *raw, *offline},
            "--at-min-isr-partitions": {*shrunk, *ledger, *offline},
        }
        for option, expected in planted.items():
            assert eventually(cluster, option, expected) == expected, option

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
