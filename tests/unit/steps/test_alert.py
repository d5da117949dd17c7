"""The step alert: what a pulse left in the lake becomes alerts, and messages that arrive once."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import requests

from durability.alerts import messages, store
from durability.alerts.model import PAGE, Alert
from durability.errors import Rejected
from durability.lake import Lake, tables
from durability.plan import build_plan
from durability.plan.plan import LOST
from durability.policy import load_policy
from durability.report.text import slack
from durability.steps.alert import alert
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from durability.topology import validate
from tests.support.lake import accepted
from tests.support.lake import rejected as rejection
from tests.support.topology import document
from tests.unit.alerts.replay import START

POLICY = """\
format: durability-policy/1
tiers:
  critical: {page_after: {offline: 5m, under-min-isr: 10m}}
  standard: {page_after: {offline: 15m}}
  scratch: {replication_factor: 1}
topics:
  - {match: {topic: 'pay.*'}, tier: critical}
  - {match: {replication_factor: 1}, tier: scratch}
  - {tier: standard}
"""
TABLE = """
    topic   leader  replicas  isr  min
    pay     1       1,2,3     1,2  2
    orders  1       1,2,3     1,2  2
    temp    1       1         1    1
"""
DOWN = {"categories": ["offline"], "cause": "broker:3 down"}


@pytest.fixture
def server(monkeypatch):
    """An HTTP server that keeps what it gets, and answers with `status`; 200 unless changed."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.server.status == 200:
                self.server.received.append((self.path, json.loads(body)))
            self.send_response(self.server.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args):
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.received, httpd.status = [], 200
        httpd.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


class Posting:
    """A receiver without keys, as Slack is."""

    name, connection, keyed = "slack", "slackwebhook", False

    def __init__(self, url: str, after: Callable[[], None] = lambda: None):
        self.url, self.after = url, after

    def send(self, one: Alert, event: str, missed: bool) -> None:
        slack.send(self.url, messages.slack(one, event, missed))
        self.after()

    def refresh(self, alerts, now):
        """Nothing to do."""


