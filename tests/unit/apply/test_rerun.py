"""What a later try, run or plan may do after one that stopped, was killed, or lost its claim."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from durability.apply import record, recorded
from durability.apply.cluster import Replicas, TopicPartition
from durability.apply.record import REASSIGN, SET_CONFIG, Changes
from durability.apply.run import apply, restore
from durability.errors import Refused, Unreachable
from durability.lake.change_table import RACK_OUTAGE
from durability.remedies.change.model import MIN_ISR, UNCLEAN, Move, Setting, Step
from tests.support.apply_run import (
    A0,
    A1,
    B0,
    C0,
    FINAL,
    QUICK,
    A,
    C,
    applied,
    changes,
    cluster,
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
from tests.support.fake_cluster import Killed, Life, MemoryLake

A2 = TopicPartition("a", 2)
BEFORE = placed(cluster())
OFFLINE = "c-0 is offline or under its min.insync.replicas"
AGES = record.timedelta(hours=1)


def offline(kafka) -> None:
    kafka.partitions[C0] = replace(kafka.partitions[C0], isr=(), leader=None)


def back(kafka) -> None:
    kafka.partitions[C0] = replace(kafka.partitions[C0], isr=(1, 2, 3), leader=1)


def silent() -> None:
    raise Unreachable("cluster eu doesn't answer")


def once(kafka, when, *acts) -> None:
    """Does each act before one call, the next act at the next such call. when: of the call's name; is it such a call?"""
    left = list(acts)
    kafka.before_call = lambda number, name: left.pop(0)() if left and when(name) else None


def pass_by(lake) -> None:
    """Time passes: all claims are over."""
    lake.rows = [row | {"captured_at": row["captured_at"] - AGES} for row in lake.rows]


def test_a_stop_that_could_not_be_taken_back_stays_a_stop_until_restore_ended_it():
    kafka, lake = cluster(copied=5), MemoryLake()

    def then_silent():
        offline(kafka)
        once(kafka, lambda name: name == "reassign", silent)

    once(kafka, lambda name: name == "sizes" and kafka.partitions[A1].moving, then_silent)
    with pytest.raises(Unreachable, match=f"step 3-reassign stopped: {OFFLINE}. It isn't taken back yet"):
        applied(kafka, lake)
    back(kafka)
    for _ in range(2):  # Airflow's retries
        outcome = stopped(kafka, lake)
        assert (outcome.done[-1], outcome.stopped, outcome.why) == ("2-reassign", "3-reassign", OFFLINE)
    assert made(kafka).count("move a-1 [2, 3, 5]") == 1 and placed(kafka) == {**BEFORE, A0: FINAL[A0]}
    assert not throttled(kafka) and kafka.settings[A] == {MIN_ISR: "3"}
    assert [open.plan for open in recorded.unfinished(lake)] == ["p"]
    assert restore(kafka, changes(lake)) == [] and recorded.unfinished(lake) == []
    assert applied(kafka, lake).stopped is None and is_final(kafka)


def test_a_run_that_lost_the_quorum_does_not_go_on_by_itself():
    kafka, lake = cluster(copied=5), MemoryLake()
    on(kafka, "sizes", lambda: vars(kafka).update(led=False), nth=3)
    with pytest.raises(Unreachable, match="isn't taken back yet"):
        applied(kafka, lake)
    kafka.led, kafka.before_call = True, lambda number, name: None
    outcome = stopped(kafka, lake)
    assert outcome.stopped == "2-reassign" and "no controller leads" in outcome.why and placed(kafka)[A0] == (1, 2)


def test_a_partition_that_went_offline_between_two_tries_stops_the_run_and_only_a_new_run_accepts_it():
    kafka, lake = cluster(copied=20), MemoryLake()
    once(kafka, lambda name: name == "sizes" and kafka.partitions[A0].moving, lambda: (offline(kafka), silent()))
    with pytest.raises(Unreachable):
        applied(kafka, lake)
    for _ in range(2):
        outcome = stopped(kafka, lake)
        assert outcome.why == OFFLINE and placed(kafka)[A0] == (1, 2)
        assert restore(kafka, changes(lake)) == []
    assert apply(plan(), kafka, changes(lake, "r2"), QUICK, print).stopped is None and placed(kafka) == FINAL


