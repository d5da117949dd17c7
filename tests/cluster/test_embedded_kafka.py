"""The embedded cluster is a real one: Kafka's own tools and another client's eyes see what its spec says."""

from __future__ import annotations

import re
import socket
import uuid
from pathlib import Path

import pytest

from durability.embedded_kafka import classes
from durability.embedded_kafka.cluster import LocalCluster, new_cluster_id
from durability.embedded_kafka.seed import Topic, create_topics
from durability.embedded_kafka.spec import ClusterSpec, as_properties, default_spec
from durability.errors import AuditError, Refused
from durability.runtime import class_archive, processes, watchdog

ONE_NODE = ClusterSpec(
    brokers={1: "az1"}, controllers={1: "az1"}, configs={"offsets.topic.replication.factor": "1"}, heap_mb=128
)


def partitions_in(described: str) -> list[tuple[str, int]]:
    """Topic and partition of each line of `kafka-topics --describe`."""
    return [(m[1], int(m[2])) for m in re.finditer(r"\tTopic: (\S+)\tPartition: (\d+)", described)]


def test_brokers_stand_in_the_racks_of_the_spec(kafka: LocalCluster) -> None:
    with kafka.admin() as admin:
        brokers = admin.describe_cluster()["brokers"]
    assert {b["broker_id"]: b["rack"] for b in brokers} == dict(kafka.spec.brokers)
    assert not any(b["is_fenced"] for b in brokers)


def test_eligible_leader_replicas_are_on(kafka: LocalCluster) -> None:
    described = kafka.cli("FeatureCommand", "describe")
    assert re.search(r"eligible\.leader\.replicas\.version.*FinalizedVersionLevel: 1", described)


def test_it_fits_into_two_gigabytes(kafka: LocalCluster) -> None:
    resident = 0
    for pid in kafka.pids().values():
        status = Path(f"/proc/{pid}/status").read_text()
        resident += int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])
    assert resident < 2 * 1024 * 1024


def test_nodes_take_classes_from_the_archive_of_a_node_that_ended_in_order(kafka, tmp_path, monkeypatch) -> None:
    archive = classes.ensure(kafka.spec.version).resolve()
    assert all(str(archive) in Path(f"/proc/{pid}/maps").read_text() for pid in kafka.pids().values())
    # A node that is killed leaves a part of its archive, or none.
    place = class_archive.Place(tmp_path / "killed.jsa", tmp_path)
    monkeypatch.setattr(class_archive, "of", lambda _: place)
    monkeypatch.setattr(classes, "SECONDS", 0)
    assert classes.ensure(kafka.spec.version) is None and not place.is_whole() and not place.file.exists()


def test_a_killed_rack_leaves_a_quorum_and_the_other_racks_serve(kafka: LocalCluster) -> None:
    create_topics(kafka, [Topic("killed-rack", ((1, 2, 3), (4, 5, 6)))])
    kafka.wait_for_full_isr()
    kafka.kill_rack("az1")
    assert kafka.live_brokers() == {2, 3, 5, 6}
    under = kafka.cli("TopicCommand", "--describe", "--under-replicated-partitions", "--topic", "killed-rack")
    assert partitions_in(under) == [("killed-rack", 0), ("killed-rack", 1)]
    assert not partitions_in(kafka.cli("TopicCommand", "--describe", "--unavailable-partitions"))
    create_topics(kafka, [Topic("made-without-az1", ((2, 3),))])  # the controllers still decide
    kafka.restart_rack("az1")
    kafka.wait_for_full_isr()
    assert kafka.live_brokers() == {1, 2, 3, 4, 5, 6}


def test_a_broker_comes_back_on_its_port(kafka: LocalCluster) -> None:
    before = kafka.bootstrap
    kafka.stop_broker(6)
    assert 6 not in kafka.running
    assert kafka.live_brokers() == {1, 2, 3, 4, 5}
    kafka.restart_broker(6)
    assert kafka.live_brokers() == {1, 2, 3, 4, 5, 6}
    assert kafka.bootstrap == before


def test_a_node_or_rack_that_is_not_there_is_refused(kafka: LocalCluster) -> None:
    with pytest.raises(Refused, match="no running node 42"):
        kafka.kill_broker(42)
    with pytest.raises(Refused, match="no broker or controller is in rack 'az9'"):
        kafka.kill_rack("az9")


def test_a_failing_tool_says_what_it_said(kafka: LocalCluster) -> None:
    with pytest.raises(AuditError, match=r"(?s)TopicCommand .*failed with exit status 1.*absent"):
        kafka.cli("TopicCommand", "--describe", "--topic", "absent")
    with pytest.raises(Refused, match="no command-line tool of class 'NoSuchCommand'"):
        kafka.cli("NoSuchCommand")


def test_a_broker_that_will_not_start_is_named_with_its_log() -> None:
    spec = ClusterSpec(**{**ONE_NODE.__dict__, "configs": {"authorizer.class.name": "no.such.Authorizer"}})
    with pytest.raises(AuditError, match=r"(?s)broker 1 ended with exit status .*no\.such\.Authorizer"):
        LocalCluster(spec).start()


def test_nothing_is_left_of_a_stopped_cluster() -> None:
    cluster = LocalCluster(ONE_NODE).start()
    session, folder = cluster.session.id, cluster.session.folder
    port = int(cluster.bootstrap.rpartition(":")[2])
    assert len(watchdog.marked(session)) == 1
    cluster.stop()
    assert watchdog.marked(session) == []
    assert not folder.exists()
    with socket.create_server(("127.0.0.1", port)):
        assert port in processes.PORTS


def test_the_old_broker_runs_too() -> None:
    spec = ClusterSpec(**{**ONE_NODE.__dict__, "version": "3.6.2"})
    with LocalCluster(spec) as cluster:
        create_topics(cluster, [Topic("from-3-6", ((1,), (1,)))])
        assert partitions_in(cluster.cli("TopicCommand", "--describe")) == [("from-3-6", 0), ("from-3-6", 1)]


def test_log_dirs_cannot_all_be_offline() -> None:
    with pytest.raises(Refused, match="node 2: at least one log dir must stay online"):
        default_spec(log_dirs={2: 2}, offline_log_dirs={2: 2})


def test_properties_survive_what_java_would_read_otherwise() -> None:
    # java.util.Properties: a backslash escapes, = : # ! end a key, leading blanks vanish.
    assert as_properties({"a:b": " c\\d=e#f"}) == "a\\:b=\\ c\\\\d\\=e\\#f\n"


def test_a_cluster_id_never_looks_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [uuid.UUID(bytes=bytes([0xF8 + n] * 16)) for n in (0, 1, 2, 3)] + [uuid.UUID(int=0)]
    monkeypatch.setattr("durability.embedded_kafka.cluster.uuid.uuid4", lambda: drawn.pop(0))
    assert new_cluster_id() == "A" * 22