class Fleet:
    """Pulses of a fleet without Spark: the facts are staged, what Spark would find is stated."""

    def __init__(self, lake: Lake, folder: Path, server: HTTPServer):
        self.lake, self.server, self.log = lake, server, logging.getLogger("alerts")
        (folder / "policy.yaml").write_text(POLICY)
        self.settings = Settings(folder / "policy.yaml", folder, folder, folder, lake.location, None)
        self.channel = Posting(f"{server.url}/services/secret")
        self.channels = None
        self.time = START

    def clock(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def pulse(self, minute: int, *rows: dict, read: bool = True, **more):
        """A pulse and its alert task. rows: of `partition_health`, by default of the topic pay."""
        return self.task(self.plan(minute, *rows, read=read, **more))

    def resolved(self, tiers: list[tuple[str | None, list[str] | None]]) -> None:
        """A nightly run that gave topics these tiers, each with those that it may be in."""
        before = START - timedelta(hours=1)
        keys = {"cluster": "eu", "captured_at": before, "run_id": "night", "result_id": "night:1"}
        topics = [
            keys | {"resource_type": "topic", "resource": f"t{i}", "tier": tier, "undecided": undecided, "waivers": []}
            for i, (tier, undecided) in enumerate(tiers)
        ]
        self.lake.append(tables.RESOLVED_POLICY, pa.Table.from_pylist(topics, tables.RESOLVED_POLICY.arrow))
        snapshots = [{"cluster": "eu", "captured_at": before, "status": "accepted", "snapshot_id": "eu@night"}]
        run = {"run_id": "night", "result_id": "night:1", "kind": "nightly", "captured_at": before}
        run |= {"started_at": before, "finished_at": before, "status": "complete", "snapshots": snapshots}
        self.lake.append(tables.RUNS, pa.Table.from_pylist([run], tables.RUNS.arrow))

    def plan(
        self,
        minute: int,
        *rows: dict,
        read: bool = True,
        rejected: str | None = None,
        reason: str = "no route",
        clusters: Sequence[str] = ("eu",),
        **more,
    ):
        moment = START + timedelta(minutes=minute)
        self.time = max(self.time, moment)
        if read:
            staged = self.lake.stage(
                validate(document(TABLE, cluster="eu", captured_at=moment.isoformat(), **more), "eu.json"), team="pay"
            )
            attempts = [replace(staged, kind="pulse")]
            refused = rejection(*attempts, reason=rejected)
            snapshots = self.lake.publish(attempts, refused if rejected else accepted(*attempts))
        else:
            attempts = []
            snapshots = self.lake.record_failures([(name, moment, reason) for name in clusters], "pulse")
        plan = build_plan(
            self.lake,
            run_id=f"pulse:{minute}",
            result_id=f"pulse:{minute}:1",
            kind="pulse",
            policy=load_policy(self.settings.policy),
            waivers=[],
            snapshots=snapshots,
            attempts=attempts,
        )
        keys = {"cluster": "eu", "captured_at": moment, "run_id": plan.run_id, "result_id": plan.result_id}
        found = [
            {"topic": "pay", "partitions": [0], "categories": [], "categories_known": True, "out_of_sync": [3]}
            | keys
            | row
            for row in rows
        ]
        self.lake.append(tables.PARTITION_HEALTH, pa.Table.from_pylist(found, tables.PARTITION_HEALTH.arrow))
        return plan

    def task(self, plan) -> str:
        summary = StepSummary()
        run = plan.run_id if plan else "failed"
        alert(self.settings, plan, run, lambda team: self.channels or [self.channel], self.log, summary, self.clock)
        return summary.text

    @property
    def got(self) -> list[str]:
        """The messages that arrived, in short."""
        return [body["text"] for _, body in self.server.received]

    def alerts(self) -> list[Alert]:
        return store.load(self.lake, self.time)


@pytest.fixture
def fleet(lake, tmp_path, server, monkeypatch):
    # The module's own name alone: py4j cleans up in a loop around time.sleep, and would take a core meanwhile.
    monkeypatch.setattr(slack, "time", SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic))
    return Fleet(lake, tmp_path, server)


PAGED = "Partitions offline in eu: broker:3 down"
UNREAD = "Cluster eu can't be read: no route"
OVER = "Over: partitions offline in eu: broker:3 down"


def test_a_page_and_an_all_clear(fleet):
    assert fleet.pulse(0, DOWN) == "0 open alerts" and fleet.got == []
    assert fleet.pulse(5, DOWN) == "1 open alert"
    assert fleet.got == [PAGED]
    fleet.pulse(10, DOWN, {"topic": "orders", **DOWN})
    fleet.pulse(15)
    fleet.pulse(20)
    assert fleet.got == [PAGED, OVER]
    (one,) = fleet.alerts()
    minutes = [(t - START) / timedelta(minutes=1) for t in (one.first_seen, one.opened, one.last_seen, one.closed)]
    assert minutes == [0, 5, 10, 20]
    assert (one.state, one.team, one.tier, one.partitions, one.topics) == ("closed", "pay", "critical", 2, 2)
    fleet.pulse(25)
    assert len(fleet.got) == 2


def test_a_repeated_task_says_nothing_twice(fleet):
    for minute in (0, 5):
        plan = fleet.plan(minute, DOWN)
        for _ in range(3):
            fleet.task(plan)
    assert fleet.got == [PAGED]


def test_a_task_killed_before_it_sends_loses_nothing(fleet):
    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    fleet.pulse(0, DOWN)
    plan, fleet.channel.send = fleet.plan(5, DOWN), killed
    with pytest.raises(KeyboardInterrupt):
        fleet.task(plan)
    fleet.channel = Posting(fleet.channel.url)
    fleet.task(plan)
    fleet.task(plan)
    assert fleet.got == [PAGED]


