"""Applies a plan to a cluster in memory: killed at every call, stopped for each reason, and beside others who change things."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from durability.apply import preflight, record, recorded, settings, take_back, throttles, watch
from durability.apply.cluster import Replicas, Resource, ResourceType, TopicPartition
from durability.apply.plan_files import PlanFiles
from durability.apply.record import Approval, Changes
from durability.apply.run import Options, apply, restore
from durability.errors import Refused, Unreachable
from durability.remedies.change import draft
from durability.remedies.change.model import MIN_ISR, UNCLEAN, Move, Setting, Step
from tests.support.fake_cluster import FakeCluster, Killed, Life, MemoryLake, Mortal
from tests.support.topology import document
from tests.unit.remedies.test_change import inputs

A0, A1, B0, C0 = (TopicPartition(*name) for name in (("a", 0), ("a", 1), ("b", 0), ("c", 0)))
A, C, EVERYWHERE = (
    Resource(ResourceType.TOPIC, "a"),
    Resource(ResourceType.TOPIC, "c"),
    Resource(ResourceType.BROKER, ""),
)
QUICK = Options(throttle=500, stall_seconds=0, batch_seconds=60, poll_seconds=0)
"""Without progress between two readings, it stalls."""
RATE, LIST = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"
FINAL = {A0: (1, 2, 4), A1: (2, 3, 5), B0: (4, 2, 3), C0: (1, 2, 3)}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    for module in (preflight, settings, take_back, throttles):
        monkeypatch.setattr(module, "PAUSE", 0)


def steps() -> tuple[Step, ...]:
    """Topic a gets a third replica in two batches, with its min.insync.replicas lowered meanwhile. b moves."""
    made = [
        Step("1-lower-min-isr", "lower-min-isr", "", settings=(Setting("a", MIN_ISR, "3", "2"),)),
        Step("2-reassign", "reassign", "", moves=(Move("a", 0, (1, 2), (1, 2, 4)),)),
        Step("3-reassign", "reassign", "", moves=(Move("a", 1, (2, 3), (2, 3, 5)), Move("b", 0, (1, 2, 3), (4, 2, 3)))),
        Step("4-raise-min-isr", "raise-min-isr", "", settings=(Setting("a", MIN_ISR, "2", "3"),)),
        Step(
            "5-set-config",
            "set-config",
            "",
            settings=(Setting(None, UNCLEAN, None, "false"), Setting("c", UNCLEAN, "true", None)),
        ),
        Step("6-elect-leaders", "elect-leaders", "", elections=(("b", 0),)),
    ]
    return tuple(replace(step, after=(made[n - 1].id,) if n else ()) for n, step in enumerate(made))


def plan(*changed: Step, **other) -> PlanFiles:
    before = {("a", MIN_ISR): "3", (None, UNCLEAN): None, ("c", UNCLEAN): "true"}
    made = PlanFiles("p", "eu", "kafka", changed or steps(), before, inherited=1)
    return replace(made, **other)


def cluster(**other) -> FakeCluster:
    placed = {A0: (1, 2), A1: (2, 3), B0: (1, 2, 3), C0: (1, 2, 3)}
    partitions = {name: Replicas(replicas, replicas, replicas[0], elr=()) for name, replicas in placed.items()}
    own = {A: {MIN_ISR: "3"}, C: {UNCLEAN: "true", "retention.ms": "5"}}
    return FakeCluster(partitions, own, frozenset(range(1, 7)), **other)


def changes(lake, run_id="r") -> Changes:
    return Changes(lake, "eu", "remediate", "p", run_id, None)


def applied(kafka, lake, of=None, options=QUICK):
    options = replace(options, stall_seconds=9) if kafka.lag else options
    return apply(of or plan(), kafka, changes(lake), options, lambda line: None)


def throttled(kafka) -> dict:
    found = {r: {n: v for n, v in values.items() if "throttled" in n} for r, values in kafka.settings.items()}
    return {resource: values for resource, values in found.items() if values}


def placed(kafka) -> dict:
    return {name: now.replicas for name, now in kafka.partitions.items()}


def is_final(kafka) -> bool:
    own = kafka.settings
    values = own[A] == {MIN_ISR: "3"} and own[C] == {"retention.ms": "5"} and own[EVERYWHERE] == {UNCLEAN: "false"}
    return values and placed(kafka) == FINAL and kafka.partitions[B0].leader == 4 and not throttled(kafka)


MADE = [
    *("topic:a min.insync.replicas=2", "move a-0 [1, 2, 4]", "move a-1 [2, 3, 5]", "move b-0 [4, 2, 3]"),
    *("topic:a min.insync.replicas=3", "broker: unclean.leader.election.enable=false"),
    *("topic:c unclean.leader.election.enable=None",),
]
"""What an application of the plan changes, without throttles, each thing once. Kafka elects b-0's leader when 1 goes."""


