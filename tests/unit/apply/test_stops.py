"""What stops a plan that is applied to a cluster in memory, and what is taken back then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from durability.apply import recorded, watch
from durability.apply.cluster import Replicas, Resource, ResourceType, TopicPartition
from durability.apply.plan_files import PlanFiles
from durability.apply.run import apply, restore
from durability.apply.watch import Progress, Watch
from durability.errors import Refused, Unreachable
from durability.remedies.change import draft
from durability.remedies.change.model import MIN_ISR, Move, Step
from tests.support.apply_run import (
    A0,
    A1,
    B0,
    C0,
    EVERYWHERE,
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
    on,
    placed,
    plan,
    steps,
    stopped,
    throttled,
)
from tests.support.fake_cluster import Killed, Life, MemoryLake, Mortal
from tests.support.topology import document
from tests.unit.remedies.test_change import inputs


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


def test_a_minimum_that_others_raise_stops_the_moves_while_partitions_are_under_it(monkeypatch):
    monkeypatch.setattr(watch, "POLLED_WITHIN", 0)
    kafka, lake, other = cluster(), MemoryLake(), Resource(ResourceType.TOPIC, "y")
    kafka.partitions[TopicPartition("y", 0)] = Replicas((5, 6), (5,), 5)
    on(kafka, "reassign", lambda: kafka.settings.update({other: {MIN_ISR: "2"}}))
    outcome = applied(kafka, lake)
    assert outcome.why == "y-0 is offline or under its min.insync.replicas"
    assert outcome.stopped == "2-reassign" and not throttled(kafka)


@pytest.mark.parametrize("broker", [4, 1])
def test_a_stall_names_the_brokers_that_state_no_size(broker):
    """As one whose log dir became full and so offline. Writes went on, far below the throttle."""
    kafka, lake = cluster(), MemoryLake()
    stated = kafka.sizes

    def sizes(brokers, topics):
        return {key: size for key, size in stated(brokers, topics).items() if key != (broker, A0)}

    kafka.sizes = sizes
    on(kafka, "reassign", lambda: vars(kafka).update({"copied": 0, "written": 10}))
    why = stopped(kafka, lake).why
    assert f"sizes of a-0 are unknown. Check broker {broker} for a log dir" in why and "throttle" not in why


def test_a_partition_that_a_broker_copies_in_addition_is_no_growth():
    watch, best = SimpleNamespace(options=QUICK, cluster=cluster()), Progress((), 3, {4: 50}, {(4, A0): 100})
    more = Progress((), 2, {4: 50}, {(4, A0): 100, (4, B0): 1_000_000})
    larger = Progress((), 3, {4: 50}, {(4, A0): 1_100})
    assert "rate of writes" not in Watch._stalled(watch, more, best, 1)
    assert "broker 4 copies grew by 1,000 bytes" in Watch._stalled(watch, larger, best, 1)


@pytest.mark.parametrize(
    "others, why",
    [
        (
            {"written": 10},
            "broker 4 copies grew by 10 bytes meanwhile. The throttle of 500 bytes per second is below the rate",
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


def test_the_throttle_of_a_broker_that_never_comes_back_is_left_once_it_is_unregistered():
    kafka, lake = cluster(registered=frozenset(range(1, 7))), MemoryLake()
    on(kafka, "sizes", lambda: kafka.lose(4), nth=3)
    assert stopped(kafka, lake).left == ["broker 4 is down: its throttle stays until the next restore"]
    kafka.registered -= {4}
    left = "broker 4 isn't registered any more: its throttle is left, and limits a later broker with its id"
    assert restore(kafka, changes(lake)) == [left]
    assert throttled(kafka).keys() == {Resource(ResourceType.BROKER, "4")}
    assert recorded.unfinished(lake) == [] and restore(kafka, changes(lake)) == []


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


@pytest.mark.parametrize("before_row", [True, False])
def test_replicas_are_not_taken_away_while_one_that_stays_is_out_of_sync(before_row):
    """Kafka 3.6 takes them away at once: fewer replicas would be in sync than acks=all requires."""
    kafka, lake = in_order(cluster(eager=True)), MemoryLake()
    kafka.settings[Resource(ResourceType.TOPIC, "b")] = {MIN_ISR: "2"}
    lagging = replace(kafka.partitions[B0], isr=(1, 3))
    on(kafka, "read", lambda: kafka.partitions.update({B0: lagging}), nth=2 if before_row else 3)
    outcome = stopped(kafka, lake, reduction(1, 2))
    text = "b-0 loses replicas, and those that stay are out of sync on these brokers: 2"
    assert outcome.why.removeprefix("after 0 s, ") == text
    assert made(kafka) == [] and not throttled(kafka) and restore(kafka, changes(lake)) == []


def test_a_move_that_others_cancel_stops_the_run_and_is_named():
    kafka, lake = cluster(copied=1), MemoryLake()
    on(kafka, "sizes", lambda: kafka.reassign({B0: None}), nth=4)
    of = plan(Step("1-reassign", "reassign", "", moves=(Move("b", 0, (1, 2, 3), (4, 2, 5)),)))
    outcome = stopped(kafka, lake, of, replace(QUICK, stall_seconds=600))
    assert outcome.why == "others cancelled the move of b-0"
    assert placed(kafka)[B0] == (1, 2, 3) and not throttled(kafka) and restore(kafka, changes(lake)) == []


def test_a_later_batch_of_the_same_topic_is_not_taken_for_others():
    """Broker 1 is down, so the throttle of the first batch stays open, while the second one names other replicas of topic a."""
    kafka, lake = cluster(), MemoryLake()
    kafka.settings[A] = {MIN_ISR: "1"}
    kafka.partitions[A0] = Replicas((2, 6), (2, 6), 2, elr=())
    first = Step(
        "1-reassign", "reassign", "", moves=(Move("a", 1, (2, 3), (2, 3, 5)), Move("b", 0, (1, 2, 3), (4, 2, 3)))
    )
    second = Step("2-reassign", "reassign", "", moves=(Move("a", 0, (2, 6), (2, 6, 4)),))
    on(kafka, "sizes", lambda: kafka.lose(1), nth=2)
    outcome = applied(kafka, lake, plan(first, second, before={}))
    assert outcome.stopped is None
    assert outcome.left == ["broker 1 is down: its throttle stays until the next restore"]
    kafka.live |= {1}
    assert restore(kafka, changes(lake)) == [] and not throttled(kafka)


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
