"""A rack is lost on a running cluster, topics are changed so that acks=all works, and everything is as before afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from durability.apply import outage_run, outage_throttle
from durability.apply.record import BEGIN, Approval
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.lake.change_table import CHANGES, UNDONE
from durability.steps import drill, outage
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests import ROOT
from tests.support.acked_writer import AckedWriter
from tests.support.kafka_states import answers, described

MIN = "min.insync.replicas"
PARAMS = {"cluster": "eu", "rack": None, "apply": True}


class Outage:
    """The steps of the DAG on a cluster. The entries of `rack_outage` are such as test_racks has them from a real cluster."""

    def __init__(self, kafka: LocalCluster, lake, folder):
        self.kafka, self.lake = kafka, lake
        clusters = folder / "clusters.yaml"
        clusters.write_text("format: durability-clusters/1\nclusters: [{id: eu, connection: kafka_eu}]\n")
        policy, waivers = (ROOT / "policies" / f"{name}.yaml" for name in ("policy", "waivers"))
        self.settings = Settings(policy, waivers, clusters, folder / "out", lake.location, None)
        approval = Approval("ann", datetime.now(UTC), "az1 burns")
        self.work = outage.Work(self.settings, "eu", "run", 50_000_000, approval)
        self.snapshot()

    def connect(self, name):
        return {"bootstrap.servers": self.kafka.bootstrap, "allow_changes": True}

    def allows(self, name):
        return True

    def snapshot(self):
        drill.read_again(self.settings, drill.source(self.settings, "eu"), self.connect, StepSummary())

    def change(self, step, **sources):
        """sources: by topic, the source of its min.insync.replicas."""
        entries = {
            topic: [{"setting": MIN, "step": step, "now": 2, "now_source": source}] for topic, source in sources.items()
        }
        changes = self.work.changes()
        with self.work.reached(changes, self.connect, self.allows) as (cluster, _), changes.claimed():
            outcome = outage_run.change(cluster, changes, entries, self.work.known(), False, self.work.throttle)
        assert not outcome.failed
        return dict(outcome.topics)

    def ready(self):
        return outage.is_ready(self.work, self.connect, self.allows, StepSummary())

    def throttles(self):
        kinds = ("brokers", "topics")
        printed = [self.kafka.cli("ConfigCommand", "--describe", "--entity-type", kind) for kind in kinds]
        return [line for text in printed for line in text.splitlines() if "throttled" in line]

    def restored(self):
        return self.ready() and outage.restore(self.work, self.connect, self.allows, StepSummary())

    def partition(self, topic):
        with self.work.reached(self.work.changes(), self.connect, self.allows) as (cluster, _):
            return cluster.read([topic]).partitions[topic, 0]

    def described(self, topic):
        """The same as kafka-topics has it."""
        return described(self.kafka.cli("TopicCommand", "--describe", "--topic", topic))[topic, 0]

    def answer(self, topic):
        return answers(self.kafka, [(topic, 0)], "all", b"x")[topic, 0]

    def own(self, topic):
        printed = self.kafka.cli("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic)
        return [word for word in printed.split() if word.startswith(MIN)]

    def states(self):
        rows = self.lake.scan(CHANGES).to_pylist()
        assert {row["approved_by"] for row in rows} == {"ann"}
        return {row.state for row in self.work.changes().state().values() if row.kind != BEGIN}


@pytest.fixture
def topic(kafka):
    """Removed at the end: other tests kill racks, and expect that no topic has two replicas in one."""
    topic = seed.Topic("outage_elr", ((1, 4, 2),), {MIN: "2"})
    seed.create_topics(kafka, [topic])
    kafka.wait_for_full_isr()
    yield topic.name
    with kafka.admin() as admin:
        admin.delete_topics([topic.name])


@pytest.mark.slow
def test_with_elr_replicas_are_added_and_taken_back(kafka, topic, lake, tmp_path):
    run = Outage(kafka, lake, tmp_path)
    kafka.kill_rack("az1")
    assert outage.lost_now(run.settings, PARAMS, run.connect) == ("eu", {"az1": [1, 4]})
    assert run.answer(topic) == "NotEnoughReplicasError"
    # The step says lower, but meanwhile there is an ELR, which a lower minimum would wipe.
    assert run.change("lower", outage_elr="topic") == {"add-replicas": 1}
    kafka.wait_until(lambda: len(run.partition(topic).isr) == 3, "live brokers have copies")
    assert run.answer(topic) == "accepted" and not {1, 4} & set(run.partition(topic).replicas)
    assert run.own(topic)[:1] == [f"{MIN}=2"]
    assert outage_throttle.open_rows(run.work.changes())
    assert not run.ready() and not run.throttles()
    kafka.restart_rack("az1")
    kafka.wait_until(run.restored, "everything is put back")
    assert run.described(topic).replicas == [1, 4, 2] and not run.throttles() and run.states() == {UNDONE}


@pytest.mark.slow
def test_a_rack_that_is_back_before_its_replacements_are_copied_gets_its_replicas_back(kafka, topic, lake, tmp_path):
    seed.produce(kafka, topic, ["x" * 100_000] * 60)
    run = Outage(kafka, lake, tmp_path)
    run.work = replace(run.work, throttle=1)  # the copies never end
    kafka.kill_rack("az1")
    with AckedWriter(kafka.bootstrap, [(topic, 0)]) as application:
        assert run.change("lower", outage_elr="topic") == {"add-replicas": 1}
        assert run.partition(topic).adding and run.throttles()
        kafka.restart_rack("az1")
        kafka.wait_until(run.restored, "everything is put back")
        kafka.wait_until(application.accepted_by_all, "acks=all is accepted")
    assert run.described(topic).replicas == [1, 4, 2] and not run.partition(topic).moving
    assert not run.throttles() and run.states() == {UNDONE} and run.own(topic)[:1] == [f"{MIN}=2"]
    assert application.lost() == set()


@pytest.mark.slow
def test_without_elr_the_minimum_is_lowered_and_restored(lake, tmp_path):
    racks = {1: "az1", 2: "az2", 3: "az2"}
    spec = ClusterSpec(racks, {1: "az1"}, features={"eligible.leader.replicas.version": 0})
    stated, inherits = "outage_stated", "outage_inherits"
    with LocalCluster(spec) as kafka:
        topics = [seed.Topic(stated, ((1, 2, 3),), {MIN: "2"}), seed.Topic(inherits, ((1, 2, 3),), {})]
        seed.create_topics(kafka, topics)
        kafka.wait_for_full_isr()
        run = Outage(kafka, lake, tmp_path)
        kafka.kill_rack("az2")
        assert run.answer(stated) == "NotEnoughReplicasError"
        assert run.change("lower", outage_stated="topic", outage_inherits="broker") == {"lower": 2}
        assert [run.answer(topic) for topic in (stated, inherits)] == ["accepted", "accepted"]
        assert not run.ready()
        kafka.restart_rack("az2")
        kafka.wait_until(run.restored, "everything is put back")
        # An override that wasn't there is deleted, rather than set to the default.
        assert (run.own(stated)[:1], run.own(inherits)) == ([f"{MIN}=2"], [])
        assert run.states() == {UNDONE}