def made(kafka) -> list[str]:
    return [text for text in kafka.made if "throttled" not in text]


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


def kill_points() -> int:
    life = Life()
    kafka, lake = cluster(), MemoryLake()
    apply(plan(), Mortal(kafka, life), changes(Mortal(lake, life)), QUICK, lambda line: None)
    return life.calls


def killed(kafka, lake, life: Life, back: bool = False) -> bool:
    """One try that may be killed. back: of `restore`."""
    of = Mortal(kafka, life)
    try:
        if back:
            restore(of, changes(Mortal(lake, life)))
        else:
            applied(of, Mortal(lake, life))
    except Killed:
        kafka.settle()  # a process takes longer to begin than a broker to learn of a change
        return True
    return False


def in_order(kafka):
    """Nothing that the plan does leaves a partition without acks=all."""
    kafka.before_call = lambda number, name: kafka.under_min_isr() == [] or pytest.fail(str(kafka.under_min_isr()))
    return kafka


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


# What stops it


def stopped(kafka, lake, of=None, options=QUICK):
    outcome = applied(kafka, lake, of, options)
    assert outcome.stopped is not None
    return outcome


def on(kafka, name: str, act, nth: int = 1):
    """Calls `act` before the nth call of this name."""
    count = []

    def before(number, called):
        count.extend([0] if called == name else [])
        if called == name and len(count) == nth:
            act()

    kafka.before_call = before
    return kafka


def test_a_cluster_that_differs_is_refused_with_all_differences_and_nothing_is_changed():
    kafka, lake = cluster(usable={4: 150, 5: None}, copied=0), MemoryLake()
    kafka.lose(6)
    kafka.partitions[A1] = Replicas((3, 2), (3, 2), 3)
    kafka.partitions[B0] = replace(kafka.partitions[B0], replicas=(1, 2, 3, 5), adding=(5,))
    kafka.partitions[TopicPartition("x\x1b", 7)] = Replicas((1, 2), (1,), 1, adding=(2,))
    del kafka.partitions[C0]
    kafka.settings[A] = {MIN_ISR: "1", LIST: "0:1"}
    kafka.settings[EVERYWHERE] = {"leader.replication.throttled.rate": "7"}
    kafka.settings[Resource(ResourceType.BROKER, "2")] = {RATE: "8"}
    kafka.settings[Resource(ResourceType.TOPIC, "x\x1b")] = {LIST: "*"}
    of = plan(*steps(), Step("7-reassign", "reassign", "", moves=(Move("x\x1b", 8, (1, 6), (1, 2)),)), inherited=None)
    with pytest.raises(Refused) as refused:
        applied(kafka, lake, of)
    said = str(refused.value).split("can't be applied: ")[1].split("; ")
    assert sorted(said) == [
        "a reassignment of b-0 is running that isn't this plan's: wait until it ends, or cancel it",
        "a reassignment of x?-7 is running that isn't this plan's: wait until it ends, or cancel it",
        "broker 2 has follower.replication.throttled.rate=8, which this plan didn't set",
        "broker 6 is down or fenced: bring it back, or make a new plan",
        "stale: a-1 has the replicas [3, 2], and the plan rests on [2, 3]. Make a new plan",
        "stale: b-0 has the replicas [1, 2, 3, 5] and is being reassigned, and the plan rests on [1, 2, 3]. Make a new plan",
        "stale: min.insync.replicas of topic a is 1, and the plan rests on 3. Make a new plan",
        "stale: unclean.leader.election.enable of topic c: the topic doesn't exist any more. Make a new plan",
        "stale: x?-8 doesn't exist any more. Make a new plan",
        "the disks of broker 4 have 150 usable bytes, and 200 bytes arrive there",
        "the min.insync.replicas of topic b is unknown: make a new plan",
        "the min.insync.replicas of topic x? is unknown: make a new plan",
        "the usable bytes of the disks of broker 5 are unknown, and 100 bytes arrive there",
        "the whole cluster has leader.replication.throttled.rate=7, which this plan didn't set",
        "topic a has follower.replication.throttled.replicas=0:1, which this plan didn't set",
        "topic x? has follower.replication.throttled.replicas=*, which this plan didn't set",
    ]
    assert made(kafka) == [] and lake.states() == {} and "\x1b" not in str(refused.value)
    with pytest.raises(
        Refused, match="this is another cluster: its Kafka cluster id is kafka, and the plan is for other"
    ):
        applied(cluster(), lake, plan(cluster_id="other"))
    with pytest.raises(Refused, match="no controller leads"):
        applied(cluster(led=False), lake)


