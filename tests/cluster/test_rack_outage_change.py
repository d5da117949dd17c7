"""A rack is lost on a running cluster, topics are changed so that acks=all works, and everything is as before afterwards."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from durability.apply import outage_run
from durability.apply.record import Approval
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.lake.change_table import CHANGES, UNDONE
from durability.plan import Plan
from durability.report import outage as report
from durability.steps import drill, outage
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from spark_jobs import evaluate, lake_tables
from tests import ROOT
from tests.support.judge import expressions
from tests.support.kafka_states import answers, described

MIN = "min.insync.replicas"
PARAMS = {"cluster": "eu", "rack": None, "apply": True}


class Outage:
    """The steps of the DAG on a cluster, with Spark in the test's own session."""

    def __init__(self, kafka: LocalCluster, lake, session, folder):
        self.kafka, self.lake, self.session = kafka, lake, session
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

    def evaluate(self, lake, plan):
        plan = Plan.from_json(plan.to_json())
        reader = lake_tables.reader(self.session, plan)
        evaluate.run(self.session, plan, reader, lake_tables.append, expressions(plan.pulse))

    def assess(self):
        cluster, lost = outage.lost_now(self.settings, PARAMS, self.connect)
        ids = outage.Ids("run", "run:1")
        return outage.assess(self.settings, cluster, lost, self.connect, ids, self.evaluate, StepSummary())

    def change(self, assessed, give_up_elr=False):
        return outage.change(self.work, assessed, give_up_elr, self.connect, self.allows, StepSummary())

    def ready(self):
        return outage.is_ready(self.work, self.connect, self.allows, StepSummary())

    def throttles(self):
        kinds = ("brokers", "topics")
        printed = [self.kafka.cli("ConfigCommand", "--describe", "--entity-type", kind) for kind in kinds]
        return [line for text in printed for line in text.splitlines() if "throttled" in line]

    def restored(self):
        return self.ready() and outage.restore(self.work, self.connect, self.allows, StepSummary())

    def partition(self, topic):
        return described(self.kafka.cli("TopicCommand", "--describe", "--topic", topic))[topic, 0]

    def answer(self, topic):
        return answers(self.kafka, [(topic, 0)], "all", b"x")[topic, 0]

    def own(self, topic):
        printed = self.kafka.cli("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic)
        return [word for word in printed.split() if word.startswith(MIN)]

    def states(self):
        rows = self.lake.scan(CHANGES).to_pylist()
        assert {row["approved_by"] for row in rows} == {"ann"}
        return {row.state for row in self.work.changes().state().values()}


@pytest.fixture
def topic(kafka):
    """Removed at the end: other tests kill racks, and expect that no topic has two replicas in one."""
    topic = seed.Topic("outage-elr", ((1, 4, 2),), {MIN: "2"})
    seed.create_topics(kafka, [topic])
    kafka.wait_for_full_isr()
    yield topic.name
    with kafka.admin() as admin:
        admin.delete_topics([topic.name])


@pytest.mark.slow
def test_with_elr_replicas_are_added_and_taken_back(kafka, topic, lake, session, tmp_path):
    run = Outage(kafka, lake, session, tmp_path)
    kafka.kill_rack("az1")
    assert run.answer(topic) == "NotEnoughReplicasError"
    assessed = run.assess()
    assert assessed["lost"] == {"az1": [1, 4]} and topic in assessed["topics"]["add-replicas"]
    assert "lower" not in assessed["acts"] and assessed["give_up_elr"] >= 1
    assert f"get replicas on live brokers in place of those that are down; no setting changes: {topic}" in report.page(
        assessed
    )
    run.change(assessed)
    kafka.wait_until(lambda: len(run.partition(topic).isr) == 3, "live brokers have copies")
    assert run.answer(topic) == "accepted" and not {1, 4} & set(run.partition(topic).replicas)
    assert run.own(topic)[:1] == [f"{MIN}=2"]
    assert run.throttles()
    assert not run.ready() and not run.throttles()
    kafka.restart_rack("az1")
    kafka.wait_until(run.restored, "everything is put back")
    assert run.partition(topic).replicas == [1, 4, 2] and not run.throttles() and run.states() == {UNDONE}


@pytest.mark.slow
def test_without_elr_the_minimum_is_lowered_and_restored(lake, tmp_path):
    racks = {1: "az1", 2: "az2", 3: "az2"}
    spec = ClusterSpec(racks, {1: "az1"}, features={"eligible.leader.replicas.version": 0})
    stated, inherits = "outage-stated", "outage-inherits"
    with LocalCluster(spec) as kafka:
        seed.create_topics(
            kafka, [seed.Topic(stated, ((1, 2, 3),), {MIN: "2"}), seed.Topic(inherits, ((1, 2, 3),), {})]
        )
        kafka.wait_for_full_isr()
        run = Outage(kafka, lake, None, tmp_path)
        kafka.kill_rack("az2")
        assert run.answer(stated) == "NotEnoughReplicasError"
        # As `spark_jobs.history.rack_outage` evaluates such topics: test_racks.
        lower = {"setting": MIN, "step": "lower", "now": 2}
        entries = {stated: [{**lower, "now_source": "topic"}], inherits: [{**lower, "now_source": "broker"}]}
        changes = run.work.changes()
        with run.work.reached(run.connect, run.allows) as cluster, changes.claimed():
            outcome = outage_run.change(cluster, changes, entries, run.work.known(), False)
        assert outcome.topics == {"lower": 2} and not outcome.failed
        assert [run.answer(topic) for topic in (stated, inherits)] == ["accepted", "accepted"]
        assert not run.ready()
        kafka.restart_rack("az2")
        kafka.wait_until(run.restored, "everything is put back")
        # An override that wasn't there is deleted, rather than set to the default.
        assert (run.own(stated)[:1], run.own(inherits)) == ([f"{MIN}=2"], [])
        assert run.states() == {UNDONE}
