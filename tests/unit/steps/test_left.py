"""A run of rack_outage that was killed between its change and its restore: the values come back, and only those that it set."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from durability.apply import outage_run, outage_throttle, recorded, throttles
from durability.apply.cluster import Replicas, Resource, ResourceType, TopicPartition
from durability.apply.record import BEGIN, THROTTLE, Approval, Changes
from durability.errors import Refused
from durability.lake.change_table import CHANGES, LEFT, RACK_OUTAGE, REMEDIATE, UNDONE
from durability.steps import left, outage
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests.support.fake_cluster import FakeCluster
from tests.support.lake import publish
from tests.support.topology import document

MIN = "min.insync.replicas"
STATED, INHERITS, OTHERS = ("outage.stated", "outage.inherits", "outage.others")
ALLOWED = (lambda name: {}, lambda name: True)
BROKERS = "1:az1 2:az2! 3:az2! 4:az3"


@pytest.fixture
def world(lake, tmp_path, monkeypatch):
    """Settings, and a cluster whose rack az2 is lost: each topic has a replica in az1 and two in az2."""
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text(
        json.dumps({"format": "durability-clusters/1", "clusters": [{"id": "eu", "connection": "kafka_eu"}]})
    )
    doc = document("topic leader replicas isr min\nt 1 1,2,3 1 2", brokers=BROKERS, cluster="eu")
    publish(lake, doc | {"cluster": doc["cluster"] | {"features": {"eligible.leader.replicas.version": 0}}})
    partitions = {TopicPartition(t, 0): Replicas((1, 2, 3), (1,), 1, ()) for t in (STATED, INHERITS, OTHERS)}
    own = {Resource(ResourceType.TOPIC, t): {} if t == INHERITS else {MIN: "2"} for t in (STATED, INHERITS, OTHERS)}
    kafka = FakeCluster(partitions, own, frozenset({1, 4}))
    monkeypatch.setattr(outage, "opened", lambda *_: nullcontext(kafka))
    monkeypatch.setattr("durability.apply.outage_back.PAUSE", 0)
    return Settings(clusters, clusters, clusters, tmp_path / "out", lake.location, None), kafka


def minimums(kafka) -> list[str | None]:
    return [kafka.settings[Resource(ResourceType.TOPIC, t)].get(MIN) for t in (STATED, INHERITS, OTHERS)]


def test_a_killed_outage_is_restored_once_the_rack_is_back(world, lake, monkeypatch):
    settings, kafka = world
    work = outage.Work(settings, "eu", "killed", None, Approval("ann", datetime(2026, 11, 21, 12, tzinfo=UTC)))
    entries = {
        t: [{"setting": MIN, "step": "lower", "now": 2, "now_source": "broker" if t == INHERITS else "topic"}]
        for t in (STATED, INHERITS, OTHERS)
    }
    changes = work.changes()
    with changes.claimed():
        outage_run.change(kafka, changes, entries, work.known(), False)
    assert minimums(kafka) == ["1", "1", "1"]

    def restored(name="pulse") -> StepSummary:
        summary = StepSummary()
        left.restore(settings, name, *ALLOWED, summary)
        return summary

    assert restored().text == ""  # its run may go on
    monkeypatch.setattr(left, "IDLE", timedelta())
    before = lake.scan(CHANGES).num_rows
    assert restored().text == "1 application waiting" and minimums(kafka) == ["1", "1", "1"]  # the rack isn't back
    assert lake.scan(CHANGES).num_rows == before

    kafka.live |= {2, 3}
    kafka.partitions = {name: replace(now, isr=(1, 2, 3)) for name, now in kafka.partitions.items()}
    kafka.settings[Resource(ResourceType.TOPIC, OTHERS)][MIN] = "3"
    kafka.cluster_id = "rebuilt"
    [problem] = restored().problems
    assert "this is another cluster: its Kafka cluster id is rebuilt, and plan rack-outage changed kafka" in problem
    for look in (outage.is_ready, outage.restore):
        with pytest.raises(Refused, match="this is another cluster"):
            look(work, *ALLOWED, StepSummary())
    assert minimums(kafka) == ["1", "1", "3"] and lake.scan(CHANGES).num_rows == before

    kafka.cluster_id = "kafka"
    summary = restored()
    assert summary.text == "1 application taken back"
    assert minimums(kafka) == ["2", None, "3"]
    assert summary.problems == [
        f"eu, plan rack-outage: topic {OTHERS}: {MIN} 3 was set by others and stays; before the outage it was 2"
    ]
    assert {row["approved_by"] for row in lake.scan(CHANGES).to_pylist()} == {"ann"}
    assert restored().text == "" and not outage.is_open(work)
    # Now that all is as before, the Connection may lead to the rebuilt cluster.
    kafka.cluster_id, kafka.live = "rebuilt", frozenset({1, 4})
    kafka.partitions = {name: replace(now, isr=(1,)) for name, now in kafka.partitions.items()}
    changes = work.changes()
    with work.reached(changes, *ALLOWED), changes.claimed():
        outage_run.change(kafka, changes, {STATED: entries[STATED]}, work.known(), False)
    assert minimums(kafka) == ["1", None, "3"]


def test_what_an_outage_changed_is_not_put_back_on_a_topic_that_was_recreated(world, lake, monkeypatch):
    settings, kafka = world
    monkeypatch.setattr(left, "IDLE", timedelta())
    kafka.topic_ids = {STATED: "old", OTHERS: "same"}
    entries = {t: [{"setting": MIN, "step": "lower", "now": 2, "now_source": "topic"}] for t in (STATED, OTHERS)}
    work = outage.Work(settings, "eu", "killed", None)
    changes = work.changes()
    with changes.claimed():
        outage_run.change(kafka, changes, entries, work.known(), False)
    assert minimums(kafka)[::2] == ["1", "1"]
    kafka.topic_ids[STATED] = "new"
    kafka.live |= {2, 3}
    kafka.partitions = {name: replace(now, isr=(1, 2, 3)) for name, now in kafka.partitions.items()}
    summary = StepSummary()
    left.restore(settings, "pulse", *ALLOWED, summary)
    assert minimums(kafka)[::2] == ["1", "2"] and recorded.unfinished(lake) == []
    assert summary.problems == [
        f"eu, plan rack-outage: topic {STATED}: {MIN} is left, because the topic was recreated since the outage"
    ]


def test_an_approved_change_of_a_rebuilt_cluster_gives_up_what_was_changed_on_the_former_one(world, lake, monkeypatch):
    settings, kafka = world
    entries = {STATED: [{"setting": MIN, "step": "lower", "now": 2, "now_source": "topic"}]}
    work = outage.Work(settings, "eu", "killed", None, Approval("ann", datetime(2026, 11, 21, 12, tzinfo=UTC)))
    changes = work.changes()
    with changes.claimed():
        outage_run.change(kafka, changes, entries, work.known(), False)
    plan = Changes(lake, "eu", REMEDIATE, "p1", "killed", None)
    with plan.claimed():
        plan.begin("kafka", [])
        plan.intend("1", "throttle:1", THROTTLE, ["t"], [], [])
    kafka.cluster_id = "rebuilt"
    kafka.settings[Resource(ResourceType.TOPIC, STATED)][MIN] = "2"
    gone = recorded.of_other_clusters(lake, "eu", "rebuilt")
    assert [(one.plan, len(one.rows)) for one in gone] == [("rack-outage", 1), ("p1", 1)]
    assert recorded.of_other_clusters(lake, "eu", "kafka") == recorded.of_other_clusters(lake, "eu", None) == []

    work = outage.Work(settings, "eu", "second", None, Approval("bob", datetime(2026, 11, 22, 12, tzinfo=UTC)))
    monkeypatch.setattr(outage, "_asked", lambda *_: (entries, False))
    [row] = lake.snapshots(status="accepted", kind="full")
    assessed = {"run_id": "r", "result_id": "r:1", "snapshot_id": row["snapshot_id"], "lost": {"az2": [2, 3]}}
    before = lake.scan(CHANGES).num_rows
    assessed |= {"kafka_cluster_id": "rebuilt", "given_up_changes": []}
    with pytest.raises(Refused, match="run `rack_outage` or `remediate` with `apply` on this one"):
        outage.change(work, assessed, False, *ALLOWED, StepSummary())
    assert lake.scan(CHANGES).num_rows == before  # the approver read of nothing to give up
    assessed["given_up_changes"] = json.loads(json.dumps(recorded.change_names(gone)))
    later = Changes(lake, "eu", REMEDIATE, "p2", "killed", None)
    with later.claimed():  # since the approval
        later.begin("kafka", [])
        later.intend("1", "throttle:1", THROTTLE, ["t"], [], [])
    summary = StepSummary()
    assert outage.change(work, assessed, False, *ALLOWED, summary) == {"lower": 1}
    assert summary.problems == recorded.given_up(gone)
    assert summary.problems[0].startswith(
        "Given up: changes that plan rack-outage made to the Kafka cluster with id kafka and didn't take back (1 in the table"
    )
    assert minimums(kafka)[0] == "1"
    mine, unread = recorded.unfinished(lake)
    assert unread.plan == "p2" and (mine.kafka_cluster_id, mine.approval.by, len(mine.rows)) == ("rebuilt", "bob", 1)
    closed = [r for r in lake.scan(CHANGES).to_pylist() if r["state"] == LEFT]
    assert {(r["plan"], r["change"], r["approved_by"], r["said"]) for r in closed} == {
        (plan, change, "bob", "given up: the Kafka cluster has the id rebuilt now")
        for plan, change in (("p1", "throttle:1"), ("rack-outage", "00000002"))
    }
    assert recorded.of_other_clusters(lake, "eu", "rebuilt") == [unread]


def test_what_another_run_took_back_before_the_claim_is_not_given_up(lake, monkeypatch):
    plan = Changes(lake, "eu", REMEDIATE, "p", "killed", None)
    with plan.claimed():
        plan.begin("kafka", [])
        for name in ("a", "b"):
            plan.intend(name, name, THROTTLE, ["t"], [], [])
    gone = recorded.of_other_clusters(lake, "eu", "rebuilt")
    with plan.claimed():
        plan.undone("a")
    monkeypatch.setattr(recorded, "of_other_clusters", lambda *_: gone)  # read before that
    changes = Changes(lake, "eu", REMEDIATE, "q", "run", None)
    [said] = recorded.give_up(changes, recorded.change_names(gone), "rebuilt")
    assert "(1 in the table changes)" in said
    assert {name: row.state for name, row in plan.state().items() if name != BEGIN} == {"a": UNDONE, "b": LEFT}


def test_changes_of_a_cluster_that_is_gone_are_reported_once_and_can_be_given_up(world, lake, monkeypatch):
    settings, _ = world
    monkeypatch.setattr(left, "IDLE", timedelta())
    for cluster, purpose, plan in (
        ("eu", REMEDIATE, "p1"),
        ("us", REMEDIATE, "p2"),
        ("us", RACK_OUTAGE, "rack-outage"),
    ):
        changes = Changes(lake, cluster, purpose, plan, "killed", Approval("ann", datetime(2026, 11, 21, tzinfo=UTC)))
        with changes.claimed():
            changes.begin("kafka", [])
            changes.intend("1", "throttle:1", THROTTLE, ["t"], [], [])
    changed_at = recorded.plan(lake, "p2").changed_at
    monkeypatch.setattr(left.remediate, "restore", lambda *_: [])

    def pulse() -> list[str]:
        summary = StepSummary()
        left.restore(settings, "pulse", *ALLOWED, summary)
        assert summary.text == "1 application waiting"  # the one of eu
        return summary.problems

    first = pulse()
    assert [text.split(":")[0] for text in first] == [
        f"plan {plan} was not finished, and can't be taken back" for plan in ("rack-outage", "p2")
    ]
    assert f"{settings.clusters} doesn't list us. Add it there" in first[1]
    assert "trigger lake_upkeep with give_up=us, which closes these changes. This is said once" in first[1]
    assert pulse() == [] and recorded.plan(lake, "p2").changed_at == changed_at
    for cluster, why in (("eu", "lists cluster eu, so its changes can be taken back"), ("uss", "did you mean us?")):
        with pytest.raises(Refused, match=why):
            left.give_up(settings, "upkeep", cluster, StepSummary())
    summary = StepSummary()
    assert left.give_up(settings, "upkeep", "us", summary) == 2
    assert summary.problems == [f"given up: 1 change of plan {plan} to cluster us" for plan in ("rack-outage", "p2")]
    assert [(plan.cluster, plan.plan) for plan in recorded.unfinished(lake)] == [("eu", "p1")]
    closed = [row for row in lake.scan(CHANGES).to_pylist() if row["state"] == LEFT]
    assert {(row["plan"], row["run_id"], row["said"]) for row in closed} == {
        (plan, "upkeep", "given up: the cluster is gone") for plan in ("p2", "rack-outage")
    }


@pytest.mark.parametrize("answers", ["other", None])
def test_an_approved_change_is_made_on_the_approved_cluster_alone(world, lake, answers):
    settings, kafka = world
    kafka.cluster_id = answers
    [row] = lake.snapshots(status="accepted", kind="full")
    assessed = {"run_id": "r", "result_id": "r:1", "snapshot_id": row["snapshot_id"], "lost": {"az2": [2, 3]}}
    assessed |= {"kafka_cluster_id": "kafka", "given_up_changes": []}
    says = f"isn't the approved cluster: its Kafka cluster id is {answers or 'unknown'}, and the approval is for kafka"
    with pytest.raises(Refused, match=says):
        outage.change(outage.Work(settings, "eu", "run"), assessed, False, *ALLOWED, StepSummary())
    assert not lake.scan(CHANGES).num_rows


def test_a_reading_without_an_id_does_not_replace_the_known_one(world, lake):
    settings, kafka = world
    work = outage.Work(settings, "eu", "run")
    changes = work.changes()
    for kafka_id, recorded_id in (("kafka", "kafka"), (None, "kafka"), ("rebuilt", "rebuilt")):
        kafka.cluster_id = kafka_id
        with changes.claimed():
            outage_run.change(kafka, changes, {}, work.known(), False)
            assert changes.state()[BEGIN].was["kafka_cluster_id"] == recorded_id


def test_a_plan_that_another_run_claimed_meanwhile_is_not_taken_back(world, lake, monkeypatch):
    changes = Changes(lake, "eu", REMEDIATE, "p", "killed", None)
    with changes.claimed():
        changes.intend("1", "throttle:1", THROTTLE, ["t"], [], [])
    monkeypatch.setattr(left, "IDLE", timedelta())
    monkeypatch.setattr(
        left.remediate, "restore", lambda *_: Changes(lake, "eu", REMEDIATE, "q", "other", None).claim() or []
    )
    summary = StepSummary()
    left.restore(world[0], "pulse", *ALLOWED, summary)
    assert summary.text == "1 application waiting"


def test_a_plan_that_recorded_no_id_of_its_cluster_is_taken_back(lake):
    changes = Changes(lake, "eu", REMEDIATE, "p", "run", None)
    with changes.claimed():
        changes.begin(None, [])
    recorded.same_cluster(changes, "x")
    assert changes.state()[BEGIN].was["kafka_cluster_id"] is None


def test_replicas_go_back_with_the_throttle_of_their_own_outage(world, lake):
    settings, _ = world
    rates = [{"type": "broker", "name": "1", "setting": throttles.LEADER_RATE, "value": "1000000"}]
    moves = ("reassign", ["t"], {"placements": [], "min_isr": {}}, {"placements": []})
    changes = outage.Work(settings, "eu", "first").changes()
    with changes.claimed():
        changes.intend("add-replicas", "1", *moves)
        changes.intend("1", "throttle:1", THROTTLE, ["t"], [], rates)
        changes.done("1")
        changes.undone("throttle:1")
    assert outage_throttle.last_rate(changes) == 1_000_000
    with changes.claimed():
        changes.undone("1")
        changes.intend("add-replicas", "2", *moves)
        changes.done("2")
    assert outage_throttle.last_rate(changes) is None  # the next outage's approver chose none
