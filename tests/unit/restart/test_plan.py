"""Restart plans, against every assignment of a few brokers to waves."""

import random
from itertools import product
from types import SimpleNamespace

import pytest

from durability.report import restart
from durability.restart.constraints import Partitions
from durability.restart.nodes import Node
from durability.restart.plan import Limits, Unread, plan
from tests.support.schemas import problems

RACKS = ("az1", "az2", "az3")
SNAPSHOT = SimpleNamespace(cluster="c", snapshot_id="s", captured_at="2026-11-21T02:00:00Z")


def cluster(brokers, racks=3, voters=()):
    return [
        Node(b, RACKS[b % racks] if racks else None, True, True, voter=b in voters, leads=b in voters[:1])
        for b in range(1, brokers + 1)
    ]


def same(replicas, minimum, isr=None, count=1, topic="t"):
    return Partitions(frozenset(replicas), frozenset(replicas if isr is None else isr), minimum, count, (topic, 0))


def valid(waves, partitions, margin=0):
    """Does each wave leave every partition its minimum, where it has anything to spare?"""
    for p in partitions:
        capacity = len(p.replicas) - p.minimum - margin
        if capacity >= 1 and any(len(p.replicas & set(wave)) > capacity for wave in waves):
            return False
    return True


def fewest(brokers, partitions, voters, most):
    ids = range(1, brokers + 1)
    for number in range(1, brokers + 1):
        for places in product(range(number), repeat=brokers):
            waves = [{b for b, place in zip(ids, places, strict=True) if place == n} for n in range(number)]
            sized = all(len(wave) <= (most or brokers) and len(wave & set(voters)) <= 1 for wave in waves)
            if sized and valid(waves, partitions):
                return number
    raise AssertionError


@pytest.mark.parametrize("drawn", range(30))
def test_waves_are_valid_and_the_fewest(drawn):
    draw = random.Random(drawn)
    brokers = draw.randint(3, 6)
    ids = range(1, brokers + 1)
    partitions = []
    for n in range(draw.randint(1, 8)):
        replicas = draw.sample(ids, draw.randint(1, min(4, brokers)))
        partitions.append(same(replicas, draw.randint(1, 3), topic=f"t{n}"))
    voters = draw.choice([(), (1, 2, 3)])
    most = draw.choice([None, None, 2])
    made = plan(partitions, cluster(brokers, draw.choice([0, 2, 3]), voters), Limits(most=most))
    assert sorted(b for wave in made.waves for b in wave) == list(ids)
    assert valid(made.waves, partitions)
    assert len(made.waves) == fewest(brokers, partitions, voters, most)
    assert made.bound.waves <= len(made.waves)
    if voters:
        assert 1 in made.waves[-1]


def test_a_wave_per_rack_is_proven_where_replicas_are_in_racks_of_their_own():
    draw = random.Random(1)
    by_rack = [[b for b in range(1, 61) if b % 3 == r] for r in range(3)]
    partitions = [same([draw.choice(rack) for rack in by_rack], 2, topic=f"t{n}") for n in range(5_000)]
    made = plan(partitions, cluster(60), Limits())
    assert (len(made.waves), made.bound.waves, made.bound.why, made.proven) == (3, 3, "capacity", True)
    assert made.by_rack == () and made.unavoidable == ()


@pytest.mark.parametrize(
    ("limits", "voters", "valid", "why"),
    [
        (Limits(), (1, 2, 3), True, {}),
        (Limits(), (1, 4, 2), False, {"too_many_voters": ["az2"]}),
        # Three voters keep their majority without one of them, whatever the limit.
        (Limits(voters=2), (1, 4, 2), False, {"too_many_voters": ["az2"]}),
        (Limits(voters=2), (1, 4, 2, 3, 5), True, {}),
        # A quorum of two loses its majority while one of them restarts: nothing else stops then.
        (Limits(), (1, 4), False, {"too_many_voters": ["az2"], "too_many_nodes": ["az2"]}),
        (Limits(), (3,), False, {"too_many_nodes": ["az1"]}),
        (Limits(most=1), (), False, {"too_many_nodes": ["az1", "az2", "az3"]}),
    ],
)
def test_a_wave_per_rack_obeys_the_limits_of_waves(limits, voters, valid, why):
    made = plan([same((1, 2, 3), 2), same((4, 5, 6), 2)], cluster(6, voters=voters), limits)
    found = restart.document(SNAPSHOT, made, limits)
    assert problems("restart", found) == []
    nothing = {"partitions": 0, "without_rack": [], "too_many_voters": [], "too_many_nodes": []}
    assert found["by_rack"] == {"valid": valid, **nothing, **why}
    said = "\n".join(restart.summary(found, {}))
    assert ("A wave per rack would stop more" in said) is not valid
    for what, racks in why.items():
        noun = "voters of the controller quorum" if what == "too_many_voters" else "nodes"
        assert f"A wave per rack would stop more {noun} at once than a wave may: {', '.join(racks)}." in said