def test_a_task_killed_right_after_it_sent_sends_the_same_key_again(fleet, server):
    """The choice: a page may arrive twice, but none is lost. Receivers with keys show it once."""

    def killed():
        raise KeyboardInterrupt

    fleet.pulse(0, DOWN)
    plan, fleet.channel.after = fleet.plan(5, DOWN), killed
    with pytest.raises(KeyboardInterrupt):
        fleet.task(plan)
    fleet.channel = Posting(fleet.channel.url)
    fleet.task(plan)
    fleet.pulse(10, DOWN)
    assert fleet.got == [PAGED, PAGED]
    first, second = (body["blocks"] for _, body in server.received)
    assert first == second and fleet.alerts()[0].key in first[0]["text"]["text"]
    requests = [messages.pagerduty(one, PAGE) for one in fleet.alerts()]
    assert [request["dedup_key"] for request in requests] == [fleet.alerts()[0].key]


def test_an_unreachable_webhook_fails_nothing_and_gets_the_page_with_the_next_pulse(fleet, server, caplog):
    server.status = 500
    fleet.pulse(0, DOWN)
    assert fleet.pulse(5, DOWN) == "1 open alert"
    assert fleet.task(None) == "1 open alert"
    assert "page of alert eu/offline/broker:3 down" in caplog.text and "secret" not in caplog.text
    server.status = 200
    fleet.pulse(10, read=False)
    assert fleet.got == [PAGED], "one pulse that could not read it pages nothing more"


def test_who_missed_the_page_hears_of_it_once_it_is_over(fleet, server):
    server.status = 500
    for minute, rows in ((0, [DOWN]), (5, [DOWN]), (10, []), (15, [])):
        fleet.pulse(minute, *rows)
    server.status = 200
    fleet.pulse(20)
    fleet.pulse(25)
    _, body = server.received[0]
    assert fleet.got == [OVER] and "could not be delivered" in body["blocks"][0]["text"]["text"]


def test_an_all_clear_is_owed_for_a_day(fleet, server):
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    server.status = 500
    for minute in (10, 15, 20):
        fleet.pulse(minute)
    fleet.pulse(15 + 24 * 60 + 5)
    server.status = 200
    fleet.pulse(15 + 24 * 60 + 10)
    assert fleet.got == [PAGED]


def test_a_cluster_that_could_not_be_read_is_paged_once_and_keeps_the_alerts_of_its_topics(fleet):
    fleet.pulse(0, DOWN)
    fleet.pulse(5, read=False)
    assert fleet.got == []
    fleet.pulse(10, DOWN)
    for minute in (15, 20, 25):
        fleet.pulse(minute, read=False)
    assert fleet.got == [PAGED, UNREAD]
    fleet.pulse(30, unreadable={"/topics": "TIMED_OUT"})
    fleet.pulse(35, unreadable={"/topics": "TIMED_OUT"})
    assert fleet.got == [PAGED, UNREAD], "topics that could not be listed are not known to be well"
    fleet.pulse(40, DOWN)
    fleet.pulse(45, DOWN)
    assert fleet.got == [PAGED, UNREAD, "Over: cluster eu is read again"]
    fleet.pulse(50)
    fleet.pulse(55)
    assert fleet.got[3:] == [OVER]
    of_cluster = {one.category: one for one in fleet.alerts()}["unreadable"]
    assert (of_cluster.reason, of_cluster.partitions, of_cluster.tier) == (None, 0, "critical")


@pytest.mark.parametrize(
    ("tiers", "page"),
    [
        ([], 5),  # no nightly run has evaluated it, so its topics may be in each tier
        ([("standard", None)], 15),
        ([("standard", None), (None, ["scratch", "critical"])], 5),
        ([("scratch", None), (None, None)], None),
    ],
)
def test_an_unreadable_cluster_pages_after_the_shortest_delay_of_its_own_tiers(fleet, tiers, page):
    if tiers:
        fleet.resolved(tiers)
    for minute in range(0, 25, 5):
        fleet.pulse(minute, read=False)
        assert fleet.got == ([UNREAD] if page is not None and minute >= page else [])