def recreate(kafka) -> None:
    """Topic a is deleted, and created again with the replicas and the setting that the plan gives it on the way."""
    kafka.topic_ids = {"a": "new"}
    kafka.partitions |= {A0: Replicas((1, 2, 4), (1, 2, 4), 1, elr=()), A1: Replicas((2, 3), (2, 3), 2, elr=())}
    kafka.settings[A] = {MIN_ISR: "2"}
    kafka.made.clear()


def test_a_topic_that_was_recreated_is_another_topic():
    kafka = cluster(topic_ids={"a": "new"})
    with pytest.raises(Refused, match="stale: topic a was recreated since the plan was made"):
        applied(kafka, MemoryLake(), plan(topic_ids={"a": "old", "b": "b"}))
    assert kafka.made == [] and applied(kafka, MemoryLake(), plan(topic_ids={"a": "new"})).stopped is None


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_topic_that_is_recreated_meanwhile_is_left_as_it_is(was_killed):
    kafka, lake = cluster(copied=5, topic_ids={"a": "old"}), MemoryLake()

    def then():
        recreate(kafka)
        if was_killed:
            raise Killed

    once(kafka, lambda name: name == "sizes" and kafka.partitions[A1].moving, then)
    if was_killed:
        with pytest.raises(Killed):
            applied(kafka, lake)
        left = restore(kafka, changes(lake))
    else:
        outcome = stopped(kafka, lake)
        left = outcome.left
        assert outcome.why == "stale: topic a was recreated since the plan was made. Make a new plan"
    assert left == ["topic a was recreated since it was changed, and is left"] * 2  # its replicas, and its setting
    assert kafka.settings[A] == {MIN_ISR: "2"}
    assert not [text for text in kafka.made if text.startswith(("move a", "topic:a"))]
    assert placed(kafka)[B0] == (1, 2, 3) and not throttled(kafka)
    assert restore(kafka, changes(lake)) == [] and recorded.unfinished(lake) == []
    with pytest.raises(Refused, match="topic a was recreated"):  # also by the ids of the run, if the plan has none
        apply(plan(), kafka, changes(lake, "r2"), QUICK, print)


@pytest.mark.parametrize("retried", [False, True])
def test_a_partition_that_recovered_is_guarded_from_then_on(retried):
    kafka, lake = cluster(copied=10), MemoryLake()
    offline(kafka)
    acts = (lambda: None, lambda: back(kafka), lambda: None, silent if retried else lambda: offline(kafka))
    once(kafka, lambda name: name == "sizes", *acts)
    if retried:
        with pytest.raises(Unreachable):
            applied(kafka, lake)
        offline(kafka)
    assert stopped(kafka, lake).why == OFFLINE


def test_a_min_isr_that_was_put_back_is_not_lowered_again_once_nothing_moves():
    kafka, lake = cluster(), MemoryLake()
    lagging = Replicas((1, 2, 4), (1, 2), 1, elr=())
    once(kafka, lambda name: lake.states().get("3-reassign") == "done", lambda: kafka.partitions.update({A0: lagging}))
    assert stopped(kafka, lake).stopped == "4-raise-min-isr" and kafka.settings[A] == {MIN_ISR: "2"}
    kafka.partitions[A0] = replace(lagging, isr=lagging.replicas)
    assert restore(kafka, changes(lake, "upkeep")) == [] and kafka.settings[A] == {MIN_ISR: "3"}
    kafka.made.clear()
    outcome = applied(kafka, lake)
    assert outcome.stopped is None and is_final(kafka) and "1-lower-min-isr" in outcome.done
    assert f"topic:a {MIN_ISR}=2" not in kafka.made
    assert sorted(applied(kafka, lake).done) == [step.id for step in steps()] and recorded.unfinished(lake) == []


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_min_isr_is_lowered_again_only_for_topics_that_still_move(interrupted):
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions[C0] = Replicas((1, 2), (1, 2), 1, elr=())
    kafka.settings[C][MIN_ISR] = "3"
    batches = (steps()[1].moves + steps()[2].moves[:1], (Move("c", 0, (1, 2), (1, 2, 3)),))
    settings = [[Setting(topic, MIN_ISR, *values) for topic in "ac"] for values in (("3", "2"), ("2", "3"))]
    of = plan(
        Step("1-lower-min-isr", "lower-min-isr", "", settings=tuple(settings[0])),
        *(Step(f"{n}-reassign", "reassign", "", moves=tuple(moves)) for n, moves in enumerate(batches, 2)),
        Step("4-raise-min-isr", "raise-min-isr", "", settings=tuple(settings[1])),
        before={("a", MIN_ISR): "3", ("c", MIN_ISR): "3"},
    )
    kafka.refuses = {"reassign": {C0: "POLICY_VIOLATION"}}
    if interrupted:

        def last_is_back(name):
            return name == "overrides" and kafka.made[-1:] == [f"topic:c {MIN_ISR}=3"]

        once(kafka, last_is_back, silent)
        with pytest.raises(Unreachable):
            applied(kafka, lake, of)
        with (ends := changes(lake)).claimed():
            ends.done("stop")
    else:
        assert stopped(kafka, lake, of).stopped == "3-reassign" and restore(kafka, changes(lake)) == []
    assert {kafka.settings[A][MIN_ISR], kafka.settings[C][MIN_ISR]} == {"3"}
    kafka.refuses = {}
    kafka.made.clear()
    assert applied(kafka, lake, of).stopped is None
    lowered = [f"topic:c {MIN_ISR}=2", "move c-0 [1, 2, 3]", f"topic:c {MIN_ISR}=3"]
    assert made(kafka) == lowered and recorded.unfinished(lake) == []


