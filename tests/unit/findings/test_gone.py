"""The plan for brokers that are down is made from the lake's facts, up to a number of partitions."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from durability.findings import gone
from durability.lake.tables import BROKERS, PARTITIONS
from tests.support.facts import Facts
from tests.support.topology import document

DRAWN = document(
    "topic replicas isr leader adding\na 1,3 1 1 -\na 3,1 3 - -\na 2,3 2 2 3\nb 1,2 1,2 1 -\nb 2,3 2 2 -",
    brokers="1:a 2:b 3:c! 4:c",
    cluster="eu",
)


RUN = SimpleNamespace(judged=[SimpleNamespace(attempt_id="attempt", cluster="eu", provider="self")])


@pytest.mark.parametrize(("most", "moved", "left"), [(100, [("a", 0), ("b", 1)], 2), (1, [("a", 0)], 3)])
def test_partitions_with_a_live_leader_in_sync_leave(monkeypatch, most, moved, left):
    monkeypatch.setattr(gone, "PARTITIONS", most)
    plan = gone.make(Facts(DRAWN), RUN)["eu"]
    assert [(topic, partition) for topic, partition, _ in plan.moves] == moved
    assert (plan.brokers, plan.left, plan.script) == ((3,), left, "plans/eu/brokers+gone.sh")
    assert plan.running == 1
    assert all(3 not in replicas and 4 in replicas for _, _, replicas in plan.moves)


def test_without_a_broker_that_is_down_no_partition_is_read():
    facts = Facts(document("topic replicas\na 1,2", brokers="1:a 2:b", cluster="eu"))
    del facts.tables[PARTITIONS.name]
    assert BROKERS.name in facts.tables and gone.make(facts, RUN) == {}


def test_a_broker_with_a_failed_disk_gets_no_replica():
    """A document may state the number of offline log dirs alone."""
    assert all(4 in replicas for _, _, replicas in gone.make(Facts(DRAWN), RUN)["eu"].moves)
    for broker in (failed := copy.deepcopy(DRAWN))["brokers"]:
        if broker["id"] == 4:
            broker["offline_log_dirs"] = 1
    assert all(4 not in replicas for _, _, replicas in gone.make(Facts(failed), RUN)["eu"].moves)


@pytest.mark.parametrize(("provider", "planned"), [("aiven", []), ("msk-express", []), ("msk", []), ("other", ["eu"])])
def test_no_plan_is_made_where_the_provider_brings_brokers_back(provider, planned):
    run = SimpleNamespace(judged=[SimpleNamespace(attempt_id="attempt", cluster="eu", provider=provider)])
    assert list(gone.make(Facts(DRAWN), run)) == planned


def test_without_a_controller_nothing_is_planned():
    """No command could be printed for the plan, and the step that reports stopped."""
    quorum = {"leader": None, "voters": [{"id": 1, "rack": "a", "lag_ms": 0}], "observers": []}
    drawn = {**DRAWN, "cluster": {**DRAWN["cluster"], "quorum": quorum}}
    assert gone.make(Facts(drawn), RUN) == {}
    quorum["leader"] = 1
    assert list(gone.make(Facts(drawn), RUN)) == ["eu"]


def test_topics_with_observers_are_left_to_confluents_tools():
    constraints = '{"version":1,"replicas":[{"count":1}],"observers":[{"count":1}]}'
    configs = {"a": {"confluent.placement.constraints": constraints}}
    table = "topic replicas isr leader\na 1,3 1 1\nb 2,3 2 2"
    drawn = document(table, brokers="1:a 2:b 3:c! 4:c", cluster="eu", configs=configs)
    plan = gone.make(Facts(drawn), RUN)["eu"]
    assert ([topic for topic, _, _ in plan.moves], plan.left) == (["b"], 1)