def test_renamed_tiers_neither_silence_an_unreadable_cluster_nor_close_its_page(fleet):
    fleet.resolved([("gold", None), ("standard", None)])  # gold is critical now
    for minute in (0, 5):
        fleet.pulse(minute, read=False)
    assert fleet.got == [UNREAD]
    renamed = POLICY.replace("critical", "platinum").replace("standard", "silver")
    fleet.settings.policy.write_text(renamed)
    for minute in (10, 15, 20, 25):
        fleet.pulse(minute, read=False)
    assert fleet.got == [UNREAD] and fleet.alerts()[0].state == "open"


def test_a_lost_collect_task_is_the_auditors_failure(fleet):
    for minute in (0, 5):
        fleet.pulse(minute, read=False, reason=LOST)
    (one,) = fleet.alerts()
    assert one.cause == "auditor failed" and "the auditor failed, not the cluster" in fleet.got[0]


def test_a_fleets_alert_is_kept_whole(fleet):
    for minute in (0, 5):
        fleet.pulse(minute, read=False, clusters=[f"c{n}" for n in range(5)])
    (one,) = fleet.alerts()
    assert (one.cluster, one.clusters, one.listed) == ("*", 5, 5)
    assert fleet.got == ["5 of 5 clusters can't be read: no route"]


def test_a_snapshot_that_the_gate_rejects_is_no_reading(fleet):
    for minute in (0, 5, 10):
        fleet.pulse(minute, rejected="the cluster changed while it was read")
    (one,) = fleet.alerts()
    assert fleet.got == ["Cluster eu can't be read: the cluster changed while it was read"]
    assert one.cause == "snapshot rejected"


def test_tiers_categories_and_unknown_partitions_count_as_the_policy_says(fleet):
    under = {"categories": ["under-min-isr"], "cause": "broker:3 down"}
    never = [
        {"topic": "temp", **DOWN},
        {"topic": "orders", **under},
        {"categories": ["at-min-isr", "under-replicated"], "cause": "broker:3 lagging"},
    ]
    for minute in (0, 5, 10, 15, 20):
        fleet.pulse(minute, *never)
    assert fleet.got == [] and fleet.lake.scan(tables.ALERTS).num_rows == 0
    whole = {"categories": ["under-min-isr"], "cause": "", "out_of_sync": []}
    for minute in (25, 30, 35):
        fleet.pulse(minute, {"topic": "orders", **DOWN}, whole)
    assert fleet.got == ["Partitions under min ISR in eu: configuration"], "after 10m, and orders has 15m"
    fleet.pulse(40, {"topic": "orders", **DOWN}, {"categories_known": False})
    assert fleet.got[1:] == [PAGED]
    for minute in (45, 50, 55):
        fleet.pulse(minute, {"categories_known": False})
    assert fleet.got[2:] == [], "what can't be read is not over"


def test_without_a_tier_that_pages_nothing_is_kept(fleet):
    fleet.settings.policy.write_text(re.sub(r"page_after: {[^}]*}", "replication_factor: 1", POLICY))
    for minute in (0, 5, 10):
        assert fleet.pulse(minute, DOWN) == "0 open alerts"
    assert fleet.lake.scan(tables.ALERTS).num_rows == 0


def test_what_the_lake_keeps_is_what_was_decided(fleet):
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    (one,) = fleet.alerts()
    assert [(d.channel, d.event, d.error) for d in one.deliveries] == [("slack", PAGE, None)]
    copy = replace(one, key="copy")
    store.write(fleet.lake, [copy], ("run", "result"), fleet.clock())
    assert copy in fleet.alerts()
    later = fleet.time + timedelta(days=3)
    assert {a.key for a in store.load(fleet.lake, later)} == {one.key, "copy"}, "after days without pulses"


class Keyed(Posting):
    """A receiver that knows alerts by their labels and forgets those that it doesn't get again, as Alertmanager does."""

    name, connection, keyed = "alertmanager", "durability_alertmanager", True

    def send(self, one: Alert, event: str, missed: bool) -> None:
        self.refresh([one], START)

    def refresh(self, alerts, now):
        if requests.post(self.url, json=messages.alertmanager(alerts, now), timeout=10).status_code != 200:
            raise slack.NotificationFailed("HTTP 500")