def test_topics_that_the_plan_does_not_name_may_change():
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions |= {
        TopicPartition("b", 1): Replicas((4, 5), (4, 5), 4, ()),
        TopicPartition("y", 0): Replicas((6,), (), None),
    }
    kafka.settings[Resource(ResourceType.TOPIC, "y")] = {LIST: "*"}
    assert applied(kafka, lake).stopped is None


def test_a_topic_outside_the_plan_that_its_throttle_would_limit_refuses_it():
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions[TopicPartition("y", 0)] = Replicas((4, 6), (6,), 6)
    kafka.settings[Resource(ResourceType.TOPIC, "y")] = {LIST: "*"}
    with pytest.raises(
        Refused, match=r"topic y has follower.replication.throttled.replicas=\*, which this plan didn't"
    ):
        applied(kafka, lake)
    assert kafka.made == []


@pytest.mark.parametrize(
    ("least", "isr", "stops"),
    [("2", (5,), True), ("1", (5,), False), ("unknown", (5,), False), ("unknown", (), True)],
)
def test_a_topic_outside_the_plan_stops_it_when_it_loses_its_min_isr(monkeypatch, least, isr, stops):
    monkeypatch.setattr(watch, "POLLED_WITHIN", 0)
    kafka, lake, other = cluster(), MemoryLake(), TopicPartition("y", 0)
    kafka.partitions[other] = Replicas((5, 6), (5, 6), 5)
    kafka.settings[Resource(ResourceType.TOPIC, "y")] = {MIN_ISR: least}
    lost = Replicas((5, 6), isr, 5 if isr else None)
    on(kafka, "sizes", lambda: kafka.partitions.update({other: lost}), nth=3)
    outcome = applied(kafka, lake)
    assert outcome.why == ("y-0 is offline or under its min.insync.replicas" if stops else None)
    assert outcome.stopped == ("2-reassign" if stops else None) and not throttled(kafka)


@pytest.mark.parametrize(
    "others, why",
    [
        (
            {"written": 10},
            "the partitions grew by 10 bytes meanwhile. The throttle of 500 bytes per second is below the rate",
        ),
        ({"usable": {4: 5}}, "the disks of broker 4 are full, with 5 usable bytes"),
        ({}, "see the brokers' logs about a-0"),
    ],
)
def test_moves_that_stall_are_stopped_and_taken_back(others, why):
    kafka, lake = cluster(), MemoryLake()
    on(kafka, "reassign", lambda: vars(kafka).update({"copied": 0, **others}))
    outcome = stopped(kafka, lake)
    assert (outcome.done, outcome.stopped, outcome.left) == ([], "2-reassign", [])
    assert "no progress for 0 s" in outcome.why and why in outcome.why
    assert made(kafka) == [*MADE[:2], "cancel a-0", MADE[4]] and not throttled(kafka)
    assert placed(kafka)[A0] == (1, 2) and kafka.settings[A] == {MIN_ISR: "3"}
    vars(kafka).update({"copied": 60, "written": 0, "usable": {}})
    assert restore(kafka, changes(lake)) == []
    assert applied(kafka, lake).stopped is None and is_final(kafka)


