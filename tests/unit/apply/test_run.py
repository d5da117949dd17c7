"""Applies a plan to a cluster in memory: killed at every call, and beside others who change things."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from durability.apply import record, recorded
from durability.apply.cluster import Replicas, Resource, ResourceType
from durability.apply.record import Approval, Changes
from durability.apply.run import apply, restore
from durability.errors import Refused, Unreachable
from durability.remedies.change.model import MIN_ISR, UNCLEAN, Move, Step
from tests.support.apply_run import (
    A0,
    B0,
    FINAL,
    LIST,
    MADE,
    QUICK,
    RATE,
    A,
    C,
    applied,
    changes,
    cluster,
    in_order,
    is_final,
    killed,
    made,
    placed,
    plan,
    steps,
    throttled,
)
from tests.support.fake_cluster import Life, MemoryLake, Mortal


def test_a_plan_is_applied_throttled_and_its_record_is_complete():
    kafka, lake, lines = cluster(), MemoryLake(), []
    seen = {}
    kafka.before_call = lambda number, name: seen.update(throttled(kafka))
    approval = Approval("ann", record.datetime(2026, 1, 2, tzinfo=record.UTC), "go")
    outcome = apply(plan(), kafka, Changes(lake, "eu", "remediate", "p", "r", approval), QUICK, lines.append)
    assert outcome.done == [step.id for step in steps()] and (outcome.stopped, outcome.left) == (None, [])
    assert is_final(kafka) and sorted(made(kafka)) == sorted(MADE)
    assert seen[Resource(ResourceType.TOPIC, "b")][LIST] == "0:4"
    assert {resource.name for resource in seen} == {"a", "b", "1", "2", "3", "4", "5"}
    assert seen[Resource(ResourceType.BROKER, "5")] == {RATE: "500"}
    states = lake.states()
    assert {states.pop("throttle:2-reassign"), states.pop("throttle:3-reassign")} == {"undone"}
    assert states == {step.id: "done" for step in steps()}
    assert {(row["approved_by"], row["comment"]) for row in lake.rows} == {("ann", "go")}
    assert "3-reassign: 0 of 2 partitions, 80 bytes to copy" in lines
    assert recorded.unfinished(lake) == [] and restore(kafka, changes(lake)) == []


def test_a_move_away_from_brokers_in_any_order_is_the_plan_s_own():
    """Kafka states the replicas that it removes sorted by id."""
    step = Step("1-reassign", "reassign", "", moves=(Move("b", 0, (1, 3, 2), (5, 1, 4)),))
    kafka = cluster(copied=10)
    kafka.partitions[B0] = Replicas((1, 3, 2), (1, 3, 2), 1, elr=())
    outcome = applied(kafka, MemoryLake(), plan(step))
    assert (outcome.stopped, outcome.why, outcome.done) == (None, None, ["1-reassign"])
    assert kafka.partitions[B0].replicas == (5, 1, 4)


def kill_points() -> int:
    life = Life()
    kafka, lake = cluster(), MemoryLake()
    apply(plan(), Mortal(kafka, life), changes(Mortal(lake, life)), QUICK, lambda line: None)
    return life.calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("lag", [0, 1], ids=["at once", "shown late"])
def test_a_run_killed_at_any_call_is_finished_by_the_next_and_no_step_is_made_twice(after, lag):
    points = kill_points()
    assert points > 90
    for point in range(points + (10 if lag else 0)):
        kafka, lake = in_order(cluster(lag=lag)), MemoryLake()
        killed(kafka, lake, Life(point, after))
        outcome = applied(kafka, lake)
        assert outcome.stopped is None and is_final(kafka), point
        assert sorted(made(kafka)) == sorted(MADE), point
        assert recorded.unfinished(lake) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_killed_at_any_call_is_taken_back_and_can_be_applied_again(after):
    old, new = {name: now.replicas for name, now in cluster().partitions.items()}, FINAL
    for point in range(kill_points()):
        kafka, lake = in_order(cluster()), MemoryLake()
        assert killed(kafka, lake, Life(point, after)), point
        assert restore(kafka, changes(lake)) == [], point
        assert not throttled(kafka) and not any(now.moving for now in kafka.partitions.values()), point
        assert all(placed(kafka)[name] in (old[name], new[name]) for name in old), point
        assert kafka.settings[A] == {MIN_ISR: "3"}, point
        assert kafka.settings[C].get(UNCLEAN) in ("true", None)
        assert recorded.unfinished(lake) == [] and restore(kafka, changes(lake)) == []
        assert applied(kafka, lake).stopped is None and is_final(kafka), point


def first_move() -> int:
    """The first call after which a killed run leaves a move in flight."""
    for point in range(kill_points()):
        kafka = cluster(copied=5)
        if killed(kafka, MemoryLake(), Life(point, after=True)) and kafka.partitions[A0].moving:
            return point
    raise AssertionError("no call starts a move")


def test_a_restore_killed_at_any_call_is_finished_by_the_next_or_by_the_plan():
    ended, moving = False, first_move()
    for point in range(120):
        after, then_apply = point % 2 == 0, point % 4 < 2
        kafka, lake = in_order(cluster(copied=5)), MemoryLake()
        assert killed(kafka, lake, Life(moving, after=True)) and kafka.partitions[A0].moving
        ended = not killed(kafka, lake, Life(point // 2, after), back=True)
        if not then_apply:
            assert restore(kafka, changes(lake)) == [] and not throttled(kafka), point
            assert kafka.settings[A] == {MIN_ISR: "3"} and placed(kafka)[A0] == (1, 2), point
        assert applied(kafka, lake).stopped is None and is_final(kafka), point
    assert ended


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_cancelled_move_counts_as_taken_back_once_brokers_show_it(lag):
    kafka, lake = in_order(cluster(copied=5, lag=lag)), MemoryLake()
    outcome = applied(kafka, lake, options=replace(QUICK, batch_seconds=0))
    assert (outcome.stopped, outcome.left) == ("2-reassign", []) and placed(kafka)[A0] == (1, 2)
    assert lake.states()["2-reassign"] == "undone" and not throttled(kafka)


def test_runs_and_restores_killed_again_and_again_end_as_planned():
    for seed in range(80):
        chance = random.Random(seed)
        kafka, lake = in_order(cluster(lag=chance.choice((0, 0, 1, 3)))), MemoryLake()
        for _ in range(chance.randint(2, 6)):
            killed(kafka, lake, Life(chance.randint(0, 70), chance.random() < 0.5), back=chance.random() < 0.4)
        if chance.random() < 0.5:
            left = restore(kafka, changes(lake))
            kafka.settle()  # what a broker shows late, the next restore sees
            assert not left or (kafka.lag and restore(kafka, changes(lake)) == []), seed
            assert not throttled(kafka) and kafka.settings[A] == {MIN_ISR: "3"}, seed
        assert applied(kafka, lake).stopped is None and is_final(kafka), seed
        assert set(made(kafka)) >= set(MADE) and recorded.unfinished(lake) == [], seed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_cluster_or_lake_that_does_not_answer_ends_a_run_and_another_one_finishes_it(after):
    ended, points = 0, kill_points()
    for point in range(points):
        kafka, lake = in_order(cluster()), MemoryLake()
        try:
            killed(kafka, lake, Life(point, after, Unreachable("gone")))
        except Unreachable:
            ended += 1
        outcome = applied(kafka, lake)
        assert outcome.stopped is None and is_final(kafka) and sorted(made(kafka)) == sorted(MADE), point
    assert ended > 0.8 * points  # a run goes on if a broker doesn't answer when its throttle is put back


def test_what_fails_and_what_others_change_at_any_time_leaves_nothing_behind():
    """Brokers are lost, others set throttles and min.insync.replicas, moves stall, the quorum is lost, and runs are killed."""
    for seed in range(120):
        chance, kafka, lake, theirs = random.Random(seed), cluster(), MemoryLake(), {}
        for _ in range(chance.randint(1, 4)):
            kafka.before_call = partial(_trouble, kafka, chance, theirs)
            with suppress(Refused, Unreachable):
                killed(kafka, lake, Life(chance.choice((None, chance.randint(0, 110))), True), chance.random() < 0.3)
            if chance.random() < 0.5:
                _recover(kafka)
        _recover(kafka)
        left = restore(kafka, changes(lake))
        assert not [text for text in left if "next restore" in text] and recorded.unfinished(lake) == [], seed
        kept = {
            (resource, name): value for resource, values in throttled(kafka).items() for name, value in values.items()
        }
        own = theirs.pop((A, MIN_ISR), "3")
        assert kept == theirs and kafka.settings[A][MIN_ISR] == own, seed
        for name, now in kafka.partitions.items():
            assert now.replicas in (cluster().partitions[name].replicas, FINAL[name]) and not now.moving, seed
        if not theirs and own == "3":
            assert applied(kafka, lake).stopped is None and is_final(kafka), seed


def _trouble(kafka, chance, theirs, number, name):
    """Something happens at one of fifty calls, but not between a reading and the change that follows it."""
    if name in ("change", "reassign") or chance.random() > 0.02:
        return
    broker, what = (
        chance.randint(1, 6),
        chance.choice(("lost", "lost", "rate", "list", "min isr", "stall", "quorum", "refuses")),
    )
    found = {
        "rate": (Resource(ResourceType.BROKER, str(broker)), RATE, "999"),
        "list": (Resource(ResourceType.TOPIC, "b"), LIST, "*"),
        "min isr": (A, MIN_ISR, "1"),
    }.get(what)
    if found is not None:
        resource, setting, value = found
        kafka.settings.setdefault(resource, {})[setting] = theirs[resource, setting] = value
    elif what == "lost" and len(kafka.live) > 4:
        kafka.lose(broker)
    elif what == "refuses":
        kafka.refuses = {"change": {Resource(ResourceType.BROKER, str(broker)): "E"}, "reassign": {B0: "E"}}
    elif what != "lost":
        vars(kafka).update({"copied": 0} if what == "stall" else {"led": False})


def _recover(kafka):
    vars(kafka).update(
        led=True, live=frozenset(range(1, 7)), copied=60, refuses={}, before_call=lambda number, name: None
    )
    for name, now in kafka.partitions.items():
        isr = tuple(broker for broker in now.replicas if broker not in now.adding or broker in now.isr)
        kafka.partitions[name] = replace(now, isr=isr, leader=now.leader or isr[0])
    for _ in range(3):
        kafka.read([])


def test_a_killed_run_that_nobody_repeats_is_found_once_its_claim_is_over(monkeypatch):
    kafka, lake = cluster(), MemoryLake()
    assert killed(kafka, lake, Life(40))
    assert recorded.unfinished(lake) == []
    with pytest.raises(Unreachable, match="run r changes it now, by plan p"):
        restore(kafka, changes(lake, "upkeep"))
    monkeypatch.setattr(record, "LEASE", record.timedelta(0))
    assert recorded.unfinished(lake, "eu") == [recorded.Unfinished("eu", "remediate", "p")]
    assert recorded.unfinished(lake, "us") == []
    monkeypatch.setattr(record, "LEASE", record.timedelta(minutes=15))
    lake.rows = [row | {"captured_at": row["captured_at"] - record.timedelta(minutes=16)} for row in lake.rows]
    assert restore(kafka, changes(lake, "upkeep")) == [] and not throttled(kafka)