def test_alertmanager_gets_open_alerts_with_every_pulse_even_if_nothing_could_be_read(fleet, server):
    fleet.channel = Keyed(server.url)
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    fleet.task(None)
    fleet.pulse(10, read=False)
    assert len(server.received) == 3, "the page, and one per further task"
    server.received.clear()
    fleet.pulse(15, DOWN | {"cause": "broker:7 down"})
    labels, ends = zip(*((one["labels"], one["endsAt"]) for _, body in server.received for one in body), strict=True)
    assert all(one == labels[0] for one in labels) and max(ends) > "2026-11-21T02:35"
    assert "pay-0" not in str(labels)
    summary = server.received[-1][1][0]["annotations"]["summary"]
    assert summary == "Partitions offline in eu: broker:7 down", "the cause moved on"
    server.received.clear()
    for minute in (20, 25, 30):
        fleet.pulse(minute)
    *_, (last,) = [body for _, body in server.received]
    assert last["endsAt"] == "2026-11-21T02:25:00Z"


def test_a_receiver_that_knows_alerts_gets_the_all_clear_of_a_page_whose_answer_was_lost(fleet, server):
    fleet.channel = Keyed(server.url)
    send = fleet.channel.refresh

    def unanswered(alerts, now):
        send(alerts, now)
        raise slack.NotificationFailed("no answer")

    fleet.channel.refresh = unanswered
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    for minute in (10, 15):
        fleet.pulse(minute)
    server.received.clear()
    fleet.channel.refresh = send
    fleet.pulse(20)
    [(_, [last])] = server.received
    assert last["endsAt"] < "2026-11-21T02:21"


def test_open_alerts_are_sent_again_before_a_receiver_that_is_slow(fleet, server, monkeypatch):
    order = []
    slow, keyed = Posting(f"{server.url}/slow", lambda: order.append("slow")), Keyed(server.url)
    again = keyed.refresh
    keyed.refresh = lambda alerts, now: (order.append("again"), again(alerts, now))
    fleet.channels = [slow, keyed]
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    assert order == ["again", "slow"], "the page, and only then Slack"
    other = DOWN | {"cause": "broker:4 down"}
    for minute in (10, 15):
        fleet.pulse(minute, DOWN, other)
    assert order[2:] == ["again"] * (len(order) - 3) + ["slow"], "the open alert, the new page, and only then Slack"
    order.remove("slow")
    monkeypatch.setattr("durability.steps.alert.SEND_FOR", dict.fromkeys((True, False), timedelta(0)))
    for minute in (20, 25, 30):
        fleet.pulse(minute)
    assert order.count("slow") == 1, "no time is left for the all-clears"
    monkeypatch.undo()
    fleet.task(None)
    assert order.count("slow") == 3


def test_fleets_that_share_a_lake_send_their_own_alerts(fleet, tmp_path, server):
    """eu is a cluster of fleet a. A pulse of b neither pages for it nor repeats its page, nor writes it while a has pulses."""
    of_a, of_b = (replace(fleet.settings, clusters=tmp_path / f"{name}.yaml") for name in "ab")
    for name, cluster in (("a", "eu"), ("b", "us")):
        connection = f"clusters:\n  - {{id: {cluster}, connection: kafka_{cluster}}}\n"
        (tmp_path / f"{name}.yaml").write_text(f"format: durability-clusters/1\nfleet: {name}\n{connection}")
    own, other = fleet.channel, Posting(f"{server.url}/services/other")
    refreshed = []
    other.refresh = lambda alerts, now: refreshed.extend(alerts)

    def pulse_of_b(minute):
        fleet.settings, fleet.channel = of_b, other
        plan = fleet.plan(minute, read=False, clusters=["us"])
        said = fleet.task(plan)
        fleet.settings, fleet.channel = of_a, own
        return said

    fleet.settings = of_a
    for minute in (0, 5, 10):
        fleet.pulse(minute, DOWN)
        written = fleet.lake.scan(tables.ALERTS).num_rows
        assert pulse_of_b(minute + 1).startswith("1 open alert" if minute else "0 open alerts"), "of us alone"
        assert fleet.lake.scan(tables.ALERTS).num_rows <= written + 2, "the alert of us, before and after it is sent"
    assert [alert.cluster for alert in refreshed] == ["us"]
    assert [(path, body["text"]) for path, body in server.received] == [
        ("/services/secret", PAGED),
        ("/services/other", "Cluster us can't be read: no route"),
    ]
    assert {one.cluster: one.fleet for one in fleet.alerts()} == {"eu": "a", "us": "b"}
    fleet.pulse(15)
    fleet.pulse(20)
    pulse_of_b(21)
    assert [path for path, body in server.received if body["text"] == OVER] == ["/services/secret"]