def test_a_batch_has_a_longest_time():
    kafka, lake = cluster(copied=1), MemoryLake()
    outcome = stopped(kafka, lake, options=replace(QUICK, batch_seconds=0))
    assert outcome.why == "the batch isn't complete after 0 s, the longest time for one" and not throttled(kafka)


def test_a_partition_that_falls_under_its_min_isr_stops_it_and_earlier_batches_stay():
    kafka, lake = cluster(copied=20), MemoryLake()
    kafka.settings[C] |= {MIN_ISR: "3"}
    on(kafka, "reassign", lambda: kafka.lose(1), nth=3)
    outcome = stopped(kafka, lake)
    assert outcome.stopped == "3-reassign" and outcome.why == "c-0 is offline or under its min.insync.replicas"
    assert placed(kafka)[A0] == FINAL[A0] and placed(kafka)[A1] == (2, 3) and placed(kafka)[B0] == (1, 2, 3)
    assert outcome.left == [
        "min.insync.replicas of topic a stays 2: a-0 has replicas 1 out of sync. The next restore looks again",
        "broker 1 is down: its throttle stays until the next restore",
    ]
    assert [open.plan for open in recorded.unfinished(lake)] == ["p"]
    kafka.live |= {1}
    for name, now in kafka.partitions.items():
        kafka.partitions[name] = replace(now, isr=now.replicas)
    assert restore(kafka, changes(lake)) == [] and not throttled(kafka) and recorded.unfinished(lake) == []
    assert kafka.settings[A] == {MIN_ISR: "3"}


def test_a_lost_target_broker_stops_it():
    kafka, lake = cluster(), MemoryLake()
    on(kafka, "sizes", lambda: kafka.lose(4), nth=3)
    outcome = stopped(kafka, lake)
    assert (outcome.stopped, outcome.why) == ("2-reassign", "broker 4 is down") and placed(kafka)[A0] == (1, 2)
    assert outcome.left == ["broker 4 is down: its throttle stays until the next restore"]
    assert restore(kafka, changes(lake)) == outcome.left
    with pytest.raises(Refused, match="broker 4 is down or fenced"):
        applied(kafka, lake)
    kafka.live |= {4}
    rates = set()
    on(kafka, "sizes", lambda: rates.update(v for values in throttled(kafka).values() for v in values.values()), nth=3)
    assert applied(kafka, lake, options=replace(QUICK, throttle=900)).stopped is None
    assert is_final(kafka) and recorded.unfinished(lake) == [] and "900" in rates and "500" not in rates


def test_without_a_quorum_nothing_is_taken_back_until_it_leads_again():
    kafka, lake = cluster(copied=5), MemoryLake()
    on(kafka, "sizes", lambda: vars(kafka).update(led=False), nth=3)
    with pytest.raises(Unreachable, match=r"step 2-reassign stopped: no controller leads.*isn't taken back yet"):
        applied(kafka, lake)
    with pytest.raises(Unreachable, match="no controller leads"):
        restore(kafka, changes(lake))
    assert throttled(kafka)
    kafka.led = True
    assert restore(kafka, changes(lake)) == [] and not throttled(kafka) and placed(kafka)[A0] == (1, 2)


def test_a_move_whose_cancellation_would_leave_too_few_in_sync_goes_on_until_a_later_restore():
    kafka, lake = cluster(copied=0), MemoryLake()
    lost = Replicas((1, 2, 4), (1, 4), 1, (), adding=(4,))
    on(kafka, "usable_bytes", lambda: kafka.partitions.update({A0: lost}), nth=3)
    outcome = stopped(kafka, lake)
    assert outcome.left == [
        "a-0 is still moved: without the replicas that are added, fewer would be in sync than acks=all requires. The next"
        " restore looks again",
        "min.insync.replicas of topic a stays 2: a-0 has replicas 2 out of sync. The next restore looks again",
    ]
    assert not throttled(kafka) and [open.plan for open in recorded.unfinished(lake)] == ["p"]
    kafka.partitions[A0] = replace(lost, isr=(1, 2, 4))
    assert (
        restore(kafka, changes(lake)) == [] and placed(kafka)[A0] == (1, 2, 4) and lake.states()["2-reassign"] == "done"
    )


