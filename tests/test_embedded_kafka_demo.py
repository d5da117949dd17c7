"""The demo's mistakes are real: what was planted is seen with Kafka's own tools, and the list of it is sound."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from durability.catalogue import CONTROLS, severity_of
from durability.embedded_kafka import demo, seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.streams import StreamsApplication
from tests.support.planted import PLANTED

POLICIES = Path(__file__).parents[1] / "policies"


def test_mistakes_are_planted_for_controls_that_are_judged() -> None:
    planted = {p.control for p in PLANTED if p.companion is None}
    assert planted <= {name for name, control in CONTROLS.items() if not control.planned}
    assert len(planted) >= 20  # all but the one that is judged over time; later controls need no mistake here


def test_the_demo_says_how_to_audit_it_and_what_a_rack_is() -> None:
    said = demo.instructions("127.0.0.1:1", {1: 11, 2: 12, 3: 13, 4: 14, 6: 16, 101: 17}, make=True)
    assert "  az1: broker 1 is process 11, broker 4 is process 14" in said and "  az2: broker 2 is process 12" in said
    (command,) = [line.split() for line in said if "make audit" in line]
    given = dict(word.split("=") for word in command[2:])
    (program,) = [line.split() for line in said if "kafka-durability audit" in line]
    assert dict(zip(program[2::2], program[3::2], strict=True)) == {f"--{k.lower()}": v for k, v in given.items()}
    assert given["BOOTSTRAP"] == "127.0.0.1:1"
    assert all((POLICIES.parent / given[name]).is_file() for name in ("POLICY", "WAIVERS"))
    assert not any("make" in line for line in demo.instructions("127.0.0.1:1", {}, make=False))


def test_the_list_speaks_the_catalogues_language() -> None:
    topics = {topic.name for topic in seed.TOPICS}
    for planted in PLANTED:
        control = CONTROLS[planted.control]
        assert planted.resource_type in control.on, planted
        assert planted.category is None or planted.category in control.severities, planted
        if planted.resource_type == "topic":
            assert planted.resource in topics, planted
        if planted.outcome == "FAIL":
            by_configuration = planted.category == "at-min-isr" and planted.severity == "info"
            category = "at-min-isr/configuration" if by_configuration else planted.category
            # The worst problem weighs: no replicas span more racks than there are.
            category = "above-replica-racks" if category == "above-known-racks" else category
            assert planted.severity == severity_of(planted.control, category), planted
        if planted.companion:
            assert planted.companion in {p.control for p in PLANTED if p.companion is None}, planted


def test_good_topics_are_no_part_of_any_mistake() -> None:
    mistaken = {p.resource for p in PLANTED if p.resource_type == "topic" and p.companion != "broker-rack"}
    assert mistaken.isdisjoint(topic.name for topic in seed.GOOD)


def test_the_demo_policy_is_the_default_plus_a_tier_a_selector_and_an_application() -> None:
    default = yaml.safe_load((POLICIES / "policy.yaml").read_text())
    demo_policy = yaml.safe_load((POLICIES / "demo" / "policy.yaml").read_text())
    assert demo_policy.pop("name") == "demo" and default.pop("name")
    assert demo_policy["tiers"].pop("regulated")["min_insync_racks"] == 5
    assert demo_policy["topics"].pop(0)["tier"] == "regulated"
    assert [line["match"] for line in demo_policy.pop("applications")] == [{"group": seed.STREAMS_GROUP}]
    assert demo_policy == default


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with demo.running() as running:
        yield running


def partitions(cluster: LocalCluster, option: str) -> set[str]:
    described = cluster.cli("TopicCommand", "--describe", option)
    return {f"{m[1]}-{m[2]}" for m in re.finditer(r"\tTopic: (\S+)\tPartition: (\d+)", described)}


@pytest.mark.cluster
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


def test_planted_can_be_written_down() -> None:
    assert json.loads(json.dumps([planted.__dict__ for planted in PLANTED]))