def test_alerts_of_a_fleet_without_pulses_are_kept_and_then_ended_by_another(fleet, tmp_path, server):
    for name, cluster in (("a", "eu"), ("b", "us")):
        connection = f"clusters:\n  - {{id: {cluster}, connection: kafka_{cluster}}}\n"
        (tmp_path / f"{name}.yaml").write_text(f"format: durability-clusters/1\nfleet: {name}\n{connection}")
    fleet.settings = replace(fleet.settings, clusters=tmp_path / "a.yaml")
    fleet.pulse(0, DOWN)
    fleet.pulse(5, DOWN)
    fleet.settings = replace(fleet.settings, clusters=tmp_path / "b.yaml")
    # The lake's recent rows are looked at first, then older ones.
    for minute in (*range(30, 180, 30), *range(400, 1440, 300), 1435, 1450):
        fleet.task(fleet.plan(minute, read=False, clusters=["us"], reason="later"))
    texts = [text for text in fleet.got if "us" not in text.split()]
    assert texts == [PAGED, OVER.replace("Over", "Closed")], "a day after its last pulse"


def test_alerts_are_known_if_pulses_stop_for_an_hour_after_several_commits(fleet):
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    [one] = fleet.alerts()
    other = replace(one, key="late")
    written = one.pulsed + timedelta(minutes=4)
    store.write(fleet.lake, [other], ("r", "r"), written)
    between = written + store.RECENT - timedelta(seconds=30)
    assert {a.key for a in store.load(fleet.lake, between)} == {one.key, "late"}


def test_a_connection_that_fails_is_tried_once_per_pulse(fleet, server):
    tried = []
    server.status = 500
    send = fleet.channel.send
    fleet.channel.send = lambda *event: (tried.append(event[0].key), send(*event))
    under = DOWN | {"categories": ["under-min-isr"]}
    for minute in (0, 5, 10):
        fleet.pulse(minute, DOWN, under)
    assert len(tried) == 2 and len(set(tried)) == 1
    server.status = 200
    fleet.pulse(15, DOWN, under)
    assert len(fleet.got) == 2


def test_a_message_that_is_refused_costs_no_other_one(fleet, server):
    send = fleet.channel.send
    refused = []

    def pick(one, *event):
        if one.category == "offline":
            refused.append(one.key)
            raise Rejected("HTTP 400")
        send(one, *event)

    fleet.channel.send = pick
    for minute in (0, 5, 10):
        fleet.pulse(minute, DOWN, DOWN | {"categories": ["under-min-isr"]})
    assert len(refused) == 2 and len(fleet.got) == 1


def test_connections_that_failed_come_after_the_others(fleet, server):
    tried = []

    class Named(Posting):
        def __init__(self, name):
            super().__init__(server.url, lambda: None)
            self.name = self.connection = name

        def send(self, one, event, missed):
            tried.append(self.name)
            if self.name == "dead":
                raise slack.NotificationFailed("no answer")

    fleet.channels = [Named("dead"), Named("alive")]
    for minute in (0, 5):
        fleet.pulse(minute, DOWN)
    assert tried == ["dead", "alive"]
    tried.clear()
    for minute in (10, 15):
        fleet.pulse(minute, DOWN, DOWN | {"cause": "broker:4 down"})
    assert tried == ["dead", "alive", "dead"], "it is tried again at each pulse, and after the new page elsewhere"