def test_what_others_change_meanwhile_is_left_and_told():
    kafka, lake = cluster(copied=20), MemoryLake()
    broker, theirs = Resource(ResourceType.BROKER, "4"), TopicPartition("c", 0)
    on(kafka, "sizes", lambda: kafka.settings.update({broker: {RATE: "999"}}), nth=3)
    outcome = stopped(kafka, lake)
    told = "follower.replication.throttled.rate of broker 4 was set to 999 by others, and is left"
    assert outcome.left == [told] and outcome.stopped == "3-reassign"
    assert outcome.why == f"broker 4 has {RATE}=999, which this plan didn't set"
    assert throttled(kafka) == {broker: {RATE: "999"}} and lake.states()["throttle:2-reassign"] == "left"
    assert restore(kafka, changes(lake)) == [] and recorded.unfinished(lake) == []
    del kafka.settings[broker]
    on(kafka, "sizes", lambda: kafka.partitions.update({theirs: Replicas((1, 2, 3, 9), (1, 2, 3), 1, (), (9,))}), nth=2)
    outcome = stopped(kafka, lake)
    assert "a reassignment of c-0 is running that isn't this plan's" in outcome.why and kafka.partitions[theirs].moving
    kafka, lake = cluster(copied=20), MemoryLake()
    on(kafka, "sizes", lambda: kafka.partitions.update({A1: Replicas((2, 6), (2, 6), 2, ())}), nth=9)
    outcome = stopped(kafka, lake)
    assert outcome.why == "others moved or deleted a-1" and placed(kafka)[A1] == (2, 6)
    assert outcome.left == ["a-1 was moved by others, and is left"] and not throttled(kafka)


def test_a_throttle_of_others_with_the_same_value_is_left_once_ours_is_put_back():
    kafka, lake = cluster(), MemoryLake()
    broker = Resource(ResourceType.BROKER, "4")
    theirs = {broker: {RATE: "500"}}

    def others(number, name):
        if lake.states().get("throttle:2-reassign") == "undone":
            kafka.settings[broker] = dict(theirs[broker])
            kafka.before_call = lambda number, name: None

    kafka.before_call = others
    outcome = stopped(kafka, lake)
    assert outcome.stopped == "3-reassign" and outcome.why == f"broker 4 has {RATE}=500, which this plan didn't set"
    assert restore(kafka, changes(lake)) == [] and throttled(kafka) == theirs


def test_a_throttle_that_is_not_shown_yet_is_deleted():
    left_by_kill = set()
    only = plan(Step("1-reassign", "reassign", "", moves=(Move("b", 0, (1, 2, 3), (4, 2, 3)),)))
    for point in range(30):
        kafka, lake, life = cluster(lag=2), MemoryLake(), Life(point, after=True)
        with suppress(Killed):
            apply(only, Mortal(kafka, life), changes(Mortal(lake, life)), QUICK, lambda line: None)
        left_by_kill.add(bool(throttled(kafka)))
        assert restore(kafka, changes(lake)) == [] and not throttled(kafka), point
    assert left_by_kill == {False, True}


def test_a_broker_that_does_not_answer_keeps_only_its_own_throttle():
    kafka, lake = cluster(copied=5), MemoryLake()
    assert killed(kafka, lake, Life(48)) and len(throttled(kafka)) == 4
    kafka.silent = frozenset({1})
    assert restore(kafka, changes(lake)) == ["broker 1 doesn't answer: its throttle stays until the next restore"]
    assert throttled(kafka).keys() == {Resource(ResourceType.BROKER, "1")}
    kafka.silent = frozenset()
    assert restore(kafka, changes(lake)) == [] and not throttled(kafka)


def reduction(*after: int) -> PlanFiles:
    return plan(Step("1-reassign", "reassign", "", moves=(Move("b", 0, (1, 2, 3), after),)))


