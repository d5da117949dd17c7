"""The gate of a rolling restart, on small clusters drawn as tables."""

import pytest

from durability.restart.check import check
from tests.support.topology import document

BROKERS = "1:az1 2:az2 3:az3 4:az1"


def verdict(table, wave, margin=0, **parts):
    return check(document(table, **{"brokers": BROKERS, **parts}), wave, margin)


WHOLE = """
    topic  replicas min
    orders 1,2,3    2
    audit  4,2,3    2
"""


@pytest.mark.parametrize("wave", [{1}, {4}, {1, 4}, {2}, {3, 101}])
def test_a_wave_that_every_partition_can_spare_goes(wave):
    assert verdict(WHOLE, wave).reasons == ()


@pytest.mark.parametrize("wave", [{1}, {101}])
def test_a_quorum_of_one_restarts_alone(wave):
    assert verdict(WHOLE, wave, quorum="101:az1:0").reasons == ()


@pytest.mark.parametrize(
    "table, wave, parts, reason",
    [
        (WHOLE, {1, 2}, {}, "acks=all writes would be rejected: orders-0"),
        (WHOLE, {2, 3}, {}, "acks=all writes would be rejected: orders-0, audit-0"),
        (WHOLE, {9}, {}, "the cluster has no node 9"),
        ("topic replicas isr min\norders 1,2,3 1,2 1", {1}, {}, "the ISR isn't whole, or replicas move: orders-0"),
        ("topic leader replicas isr\norders - 1,2 1,2", {3}, {}, "the ISR isn't whole, or replicas move: orders-0"),
        ("topic replicas adding\norders 1,2,3 3", {4}, {}, "the ISR isn't whole, or replicas move: orders-0"),
        (WHOLE, {1}, {"brokers": "1:az1 2:az2 3:az3 4:az1 5:az2!"}, "brokers are down: 5"),
        (WHOLE, {101, 102}, {}, "the controllers would lose their majority"),
        (
            WHOLE,
            {3, 101},
            {"quorum": "101:az1:0"},
            "the controllers lose their majority while one restarts, so each stops alone: 101",
        ),
        (
            WHOLE,
            {101, 102},
            {"quorum": "101:az1:0 102:az2:0"},
            "the controllers lose their majority while one restarts, so each stops alone: 101, 102",
        ),
        (WHOLE, {1}, {"quorum": "101:az1:0 102:az2:0 103:az3:-"}, "controllers are down or have not caught up: 103"),
        (WHOLE, {1}, {"unreadable": {"/topics/0/configs": "X"}}, "could not be read: /topics/0/configs"),
        (WHOLE, {1}, {"unreadable": {"/cluster/reassignments": "X"}}, "could not be read: /cluster/reassignments"),
    ],
)
def test_else_it_waits_and_says_why(table, wave, parts, reason):
    assert reason in verdict(table, wave, **parts).reasons


@pytest.mark.parametrize(
    "parts, reason",
    [
        ({"unreadable": {"/cluster/hidden_partitions": "X"}}, "could not be read: /cluster/hidden_partitions"),
        ({"unreadable": {"/cluster/consistent": "X"}}, "could not be read: /cluster/consistent"),
        ({"unreadable": {"/cluster": "X"}}, "could not be read: /cluster"),
        ({"cluster_hidden_partitions": 3}, "could not be read: /cluster/hidden_partitions"),
        ({"cluster_consistent": False}, "could not be read: /cluster/consistent"),
        (
            {"configs": {"orders": {"min.insync.replicas": "two"}}},
            "could not be read: /topics/0/configs/min.insync.replicas",
        ),
        (
            {"each_broker": {3: {"config_sources": {"retention.ms": "default"}}}},
            "could not be read: /brokers/2/configs/min.insync.replicas",
        ),
        ({"brokers": "1:az1 2:az2 4:az1"}, "replicas are on brokers that are not listed: 3"),
        ({"quorum": "101:az1:0 102:az2:0 103:az3:60000"}, "controllers are down or have not caught up: 103"),
        ({"configs": {"orders": {"min.insync.replicas": "+3"}}}, None),
    ],
)
def test_what_hides_partitions_or_states_no_minimum_makes_it_wait(parts, reason):
    found = verdict(WHOLE, {1}, **parts)
    assert reason in found.reasons if reason else (found.go and found.unavoidable == 1)


def test_a_topic_without_partitions_was_not_read():
    made = document(WHOLE, brokers=BROKERS)
    made["topics"][1]["partitions"] = []
    assert check(made, {1}).reasons == ("could not be read: /topics/1/partitions",)


@pytest.mark.parametrize(
    "path",
    ["/cluster/quorum/voters/0/rack", "/brokers/0/rack", "/brokers/0/kafka_version", "/topics/0/configs/retention.ms"],
)
def test_a_fact_that_decides_nothing_may_be_missing(path):
    assert verdict(WHOLE, {1}, unreadable={path: "X"}).go


def test_the_value_that_controllers_recorded_may_apply():
    recorded = [{"id": 101, "configs": {"min.insync.replicas": "2"}}]
    assert not verdict("topic replicas\norders 1,2,3", {1, 2}, cluster_controllers=recorded).go


def test_a_margin_that_cannot_be_kept_lifts_no_limit():
    found = verdict("topic replicas min\norders 1,2,3 2", {1}, margin=1)
    assert (found.go, found.unavoidable, found.below_margin) == (True, 0, 1)
    assert not verdict("topic replicas min\norders 1,2,3 2", {1, 2}, margin=1).go


def test_a_minimum_that_only_one_broker_has_may_apply():
    table = "topic replicas\norders 1,2,3"
    each = {3: {"configs": {"min.insync.replicas": "2"}}}
    assert verdict(table, {1}, each_broker=each).go
    assert not verdict(table, {1, 2}, each_broker=each).go
    assert verdict(table, {1, 2}).go


def test_partitions_that_can_spare_none_are_counted_and_bind_nothing():
    found = verdict("topic replicas min\nscratch 1 1\ntight 1,2 2\nother 3 1", {1})
    assert found.go and found.unavoidable == 2


def test_a_margin_keeps_replicas_above_the_minimum():
    assert verdict("topic replicas min\norders 1,2,3,4 2", {1, 2}).go
    assert not verdict("topic replicas min\norders 1,2,3,4 2", {1, 2}, margin=1).go


def test_many_names_are_cut():
    table = "topic replicas isr\n" + "\n".join(f"t{n} 1,2 1" for n in range(9))
    assert "t4-0 and 4 more" in verdict(table, {3}).reasons[0]


def test_a_plan_of_other_nodes_is_made_again():
    made = document(WHOLE, brokers=BROKERS)
    assert check(made, {1}, planned={1, 2, 3, 4, 101, 102, 103}).go
    for planned in ({1, 2, 3, 101, 102, 103}, {1, 2, 3, 4, 5, 101, 102, 103}):
        assert check(made, {1}, planned=planned).reasons == (
            "the plan is of other nodes than the cluster has: plan again",
        )
