"""Pulses replayed: what is paged, once, and when it is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.alerts import decide, messages
from durability.alerts.model import CLEAR, KEY, OPEN, PAGE, PENDING, UNREADABLE, ClusterPulse, key_of
from tests.unit.alerts.replay import AFTER, EVERY, MISSING, START, Replay, problem, unreadable

THREE = "broker:3 down"


@pytest.mark.parametrize(
    ("pulses", "events"),
    [
        (". 3 3 3 . . .", [(10, THREE), (25, "clear")]),
        (". 3 . . . .", []),
        ("3 . 3 . . .", [(10, THREE), (20, "clear")]),
        ("3 3 . 3 . 3 3 . 3 . . .", [(5, THREE), (50, "clear")]),  # flapping
        ("3 ? 3 ? . ? . .", [(10, THREE), (30, "clear")]),
        ("3 ? ? ? .", []),
        ("? ? ?", []),
        ("3 3 ? ? ? ?", [(5, THREE)]),
        ("3 . . 3 . . 3 . . 3", []),
    ],
)
def test_one_page_and_one_all_clear(pulses, events):
    assert Replay().line(pulses).events == events


GONE = "not read"


@pytest.mark.parametrize(
    ("pulses", "events"),
    [
        (". ! ! ! ! . . .", [(10, GONE), (30, "clear")]),
        (". ! . ! . ! .", []),  # each pulse that reads it shows what is wrong
        ("! ? ! . .", [(10, GONE), (20, "clear")]),
        ("! ! . ! . ! . . .", [(5, GONE), (35, "clear")]),
        # What was wrong before is neither over nor paged again, whatever happens meanwhile.
        ("3 3 ! ! ! ! 3 3 . .", [(5, THREE), (15, GONE), (35, "clear"), (45, "clear")]),
        ("3 3 ! ! ! . . .", [(5, THREE), (15, GONE), (30, "clear"), (30, "clear")]),
        ("3 ! ! 3 . .", [(10, GONE), (15, THREE), (20, "clear"), (25, "clear")]),
    ],
)
def test_a_cluster_that_can_not_be_read_is_a_cause_of_its_own(pulses, events):
    assert Replay().line(pulses).events == events


def test_a_policy_that_stops_paging_does_not_say_that_an_unreadable_cluster_is_read_again():
    alerts = Replay().line("! !").alerts
    for minute in (15, 20):
        moment = START + timedelta(minutes=minute)
        pulse = ClusterPulse("eu", moment, "payments", paging={UNREADABLE: frozenset()}, unread=True)
        alerts = decide.advance(alerts, [pulse], ["eu"], moment)
    (alert,) = alerts
    assert (alert.state, alert.why) == ("closed", decide.STILL_UNREADABLE)
    assert messages.title(alert, CLEAR) == "Closed: cluster eu can't be read"
    assert "still can't be read" in messages.details(alert, CLEAR)


def test_the_team_that_got_the_page_gets_the_all_clear():
    alerts = []
    for minute, team in ((0, "a"), (5, "b"), (10, "c"), (15, "c")):
        moment = START + timedelta(minutes=minute)
        problems = (problem("broker:1 down"),) if minute < 10 else ()
        alerts = decide.advance(alerts, [ClusterPulse("eu", moment, team, problems)], ["eu"], moment)
    assert [(alert.state, alert.team) for alert in alerts] == [("closed", "b")]


def test_the_page_names_the_latest_reason_without_its_markup():
    alerts = Replay().line("! !").alerts
    moment = START + timedelta(minutes=10)
    pulse = ClusterPulse("eu", moment, "payments", (unreadable(reason="<!channel>\nno answer"),), unread=True)
    (alert,) = decide.advance(alerts, [pulse], ["eu"], moment)
    assert (alert.reason, alert.revision) == ("<!channel>\nno answer", 0), "another reason is no other cause"
    said = messages.slack(alert, PAGE)["blocks"][0]["text"]["text"]
    assert "*Cluster eu can't be read: &lt;!channel&gt;" in said and "in tier critical" in said
    assert said.count("\n") == 2


@pytest.mark.parametrize(
    ("pulses", "events"),
    [
        ("1 1 1 2 2 2 3 3 3 . .", [(5, "broker:1 down"), (50, "clear")]),  # a rolling restart, slow
        ("1 1 . 2 2 . 3 3 . .", [(5, "broker:1 down"), (45, "clear")]),
        ("1 2 3 4 5 6 . .", []),  # each broker is down for less than two pulses
        ("1 2 3 1 2 3 . .", [(15, "broker:1 down"), (35, "clear")]),  # they crash in turn
        ("1 2 2 . .", [(10, "broker:2 down"), (20, "clear")]),
        ("1 . 2 1 . .", []),
        ("3 3 3,4 3,4 4 4 . . .", [(5, THREE), (15, "broker:4 down"), (25, "clear"), (35, "clear")]),
        ("1 1 2 2 1,2 1,2 . . .", [(5, "broker:1 down"), (25, "broker:1 down"), (35, "clear"), (35, "clear")]),
        ("1 1 2 1 2 1 . .", [(5, "broker:1 down"), (35, "clear")]),
        ("3 3,4 3,4 . .", [(5, "broker:3 down, broker:4 down"), (20, "clear")]),
        ("3,4 3,4 4 3 . .", [(5, "broker:3 down, broker:4 down"), (25, "clear")]),
    ],
)
def test_a_cause_that_moves_on_is_one_alert_and_one_on_top_is_another(pulses, events):
    assert Replay().line(pulses).events == events


def test_who_follows_an_alert_by_its_key_learns_that_its_cause_moved():
    replay = Replay().line("1 1 2")
    (alert,) = replay.alerts
    assert (alert.revision, alert.now, alert.cause) == (1, ("broker:2 down",), "broker:1 down")


def test_a_rack_and_its_brokers_are_the_same_thing():
    racks = {("eu", "az2"): frozenset({"broker:3", "broker:4"})}
    replay = Replay()
    for minute, text in enumerate(("broker:3 down", "rack:az2 down", "rack:az2 down", "broker:4 down", "", "")):
        replay.pulse(minute * 5, eu=[problem(text, racks=racks)] if text else "")
    assert replay.events == [(5, "rack:az2 down"), (25, "clear")]


def test_two_clusters_and_two_categories_have_alerts_of_their_own():
    replay = Replay()
    both = [problem(THREE), problem(THREE, "under-min-isr")]
    for minute in (0, 5):
        replay.pulse(minute, eu=both, us=THREE)
    replay.pulse(10, eu=both, us="")
    replay.pulse(15, eu=MISSING, us="")
    assert [said[:3] for said in replay.said] == [(5, "eu", "page")] * 2 + [(5, "us", "page"), (15, "us", "clear")]
    assert len({alert.key for alert in replay.alerts}) == 3


def test_a_tier_waits_for_its_own_delay():
    replay = Replay()
    slow = problem("broker:1 down", tier="standard", after=timedelta(minutes=30))
    for minute in range(0, 20, 5):
        replay.pulse(minute, eu=[slow])
    for minute in range(20, 30, 5):
        replay.pulse(minute, eu=[slow, problem("broker:1 down")])
    (alert,) = replay.alerts
    assert replay.events == [(25, "broker:1 down")]
    assert (alert.tier, alert.after, alert.partitions) == ("critical", AFTER, 6)


def test_the_all_clear_takes_as_long_as_the_tiers_delay():
    replay = Replay()
    slow = [problem(THREE, after=timedelta(minutes=20))]
    for minute in range(0, 30, 5):
        replay.pulse(minute, eu=slow)
    for minute in (30, 35, 40, 45):
        assert [event for _, event in replay.events] == [THREE]
        replay.pulse(minute, eu="")
    assert replay.events == [(20, THREE), (45, "clear")]


def test_what_is_newly_unknown_is_no_all_clear():
    replay = Replay()
    for minute in (0, 5):
        replay.pulse(minute, eu=THREE, unknown={"offline": 2})
    for minute in (10, 15, 20):
        replay.pulse(minute, eu="", unknown={"offline": 3})
    assert replay.events == [(5, THREE)]
    for minute in (25, 30):
        replay.pulse(minute, eu="", unknown={"offline": 2})
    assert replay.events == [(5, THREE), (30, "clear")]


def test_after_a_gap_without_pulses_a_page_is_confirmed_again_and_an_open_one_stays():
    replay = Replay()
    for minute in (0, 120, 125):
        replay.pulse(minute, eu=THREE)
    assert replay.events == [(125, THREE)]
    for minute in (300, 305, 310):
        replay.pulse(minute, eu=THREE if minute == 300 else "")
    assert replay.events == [(125, THREE), (310, "clear")]


def test_an_old_pulse_decides_nothing():
    pulse = ClusterPulse("eu", START, None, (problem(THREE),))
    assert decide.advance([], [pulse], ["eu"], START + timedelta(hours=3)) == []


def test_a_cluster_that_is_no_longer_listed_keeps_its_alert_for_a_day():
    replay = Replay().line("3 3")
    replay.pulse(23 * 60, listed=("us",))
    assert [alert.state for alert in replay.alerts] == [OPEN]
    replay.pulse(25 * 60, listed=("us",))
    assert [(alert.state, alert.why) for alert in replay.alerts] == [("closed", decide.NOT_LISTED)]


def test_a_tier_that_no_longer_pages_is_over():
    replay = Replay().line("3 3")
    for minute in (10, 15):
        replay.pulse(minute, eu=[])
    assert replay.events == [(5, THREE), (15, "clear")]


WORDS = st.sampled_from([".", "?", "!", "1", "2", "1,2", "3"])


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=30), st.data())
def test_repeated_and_cleared_tasks_change_nothing(words, data):
    once, again = Replay().line(" ".join(words)), Replay()
    for number in range(len(words)):
        again.one(words, number, repeat=data.draw(st.integers(1, 3)))
        again.one(words, data.draw(st.integers(0, number)))  # the task of an earlier pulse is cleared
    assert again.said == once.said and again.alerts == once.alerts


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=40))
def test_every_alert_is_paged_at_most_once_and_only_for_what_two_pulses_saw(words):
    replay = Replay().line(" ".join(words))
    for alert in replay.alerts:
        if alert.opened is None:
            continue
        mine = "!" if alert.category == UNREADABLE else ("1", "2", "1,2", "3")
        seen = [START + n * EVERY for n, word in enumerate(words) if word in mine]
        assert sum(alert.first_seen <= moment <= alert.opened for moment in seen) >= 2
        assert alert.opened - alert.first_seen >= AFTER
        assert (alert.closed is None) == (alert.state == OPEN)
    states = [(cluster, event) for _, cluster, event, _ in replay.said]
    opened = [alert for alert in replay.alerts if alert.opened]
    assert states.count(("eu", "page")) == len(opened)
    assert states.count(("eu", "clear")) == sum(alert.closed is not None for alert in opened)
    tracked = [alert for alert in replay.alerts if alert.state in (OPEN, PENDING)]
    assert sum(len(alert.subjects) for alert in tracked) == len({s for alert in tracked for s in alert.subjects})


@given(st.text(min_size=1), st.text())
def test_keys_are_short_and_tell_alerts_apart(cluster, cause):
    key = key_of(cluster, "under-min-isr", cause, START)
    assert len(key) <= KEY and key.isascii() and key.isprintable()
    assert key != key_of(cluster + "x", "under-min-isr", cause, START)
    assert key != key_of(cluster, "under-min-isr", cause, START + EVERY)


def test_alerts_of_others_are_left_alone():
    (alert,) = Replay().line("3 3").alerts
    other = replace(alert, cluster="asia", key="other")
    pulse = ClusterPulse("eu", START + 2 * EVERY, None, (problem(THREE),))
    assert other in decide.advance([alert, other], [pulse], ["eu", "asia"], START + 2 * EVERY)


def test_what_the_policy_no_longer_pages_for_is_not_said_to_be_over():
    alerts = Replay().line("3 3").alerts
    for minute in (15, 20):
        moment = START + timedelta(minutes=minute)
        pulse = ClusterPulse("eu", moment, "payments", paging={"offline": frozenset({"other"})})
        alerts = decide.advance(alerts, [pulse], ["eu"], moment)
    (alert,) = alerts
    assert (alert.state, alert.why) == ("closed", decide.NO_LONGER_PAGED)
    assert messages.title(alert, CLEAR).startswith("Closed: partitions offline in eu")
    assert "no longer pages" in messages.details(alert, CLEAR) and "no longer see it" not in messages.details(
        alert, CLEAR
    )


def test_partitions_of_several_tiers_are_said_to_be_of_all_of_them():
    alerts = []
    for minute in (0, 5, 10):
        moment = START + timedelta(minutes=minute)
        problems = (problem(THREE), problem(THREE, tier="scratch"))
        alerts = decide.advance(alerts, [ClusterPulse("eu", moment, None, problems)], ["eu"], moment)
    assert "6 partitions of 2 topics in tiers critical and scratch" in messages.details(alerts[0], PAGE)


def test_a_topic_with_partitions_of_several_causes_counts_once():
    alerts = []
    for minute in (0, 5):
        moment = START + timedelta(minutes=minute)
        problems = (problem(THREE), problem(f"rack:az1 down, {THREE}"))
        alerts = decide.advance(alerts, [ClusterPulse("eu", moment, None, problems)], ["eu"], moment)
    assert (alerts[0].partitions, alerts[0].topics) == (6, 1)