def test_replicas_are_taken_away_at_the_end_or_in_front():
    for after in ((1, 2), (2, 3), (3, 1)):
        kafka, lake = in_order(cluster()), MemoryLake()
        assert applied(kafka, lake, reduction(*after)).stopped is None and placed(kafka)[B0] == after


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("after", [(1, 2), (3, 1)], ids=["at the end", "in the middle"])
def test_a_reduction_that_was_cancelled_is_taken_back(after, lag):
    kafka, lake = cluster(lag=lag), MemoryLake()
    on(kafka, "reassign", lambda: kafka.lose(after[-1]))
    outcome = stopped(kafka, lake, reduction(*after))
    assert (outcome.why, outcome.left) == (f"broker {after[-1]} is down", [])
    assert placed(kafka)[B0] == (1, 2, 3) and not kafka.partitions[B0].moving
    assert lake.states()["1-reassign"] == "undone" and restore(kafka, changes(lake)) == []


def test_a_reduction_that_is_complete_and_shown_late_is_not_taken_back():
    ends = set()
    for point in range(12, 32):
        kafka, lake, life = cluster(lag=2), MemoryLake(), Life(point)
        lagging = replace(kafka.partitions[B0], isr=(1, 2))  # so the move doesn't end at once
        on(kafka, "reassign", lambda kafka=kafka, lagging=lagging: kafka.partitions.update({B0: lagging}))
        with suppress(Killed):
            apply(reduction(3, 1), Mortal(kafka, life), changes(Mortal(lake, life)), QUICK, lambda line: None)
        moving = kafka.partitions[B0].moving
        kafka.partitions[B0] = replace(kafka.partitions[B0], isr=kafka.partitions[B0].replicas)
        assert restore(kafka, changes(lake)) == [], point
        assert placed(kafka)[B0] == ((3, 1) if moving else (1, 2, 3)), point
        ends.add((moving, lake.states().get("1-reassign")))
    assert {(True, "done"), (False, "undone")} <= ends


def test_a_foreign_min_isr_survives_a_stop():
    kafka, lake = cluster(copied=0), MemoryLake()
    on(kafka, "usable_bytes", lambda: kafka.settings[A].update({MIN_ISR: "1"}), nth=3)
    outcome = stopped(kafka, lake)
    assert outcome.left == ["min.insync.replicas of topic a was changed by others to 1, and is left"]
    assert kafka.settings[A] == {MIN_ISR: "1"} and lake.states()["1-lower-min-isr"] == "left"
    assert restore(kafka, changes(lake)) == []
    with pytest.raises(Refused, match=r"stale: min.insync.replicas of topic a is 1, and the plan rests on 2 or 3"):
        applied(kafka, lake)


def test_min_insync_replicas_stays_while_an_elr_needs_it():
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions[A1] = Replicas((2, 3), (2,), 2, elr=(3,))
    outcome = stopped(kafka, lake)
    assert (outcome.stopped, outcome.why) == ("1-lower-min-isr", "after 0 s, a-1 has the ELR 3") and made(kafka) == []
    kafka.partitions[A1] = Replicas((2, 3), (), None, elr=(2, 3))
    lake = MemoryLake()
    assert stopped(kafka, lake).why == "after 0 s, a-1 has no leader" and made(kafka) == []
    kafka.partitions[A1] = Replicas((2, 3), (2, 3), 2, elr=None)
    lake = MemoryLake()
    assert stopped(kafka, lake).why == "after 0 s, the ELR of a-1 isn't known" and made(kafka) == []
    kafka.partitions[A1] = Replicas((2, 3), (2, 3), 2, elr=())
    lake = MemoryLake()
    raced = replace(kafka.partitions[A1], isr=(2,), elr=(3,))
    on(kafka, "read", lambda: kafka.partitions.update({A1: raced}), nth=4)  # between the intention and the change
    outcome = stopped(kafka, lake)
    assert outcome.why in ("a-1 is offline or under its min.insync.replicas", "a-1 has the ELR 3") and made(kafka) == []
    assert lake.states() == {"1-lower-min-isr": "undone"}


def test_min_insync_replicas_rises_only_while_all_replicas_are_in_sync():
    kafka, lake = cluster(), MemoryLake()
    lagging = Replicas((1, 2, 4), (1, 2), 1, elr=())
    only = (*steps()[:2], steps()[3])
    on(kafka, "change", lambda: kafka.partitions.update({A0: lagging}), nth=3)  # the throttle's deletion
    outcome = stopped(kafka, lake, plan(*only))
    assert outcome.stopped == "4-raise-min-isr" and outcome.why == "after 0 s, a-0 has replicas 4 out of sync"
    assert kafka.settings[A] == {MIN_ISR: "2"} and outcome.left == [
        "min.insync.replicas of topic a stays 2: a-0 has replicas 4 out of sync. The next restore looks again"
    ]


