"""Many clusters unread at once: one page for what they share, and pages of their own for what is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.alerts import decide, fleet, messages
from durability.alerts.model import CLEAR, FLEET, OPEN, PAGE, PENDING, UNREADABLE, Cause, ClusterPulse, Problem
from tests.unit.alerts.replay import AFTER, START

NAMES = [f"c{number:02}" for number in range(20)]


class Fleet:
    """Pulses of twenty clusters. `said`: what was sent in each pulse, as (minute, event, clusters)."""

    def __init__(self, receiver: bool = True) -> None:
        self.alerts, self.receiver, self.minute = [], receiver, -5
        self.said: list[tuple[int, str, list[str]]] = []

    def pulse(self, *unread: str, lost: tuple[str, ...] = (), repeat: int = 1) -> None:
        self.minute += 5
        for _ in range(repeat):
            self.task(self.minute, unread, lost)

    def task(self, minute: int, unread, lost=()) -> None:
        moment = START + timedelta(minutes=minute)
        pulses = []
        for name in NAMES:
            cause = Cause("not read", frozenset({"cluster"}))
            reason = "worker gone" if name in lost else f"{name}: no route"
            problem = Problem(UNREADABLE, "critical", AFTER, (cause,), 0, reason=reason)
            missing = name in unread or name in lost
            pulses.append(
                ClusterPulse(name, moment, "pay", (problem,) if missing else (), unread=missing, lost=name in lost)
            )
        before = {alert.key: alert.state for alert in self.alerts}
        self.alerts = decide.advance(self.alerts, pulses, NAMES, moment + timedelta(seconds=30), self.receiver)
        changed = [a for a in self.alerts if before.get(a.key) != a.state]
        for state, event in ((OPEN, "page"), ("closed", "clear")):
            if names := sorted(a.cluster for a in changed if a.state == state):
                self.said.append((minute, event, names))

    def one(self) -> decide.Alert:
        (found,) = [alert for alert in self.alerts if alert.cluster == FLEET]
        return found


def test_a_fleet_that_can_not_be_read_is_one_page_and_one_all_clear():
    run = Fleet()
    for _ in range(4):
        run.pulse(*NAMES, repeat=2)
    alert = run.one()
    assert (alert.clusters, alert.listed, alert.team) == (20, 20, None)
    assert messages.title(alert, PAGE) == "20 of 20 clusters can't be read: c00: no route"
    said = messages.details(alert, PAGE)
    assert "own network or worker may be the cause" in said and "c00, c01 and c02" in said and "UTC" in said
    (sent,) = messages.alertmanager([alert], START)
    assert sent["labels"]["alertname"] == "KafkaFleetUnreadable" and "cluster" not in sent["labels"]
    assert messages.pagerduty(alert, PAGE)["source"] == "fleet"
    for _ in range(4):
        run.pulse(repeat=2)
    assert run.said == [(5, "page", [FLEET]), (25, "clear", [FLEET])]
    assert messages.title(run.one(), CLEAR) == "Over: the fleet is read again"


def test_clusters_that_stay_unread_page_by_themselves():
    run = Fleet()
    for _ in range(3):
        run.pulse(*NAMES)
    for _ in range(3):
        run.pulse("c03", "c04")
    run.pulse()
    run.pulse()
    assert run.said == [
        *((5, "page", [FLEET]), (20, "page", ["c03", "c04"]), (20, "clear", [FLEET])),
        (35, "clear", ["c03", "c04"]),
    ]


def test_what_is_paged_already_is_not_paged_again():
    run = Fleet()
    for _ in range(2):
        run.pulse("c00")
    run.pulse(*NAMES[:3])
    for _ in range(3):
        run.pulse(*NAMES)
    run.pulse("c00")
    run.pulse("c00")
    assert run.said == [(5, "page", ["c00"]), (20, "page", [FLEET]), (35, "clear", [FLEET])]


@pytest.mark.parametrize("number", [4, 9])
def test_few_clusters_page_by_themselves(number):
    """Four, and nine of twenty."""
    run = Fleet()
    for _ in range(2):
        run.pulse(*NAMES[:number])
    assert run.said == [(5, "page", NAMES[:number])]


def test_a_number_around_the_half_is_no_page_of_each_cluster():
    run = Fleet()
    for number in (10, 9, 10, 9, 11, 8):
        run.pulse(*NAMES[:number])
    assert run.said == [(5, "page", [FLEET])]


def test_the_page_goes_on_while_a_quarter_is_unread_even_if_that_is_less_than_five(monkeypatch):
    monkeypatch.setattr(f"{__name__}.NAMES", NAMES[:12])
    run = Fleet()
    for number in (6, 6, 4, 3, 4):
        run.pulse(*NAMES[:number])
    assert run.said == [(5, "page", [FLEET])]


def test_two_fleets_in_one_lake_have_alerts_of_their_own():
    alerts = []

    def pulse(minute, fleet, names, unread):
        nonlocal alerts
        moment = START + timedelta(minutes=minute)
        cause = Cause("not read", frozenset({"cluster"}))
        problem = Problem(UNREADABLE, "critical", AFTER, (cause,), 0)
        pulses = [ClusterPulse(n, moment, "pay", (problem,) if unread else (), unread=unread) for n in names]
        alerts = decide.advance(alerts, pulses, names, moment + timedelta(seconds=30), fleet=fleet)

    for minute in (0, 5, 10):
        pulse(minute, "a", NAMES[:10], True)
        pulse(minute, "b", NAMES[10:], minute == 10)
        pulse(minute + 2, "b", NAMES[10:], minute == 10)
    pulse(17, "b", NAMES[10:], True)
    of_fleets = [alert for alert in alerts if alert.cluster == FLEET]
    assert [(alert.state, alert.clusters) for alert in of_fleets] == [(OPEN, 10), (OPEN, 10)]
    assert len({alert.key for alert in of_fleets}) == 2 and len(alerts) == 2
    for minute in (20, 25, 30):
        pulse(minute, "a", NAMES[:10], False)
    assert sorted(alert.state for alert in alerts) == ["closed", OPEN]


def test_an_alert_from_before_fleets_had_names_goes_on():
    run = Fleet()
    run.pulse(*NAMES)
    run.pulse(*NAMES)
    moment = START + timedelta(minutes=10)
    problem = Problem(UNREADABLE, "critical", AFTER, (Cause("not read", frozenset({"cluster"})),), 0)
    pulses = [ClusterPulse(n, moment, "pay", (problem,), unread=True) for n in NAMES]
    (one,) = decide.advance(run.alerts, pulses, NAMES, moment, fleet="a")
    assert (one.key, one.state, one.pulsed) == (run.one().key, OPEN, moment)


def test_clusters_of_a_lost_worker_are_one_page_that_blames_the_auditor():
    run = Fleet()
    for _ in range(3):
        run.pulse("c09", lost=("c01", "c02", "c03"))
    alert = run.one()
    assert run.said == [(5, "page", [FLEET, "c09"])]
    assert messages.title(alert, PAGE) == "The auditor failed: it lost 3 of 20 clusters: worker gone"
    for _ in range(3):
        run.pulse(*NAMES)
    assert run.said[1:] == [(20, "page", [FLEET]), (20, "clear", [FLEET])], "an outage is a page of its own"


def test_an_earlier_task_that_runs_again_opens_no_alert_of_the_fleet():
    """The fleet has had no alert yet, but the alert of c00 says that a later pulse was decided."""
    run = Fleet()
    for number in (1, 1, 1, 6, 6, 10, 1, 1):
        run.pulse(*NAMES[:number])
    before = run.alerts
    run.task(25, NAMES[:10])
    assert run.alerts == before
    run.pulse(*NAMES[:6])
    assert run.said == [(5, "page", ["c00"]), (20, "page", NAMES[1:6]), (35, "clear", NAMES[1:6])]


def test_without_a_general_receiver_each_cluster_pages_by_itself():
    run = Fleet(receiver=False)
    for _ in range(2):
        run.pulse(*NAMES)
    assert run.said == [(5, "page", NAMES)]


def test_a_fleet_that_is_not_paged_for_opens_nothing():
    alerts, moment = [], START
    for minute in (0, 5, 10):
        moment = START + timedelta(minutes=minute)
        pulses = [ClusterPulse(name, moment, unread=True) for name in NAMES]
        alerts = decide.advance(alerts, pulses, NAMES, moment)
    assert alerts == []


PULSES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), min_size=3, max_size=25)


@settings(max_examples=100, deadline=None)
@given(PULSES, st.data())
def test_an_unread_cluster_is_never_silent_and_tasks_that_run_again_change_nothing(numbers, data):
    """c00 is never read. From the fourth pulse on, it or the fleet has a page, however the number of the others changes."""
    run, again = Fleet(), Fleet()
    for place, (number, lost) in enumerate(numbers):
        unread, gone = NAMES[: max(number, 1)], tuple(NAMES[1 : lost + 1])
        run.pulse(*unread, lost=gone)
        again.pulse(*unread, lost=gone, repeat=data.draw(st.integers(1, 2)))
        earlier = data.draw(st.integers(0, place))
        was, of = numbers[earlier]
        again.task(earlier * 5, NAMES[: max(was, 1)], tuple(NAMES[1 : of + 1]))
        own = any(a.cluster == "c00" and a.state == OPEN for a in run.alerts)
        assert place < 3 or own or any(a.cluster == FLEET and a.state == OPEN for a in run.alerts)
    assert again.said == run.said
    tracked = [a for a in run.alerts if a.state in (OPEN, PENDING)]
    assert len({(a.cluster, *a.subjects) for a in tracked}) == len(tracked)
    assert {s for a in run.alerts if a.cluster == FLEET for s in a.subjects} <= {fleet.CLUSTERS, fleet.AUDITOR}