def test_a_min_isr_that_a_partition_enforces_is_not_lowered():
    kafka, lake = cluster(), MemoryLake()
    kafka.partitions[A2] = Replicas((1, 2, 3), (1, 2, 3), 1, elr=())
    outcome = stopped(kafka, lake)
    assert (outcome.stopped, outcome.why) == (
        "1-lower-min-isr",
        "stale: a-2 enforces 3, and would enforce 2. Make a new plan",
    )
    assert made(kafka) == [] and restore(kafka, changes(lake)) == [] and recorded.unfinished(lake) == []


@pytest.mark.parametrize("final", ["3", None], ids=["own value", "inherited"])
def test_a_min_isr_does_not_rise_above_the_replicas_of_any_partition(final):
    kafka, lake = cluster(), MemoryLake()
    raised = replace(steps()[3], settings=(replace(steps()[3].settings[0], value=final),))
    grown = {A2: Replicas((1,), (1,), 1, elr=())}
    once(kafka, lambda name: lake.states().get("3-reassign") == "done", lambda: kafka.partitions.update(grown))
    outcome = stopped(kafka, lake, plan(*steps()[:3], raised, *steps()[4:], inherited=3))
    assert outcome.stopped == "4-raise-min-isr"
    assert outcome.why == "after 0 s, a-2 has 1 of 3 replicas in sync that the new value requires"
    assert f"topic:a {MIN_ISR}={final}" not in kafka.made[: len(kafka.made) - 1]


def test_a_batch_that_others_moved_back_stops_the_plan():
    kafka, lake = cluster(), MemoryLake()
    moved = {A0: Replicas((1,), (1,), 1, elr=())}
    once(
        kafka, lambda name: lake.states().get("throttle:2-reassign") == "undone", lambda: kafka.partitions.update(moved)
    )
    outcome = stopped(kafka, lake)
    assert outcome.stopped == "3-reassign"
    assert outcome.why == "stale: a-0 has the replicas [1], and the plan gave it [1, 2, 4]. Make a new plan"


def test_a_broker_that_shows_old_replicas_for_a_while_makes_no_plan_stale():
    kafka, lake = cluster(lag=0), MemoryLake()
    before = dict(kafka.partitions)
    assert applied(kafka, lake).stopped is None
    on(kafka, "read", lambda: kafka._states.append(before | {}))
    kafka.lag = 1  # of two brokers, the one that is read first shows what was before the plan
    assert applied(kafka, lake).stopped is None


def test_a_complete_plan_is_refused_once_others_changed_what_it_made():
    kafka, lake = cluster(), MemoryLake()
    assert applied(kafka, lake).stopped is None and applied(kafka, lake).stopped is None
    kafka.partitions[A0] = Replicas((1, 2), (1, 2), 1, elr=())
    kafka.settings[C][UNCLEAN] = "true"
    with pytest.raises(Refused) as refused:
        applied(kafka, lake)
    assert str(refused.value) == (
        "cluster eu: plan p can't be applied: stale: a-0 has the replicas [1, 2], and the plan gave it [1, 2, 4]. Make a new"
        " plan; stale: unclean.leader.election.enable of topic c is true, and the plan rests on not set. Make a new plan"
    )


