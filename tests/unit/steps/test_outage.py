"""Which racks are lost, and what an outage costs and would change, by the rules of the audit and a fresh reading."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

import pytest

from durability.apply.cluster import Reading, Replicas, TopicPartition
from durability.apply.permissions import Authorized, Operation
from durability.apply.record import SET_CONFIG, Approval
from durability.errors import Refused
from durability.lake.change_table import CHANGES
from durability.plan import Plan
from durability.report import outage as report
from durability.steps import drill, outage
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests.support.judge import expressions
from tests.support.lake import publish
from tests.support.topology import document

TABLE = """
    topic     leader  replicas  isr    elr  min
    guarded   2       1,4,2     2      4    2
    guarded   2       2,3,5     2,3,5  -    2
    gone      -       1,4       -      1    1
    fine      2       2,3,5     2,3,5  -    2
    at-least  2       1,2,3     2,3    -    2
"""
BROKERS = "1:az1! 4:az1! 2:az2 5:az2 3:az3 6:az3"
PARAMS = {"cluster": None, "rack": None}


@pytest.fixture
def settings(tmp_path, lake) -> Settings:
    stated = {
        "clusters": {"clusters": [{"id": "eu", "connection": "kafka_eu"}]},
        "waivers": {"waivers": []},
        "policy": {
            "tiers": {"any": {"min_insync_replicas": 2}},
            "topics": [{"tier": "any"}],
            "maintenance": [
                {"cluster": "e.", "from": "2026-11-21T11:00:00Z", "to": "2026-11-21T13:00:00Z", "reason": "moving az1"}
            ],
        },
    }
    for name, content in stated.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"format": f"durability-{name}/1", **content}))
    policy, waivers, clusters = (tmp_path / f"{name}.yaml" for name in ("policy", "waivers", "clusters"))
    return Settings(policy, waivers, clusters, tmp_path / "out", lake.location, None)


@pytest.fixture
def snapshot(lake):
    elr = {"eligible.leader.replicas.version": 1}
    [row] = publish(lake, document(TABLE, cluster="eu", brokers=BROKERS, features=elr))
    return row


class Now:
    """The cluster as the document has it."""

    minimum = "2"

    def __init__(self, doc):
        self.partitions = {
            TopicPartition(topic["name"], p["partition"]): Replicas(
                tuple(p["replicas"]), tuple(p["isr"]), p["leader"], tuple(p["elr"])
            )
            for topic in doc["topics"]
            for p in topic["partitions"]
        }

    def read(self, topics):
        partitions = {place: p for place, p in self.partitions.items() if place.topic in topics}
        return Reading("id", frozenset({2, 5, 3, 6}), True, partitions)

    def overrides(self, resources):
        return {resource: {"min.insync.replicas": self.minimum} for resource in resources}

    def sizes(self, brokers, topics):
        return {(b, place): 1000 for place, p in self.partitions.items() for b in p.isr if b in brokers}

    def usable_bytes(self, brokers):
        return dict.fromkeys(brokers, 1_000_000)

    def authorized(self, topics):
        may = frozenset(Operation)
        return Authorized(may - {Operation.ALTER}, dict.fromkeys(topics, may))


def test_a_rack_is_lost_when_all_its_brokers_are(settings, snapshot, monkeypatch):
    def lost(live, **params):
        monkeypatch.setattr(drill, "live", lambda source, connect: frozenset(live))
        return outage.lost_now(settings, PARAMS | params, lambda name: {})

    assert lost({2, 5, 3, 6}) == ("eu", {"az1": [1, 4]})
    assert lost({2, 5, 3, 6, 4}) == ("eu", {})
    assert lost({1}, rack="az2") == ("eu", {"az2": [2, 5]})
    with pytest.raises(Refused, match=r"eu has no rack az4.*az"):
        lost({1}, rack="az4")


def test_a_restore_that_waits_writes_nothing(settings, snapshot, lake, monkeypatch):
    now = Now(document(TABLE, brokers=BROKERS))
    monkeypatch.setattr(outage, "opened", lambda *_: nullcontext(now))
    work = outage.Work(settings, "eu", "run")
    changes = work.changes()
    with changes.claimed():
        value = {"topic": "at-least", "name": "min.insync.replicas"}
        changes.intend(
            "lower", "1", SET_CONFIG, ["at-least"], [value | {"value": "3", "in_force": 3}], [value | {"value": "2"}]
        )
        changes.done("1")
    summary, before = StepSummary(), lake.scan(CHANGES).num_rows
    assert not outage.restore(work, lambda name: {}, lambda name: True, summary)
    assert summary.text == "0 topics as before, 1 topic waiting, such as at-least: partition 0: broker 1 out of sync"
    assert not outage.is_ready(work, lambda name: {}, lambda name: True, summary)
    assert summary.text == "1 topic waiting, such as at-least: partition 0: broker 1 out of sync"
    assert lake.scan(CHANGES).num_rows == before
    now.minimum = "3"
    assert outage.is_ready(work, lambda name: {}, lambda name: True, summary)
    assert summary.text == "topics can be restored"
    assert outage.restore(work, lambda name: {}, lambda name: True, summary) and not outage.is_open(work)


def test_a_run_that_only_restores_names_the_approver(settings, lake):
    approval = Approval("ann", datetime(2026, 11, 21, 12, tzinfo=UTC), "go")
    first = outage.Work(settings, "eu", "one", None, approval).changes()
    with first.claimed():
        first.intend("lower", "1", SET_CONFIG, ["t"], [], [])
        first.done("1")
    later = outage.Work(settings, "eu", "two").changes()
    with later.claimed():
        later.undone("1")
    rows = lake.scan(CHANGES).to_pylist()
    assert {(row["run_id"], row["approved_by"], row["comment"]) for row in rows} == {
        (n, "ann", "go") for n in ("one", "two")
    }


@pytest.mark.slow
def test_it_says_what_an_outage_costs_and_what_would_be_changed(settings, snapshot, lake, session, monkeypatch):
    from spark_jobs import evaluate, lake_tables

    @contextmanager
    def opened(cluster, source, connect):
        yield Now(document(TABLE, brokers=BROKERS))

    def submit(lake, plan):
        plan = Plan.from_json(plan.to_json())
        reader = lake_tables.reader(session, plan)
        evaluate.run(session, plan, reader, lake_tables.append, expressions(plan.pulse))

    monkeypatch.setattr(drill, "read_again", lambda *_: snapshot)
    monkeypatch.setattr(outage, "opened", opened)
    changes = outage.Work(settings, "eu", "killed").changes()
    with changes.claimed():  # on a cluster that had the name before
        changes.begin("old", [])
        changes.intend("lower", "1", SET_CONFIG, ["guarded"], [], [])
        changes.done("1")
    ids, summary = outage.Ids("run", "run:1"), StepSummary()
    assessed = outage.assess(settings, "eu", {"az1": [1, 4]}, lambda name: {}, ids, submit, summary)
    json.dumps(assessed)  # goes to XCom
    assert assessed["acts"] == {"add-replicas": 1} and assessed["topics"] == {"add-replicas": ["guarded"]}
    assert assessed["rejects"] == {"topics": 2, "partitions": 2, "offline": 1}
    assert assessed["give_up_elr"] == 1
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert [lost["since"] for lost in assessed["racks"]] == [at.strftime("%Y-%m-%dT%H:%M:%SZ")]
    told = report.lines(assessed)
    assert told == [
        "Rack az1 is lost since 2026-11-21 12:00 UTC: brokers 1, 4",
        "Maintenance now: until 2026-11-21T13:00:00Z: moving az1",
        "acks=all is rejected by 2 partitions of 2 topics",
        "Without a leader: 1 partition. Only the rack's return helps",
        "The loss of one more broker stops writes to 3 partitions, those above included",
        "The loss of one more rack stops writes to 5 partitions, those above included",
        "Given up: changes that plan rack-outage made to the Kafka cluster with id old and didn't take back (1 in the table"
        " changes). If that cluster still runs, they stay there",
        "Live brokers take the place of those that are down. No setting changes: 1 topic: guarded",
        "Copied to live brokers: 2,000 bytes",
        "With give_up_elr, the threshold is lowered instead: 1 topic. Kafka then forgets eligible leader replicas",
        "ACL missing: Alter on Cluster",
    ]
    assert assessed["kafka_cluster_id"] == "id"
    assert assessed["given_up_changes"] == [["rack-outage", "rack-outage", "1"]]
    nothing = assessed | {"acts": {}, "give_up_elr": 0}
    assert outage.needs_approval(nothing, {"apply": True}) is None  # there is something to give up
    assert outage.needs_approval(nothing | {"given_up": []}, {"apply": True}) is not None