@pytest.mark.parametrize("voters", [(9,), (8, 9), (1,), (1, 9)])
def test_voters_of_a_quorum_of_one_or_two_restart_alone(voters):
    nodes = [
        Node(id, "az1", True, broker=id < 8, voter=id in voters, leads=id == voters[0])
        for id in sorted({1, 2, 3, *voters})
    ]
    made = plan([same((1, 2, 3), 1)], nodes, Limits())
    assert {(voter,) for voter in voters} < set(made.waves) and made.waves[-1] == voters[:1]
    others = {1, 2, 3} - {*voters}
    assert made.proven and len(made.waves) == len(voters) + (2 if len(others) == 3 else 1)
    assert made.valid_by_rack is False


def test_if_every_pair_shares_a_partition_one_at_a_time_is_the_proven_optimum():
    pairs = [(a, b) for a in range(1, 13) for b in range(a + 1, 13)]
    partitions = [same([a, b, next(c for c in range(1, 13) if c not in (a, b))], 2) for a, b in pairs]
    made = plan(partitions, cluster(12, racks=0), Limits())
    assert made.proven and len(made.waves) == 12 and made.bound.why == "clique"


def test_partitions_without_capacity_bind_nothing_and_are_named():
    partitions = [same([1], 1, topic="scratch"), same([1, 2], 2, topic="tight"), same([1, 2, 3], None, topic="unknown")]
    made = plan(partitions, cluster(3), Limits())
    assert {p.example[0]: why for p, why in made.unavoidable} == {
        "scratch": "offline",
        "tight": "rejects",
        "unknown": "unknown",
    }
    assert len(made.waves) == 3, "of a partition whose minimum is unknown one replica stops at a time"
    margin = plan([same([1, 2, 3], 2, topic="usual")], cluster(3), Limits(margin=1))
    assert [why for _, why in margin.unavoidable] == ["margin"]
    # It can't be kept, but acks=all writes stay accepted.
    assert len(margin.waves) == 3


def test_the_partitions_that_cost_waves_are_named():
    good = [same([1, 2, 3], 2), same([4, 5, 6], 2)]
    bad = same([1, 4, 5], 2, count=7, topic="bad")
    made = plan([*good, bad], cluster(6), Limits())
    assert made.by_rack == ((frozenset({1, 4, 5}), 7, ("bad", 0)),)
    assert made.costly == (((1, 4), 7, ("bad", 0)),)


def test_a_node_whose_state_is_unknown_makes_no_plan_valid():
    nodes = [Node(1, "az1", True, True), Node(2, "az2", None, True), Node(3, "az3", True, True)]
    made = plan([same([1, 2, 3], 2)], nodes, Limits())
    assert (made.valid, made.proven, made.whole, made.unsure, made.down) == (None, False, False, (2,), ())
    found = restart.document(SNAPSHOT, made, Limits())
    assert found["before"]["unknown"] == found["unknown"]["nodes"] == [2] and found["by_rack"]["valid"] is None
    assert problems("restart", found) == []
    said = "\n".join(restart.summary(found, {}))
    assert "First find out whether these are up: 2." in said and "no plan has fewer" not in said


@pytest.mark.parametrize(
    "unread, said",
    [
        (Unread(topics=2), "Not planned for: 2 topics whose partitions could not be read."),
        (Unread(hidden_partitions=None), "Not planned for: topics that the auditor may not see."),
        (Unread(hidden_partitions=3), "Not planned for: 3 hidden partitions."),
        (Unread(quorum=True), "Unknown: which nodes vote in the controller quorum."),
    ],
)
def test_what_could_not_be_read_makes_no_plan_valid(unread, said):
    made = plan([same([1, 2, 3], 2)], cluster(3), Limits(), unread)
    assert (made.valid, made.proven) == (None, False)
    assert said in restart.summary(restart.document(SNAPSHOT, made, Limits()), {})
    assert plan([same([1, 2, 3], 2)], cluster(3), Limits()).valid is True


def test_what_is_assumed_of_an_unknown_minimum_is_no_bound():
    made = plan([same([1, 2, 3], None)], cluster(3), Limits())
    assert (len(made.waves), made.bound.waves, made.valid, made.proven) == (3, 1, None, False)


def test_what_is_down_or_lags_must_come_back_first():
    nodes = [Node(1, "az1", True, True), Node(2, "az2", False, True), Node(3, "az3", True, True)]
    made = plan([same([1, 2, 3], 2, isr=[1, 3], count=4)], nodes, Limits())
    assert (made.whole, made.down, made.lagging) == (False, (2,), 4)
    assert len(made.waves) == 3