def test_a_planned_raise_without_moves_waits_for_a_replica_out_of_sync():
    doc = document("topic replicas min\nc 1,2,3 1", brokers="1 2 3")
    raised = draft.draft(inputs(doc, {"c": (3, 2)})).change.steps
    kafka = cluster()
    kafka.settings[C] = {MIN_ISR: "1"}
    kafka.partitions[C0] = Replicas((1, 2, 3), (1,), 1, elr=())
    of = plan(*raised, before={("c", MIN_ISR): "1"})
    assert stopped(kafka, MemoryLake(), of).why == "after 0 s, c-0 has replicas 2, 3 out of sync" and made(kafka) == []
    kafka.partitions[C0] = Replicas((1, 2, 3), (1, 2, 3), 1, elr=())
    assert applied(kafka, MemoryLake(), of).stopped is None and kafka.settings[C] == {MIN_ISR: "2"}


@pytest.mark.parametrize(
    "method, thing, step, why",
    [
        ("change", A, "1-lower-min-isr", "the cluster refuses a setting: topic a: POLICY_VIOLATION"),
        ("change", Resource(ResourceType.BROKER, "4"), "2-reassign", "refuses a throttle: broker 4: POLICY_VIOLATION"),
        ("reassign", A1, "3-reassign", "Kafka refuses to move a-1 (POLICY_VIOLATION)"),
    ],
)
def test_a_change_that_the_cluster_refuses_stops_it_and_what_was_made_is_taken_back(method, thing, step, why):
    kafka, lake = cluster(copied=20, refuses={method: {thing: "POLICY_VIOLATION"}}), MemoryLake()
    outcome = stopped(kafka, lake)
    assert outcome.stopped == step and why in outcome.why and outcome.left == []
    assert not throttled(kafka) and placed(kafka)[B0] == (1, 2, 3) and kafka.settings[A] == {MIN_ISR: "3"}
    assert restore(kafka, changes(lake)) == []
    assert recorded.unfinished(lake) == []


def test_a_leader_that_cannot_be_elected_stops_it_and_the_election_is_not_taken_back():
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions[C0] = Replicas((1, 2, 3), (2, 3), 2)
    outcome = stopped(kafka, lake, plan(Step("1-elect-leaders", "elect-leaders", "", elections=(("c", 0), ("b", 0)))))
    assert outcome.why == "the preferred leader can't be elected of c-0 (PREFERRED_LEADER_NOT_AVAILABLE)"
    assert restore(kafka, changes(lake)) == []
    assert recorded.unfinished(lake) == []


def test_steps_that_need_a_broker_wait_for_it_and_others_do_not():
    kafka, lake = cluster(), MemoryLake()
    waits = Step("1-wait", "wait", "", brokers=(6,))
    first = Step("2-reassign", "reassign", "", moves=(Move("a", 0, (1, 2), (1, 2, 4)),))
    held = Step(
        "3-reassign", "reassign", "", moves=(Move("b", 0, (1, 2, 3), (6, 2, 3)),), after=("1-wait", "2-reassign")
    )
    of = plan(waits, first, held)
    kafka.settings[A] = {MIN_ISR: "2"}
    kafka.lose(6)
    outcome = stopped(kafka, lake, of, replace(QUICK, batch_seconds=0.05))
    assert outcome.done == ["2-reassign"] and (outcome.stopped, outcome.left) == ("1-wait", [])
    assert outcome.why == "after 0 s, broker 6 is down or fenced"
    assert restore(kafka, changes(lake)) == []
    on(kafka, "read", lambda: vars(kafka).update(live=kafka.live | {6}), nth=4)
    outcome = applied(kafka, lake, of)
    assert outcome.done == ["2-reassign", "1-wait", "3-reassign"] and placed(kafka)[B0] == (6, 2, 3)
    assert applied(kafka, lake, of).done == ["1-wait", "2-reassign", "3-reassign"]