def test_what_was_done_to_one_cluster_is_not_taken_back_on_another():
    kafka, lake, other = cluster(copied=5), MemoryLake(), cluster(cluster_id="other")
    assert killed(kafka, lake, Life(60)) and kafka.partitions[A0].moving
    other.settings[A][MIN_ISR] = "2"
    pass_by(lake)
    with pytest.raises(Refused, match="its Kafka cluster id is other, and plan p changed kafka"):
        restore(other, changes(lake, "upkeep"))
    assert other.made == [] and recorded.unfinished(lake, "eu") == []  # its claim is kept for another try
    pass_by(lake)
    other.settings[A][MIN_ISR] = "3"
    new = Changes(lake, "eu", "remediate", "q", "r2", None)  # the Connection leads to the new cluster for good
    assert apply(plan(id="q", cluster_id="other"), other, new, QUICK, print).stopped is None and is_final(other)
    assert restore(kafka, changes(lake, "upkeep")) == [] and not throttled(kafka) and placed(kafka)[A0] == (1, 2)


def test_no_plan_is_applied_while_another_one_is_not_taken_back():
    kafka, lake = cluster(copied=5), MemoryLake()
    assert killed(kafka, lake, Life(60))
    pass_by(lake)
    made_until_now = list(kafka.made)

    def q():
        return apply(plan(id="q"), kafka, Changes(lake, "eu", "remediate", "q", "r2", None), QUICK, print)

    with pytest.raises(Refused, match="plan p isn't taken back yet: clear the task `restore` of its run, or wait for"):
        q()
    assert kafka.made == made_until_now
    assert restore(kafka, changes(lake, "upkeep")) == []
    outage = Changes(lake, "eu", RACK_OUTAGE, "rack-outage", "r3", None)
    with outage.claimed():
        outage.intend("lower", "1", SET_CONFIG, ["x"], [], [])
        outage.done("1")
    with pytest.raises(Refused, match="a rack outage changed topics that aren't as before yet: wait until the run of"):
        q()
    with outage.claimed():
        outage.undone("1")
    kafka.copied = 60
    assert q().stopped is None and is_final(kafka)


def test_a_run_that_lost_its_claim_after_it_wrote_a_row_changes_nothing_more():
    kafka, lake, taken = cluster(copied=5), MemoryLake(), []

    def taken_back(number, name):
        """The process is suspended, and the next one takes back what it has meant to do."""
        if name == "read" and lake.states().get("2-reassign") == "intended" and not taken:
            taken.append(name)
            pass_by(lake)
            assert restore(kafka, changes(lake, "upkeep")) == [] and not throttled(kafka)

    kafka.before_call = taken_back
    with pytest.raises(Unreachable, match="cluster eu: the claim of this run is over"):
        applied(kafka, lake)
    assert taken and placed(kafka)[A0] == (1, 2) and not [text for text in kafka.made if text.startswith("move")]
    assert lake.states()["2-reassign"] == "undone"


def test_a_run_that_lost_its_claim_closes_no_row():
    lake = MemoryLake()
    first = changes(lake)
    first.claim()
    first.intend("1", "1", REASSIGN, [], None, None)
    pass_by(lake)
    changes(lake, "r2").claim()
    for close in (first.done, first.undone, first.left):
        with pytest.raises(Unreachable, match="run r2 changes it now"):
            close("1")
    assert lake.states() == {"1": "intended"}


@pytest.mark.parametrize("recovers", [False, True])
def test_no_retry_begins_anything_after_a_stop_whatever_fails_or_is_killed(recovers):
    stops = 0
    for point in range(90, 135):
        kafka, lake = cluster(copied=20), MemoryLake()
        once(
            kafka, lambda name, kafka=kafka: name == "sizes" and kafka.partitions[A1].moving, lambda k=kafka: offline(k)
        )
        for life in (Life(point, point % 2 == 0, Unreachable("gone") if point % 3 else None), Life(), Life()):
            before, ended = len(kafka.made), any(row["kind"] == "stop" for row in lake.rows)
            stops += ended
            ended = ended or kafka.partitions[C0].leader is None
            with suppress(Unreachable):
                killed(kafka, lake, life)
            begun = {"move a-1 [2, 3, 5]", f"topic:a {MIN_ISR}=2"} & {*kafka.made[before:]}
            assert not (ended and begun), point
            if recovers and any(row["kind"] == "stop" for row in lake.rows):
                back(kafka)
        back(kafka)
        assert restore(kafka, changes(lake)) == [] and not throttled(kafka), point
        assert applied(kafka, lake).stopped is None and is_final(kafka), point
    assert stops
