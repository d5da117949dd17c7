"""Alerts and heartbeats over real HTTP, through Airflow's hooks and Connections."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support.airflow import result, run_dag, run_in_airflow

SECRET = "T0-hunter2"
SEND = """
import json, logging, os
os.dup2(1, 2)  # what is logged is looked through for secrets
from datetime import datetime, timedelta, timezone
from airflow import settings
settings.initialize()
from durability.alerts.model import Alert, CLEAR, PAGE
from durability.errors import AuditError
from kafka_durability.channels import channels_of, heartbeat
when = datetime(2026, 11, 21, 2, tzinfo=timezone.utc)
alert = Alert(
    "eu/offline/broker:3 down/20261121T020000Z", "eu <!channel>", "offline", "broker:3 down", frozenset({"broker:3"}),
    when, when, when, now=("broker:3 down",), team=os.environ["TEAM"], state="open", tier="critical", partitions=3, topics=1,
    examples=("pay-0",), opened=when,
)
said = []
for channel in channels_of(alert.team):
    for event in (PAGE, CLEAR):
        try:
            channel.send(alert, event, False)
            said.append([channel.name, event, "sent"])
        except AuditError as error:
            said.append([channel.name, event, str(error)])
for kind in ("nightly", "pulse"):
    heartbeat(kind, logging.getLogger("beats"))
print("RESULT", json.dumps(said))
"""


@pytest.fixture
def server():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.server.received.append((self.command, self.path, json.loads(body) if body else None))
            self.send_response(self.server.status.get(self.path, 200))
            slack = SECRET in self.path
            answer = b"ok" if slack else b'{"status": "success", "dedup_key": "as stated"}'
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            for byte in answer:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                self.server.hurry.wait(0.2 if self.path in self.server.dripping else 0)

        do_POST = do_GET

        def log_message(self, *args):
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.received, httpd.status, httpd.dripping, httpd.hurry = [], {}, set(), threading.Event()
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield httpd
        httpd.hurry.set()
        httpd.shutdown()
        thread.join()


def connection(kind: str, **fields) -> str:
    return json.dumps({"conn_type": kind, **fields})


def test_receivers_get_what_their_connections_say(tmp_path, server):
    url = f"http://127.0.0.1:{server.server_port}"
    server.status["/beat/pulse"] = 500
    output = run_in_airflow(
        tmp_path,
        SEND,
        TEAM="Pay ments",
        NO_PROXY="127.0.0.1",
        AIRFLOW_CONN_SLACKWEBHOOK=connection("slackwebhook", password=f"{url}/general/{SECRET}"),
        AIRFLOW_CONN_SLACKWEBHOOK_PAY_MENTS=connection("slackwebhook", password=f"{url}/team/{SECRET}"),
        AIRFLOW_CONN_DURABILITY_ALERTMANAGER=connection("http", host=f"{url}/am"),
        AIRFLOW_CONN_DURABILITY_HEARTBEAT_NIGHTLY=connection("http", host=f"{url}/beat/{SECRET}"),
        AIRFLOW_CONN_DURABILITY_HEARTBEAT_PULSE=connection("http", host=f"{url}/beat/pulse"),
    )
    both = ("page", "all-clear")
    assert result(output) == [[name, event, "sent"] for name in ("alertmanager", "slack") for event in both]
    assert [(method, path) for method, path, _ in server.received] == [
        *[("POST", "/am/api/v2/alerts")] * 2,
        *[("POST", f"/team/{SECRET}")] * 2,
        ("GET", f"/beat/{SECRET}"),
        ("GET", "/beat/pulse"),
    ]
    ((firing,), _, page, over) = [body for _, _, body in server.received[:4]]
    assert firing["labels"] == {
        "alertname": "KafkaPartitionsOffline",
        "cluster": "eu <!channel>",
        "category": "offline",
        "tier": "critical",
        "severity": "critical",
        "cause": "broker:3 down",
        "team": "Pay ments",
    }
    assert firing["startsAt"] == "2026-11-21T02:00:00Z" < firing["endsAt"]
    assert "&lt;!channel&gt;" in page["text"] and over["text"].startswith("Over: ")
    assert "<!channel>" not in json.dumps([page, over])


def test_receivers_that_fail_are_named_by_their_connection_and_show_no_secret(tmp_path, server):
    url = f"http://127.0.0.1:{server.server_port}"
    server.status = {f"/{SECRET}": 404, "/am/api/v2/alerts": 503}
    output = run_in_airflow(
        tmp_path,
        SEND,
        TEAM="",
        NO_PROXY="127.0.0.1",
        AIRFLOW_CONN_SLACKWEBHOOK=connection("slackwebhook", password=f"{url}/{SECRET}"),
        AIRFLOW_CONN_DURABILITY_ALERTMANAGER=connection("http", host=f"{url}/am"),
        AIRFLOW_CONN_DURABILITY_HEARTBEAT_PULSE=connection("http", host="127.0.0.1", port=1, schema="http"),
    )
    told = {(name, event): text for name, event, text in result(output)}
    assert told["alertmanager", "page"] == "Connection durability_alertmanager: HTTP 503"
    assert told["slack", "page"] == "Connection slackwebhook: Slack rejected the message: HTTP 404, ok"
    assert SECRET not in output


TO_THE_SERVER = """
import os
from pagerduty.api_client import ApiClient
ApiClient.url = property(lambda client: os.environ["URL"], lambda client, https: None)
"""
SOON = """
from kafka_durability import channels
channels.ANSWERED_WITHIN = 1
"""


def test_a_receiver_that_throttles_or_answers_byte_by_byte_is_not_waited_for(tmp_path, server):
    url = f"http://127.0.0.1:{server.server_port}"
    server.status["/v2/enqueue"] = 429
    server.dripping = {"/am/api/v2/alerts", "/beat"}
    output = run_in_airflow(
        tmp_path,
        TO_THE_SERVER + SOON + SEND,
        TEAM="",
        NO_PROXY="127.0.0.1",
        URL=url,
        AIRFLOW_CONN_DURABILITY_PAGERDUTY=connection("pagerduty_events", password="key"),
        AIRFLOW_CONN_DURABILITY_ALERTMANAGER=connection("http", host=f"{url}/am"),
        AIRFLOW_CONN_SLACKWEBHOOK=connection("slackwebhook", password=f"{url}/{SECRET}"),
        AIRFLOW_CONN_DURABILITY_HEARTBEAT_PULSE=connection("http", host=f"{url}/beat"),
    )
    late = "no complete answer within 1 s"
    assert result(output) == [
        *[["pagerduty", event, f"Connection durability_pagerduty: {late}"] for event in ("page", "all-clear")],
        *[["alertmanager", event, f"Connection durability_alertmanager: {late}"] for event in ("page", "all-clear")],
        *[["slack", event, "sent"] for event in ("page", "all-clear")],
    ]
    assert f"the heartbeat could not be sent: Connection durability_heartbeat_pulse: {late}" in output


WITHOUT_THE_PROVIDER = """
import sys
sys.modules["pagerduty"] = None  # importing it fails, as where it isn't installed
"""


def test_a_missing_provider_of_pagerduty_is_named_with_what_to_install(tmp_path):
    stated = connection("pagerduty_events", password=SECRET)
    output = run_in_airflow(tmp_path, WITHOUT_THE_PROVIDER + SEND, TEAM="", AIRFLOW_CONN_DURABILITY_PAGERDUTY=stated)
    ((name, _, text), _) = result(output)
    assert name == "pagerduty" and "pip install 'kafka-durability-audit[pagerduty]'" in text
    assert SECRET not in output


def test_a_connection_that_airflow_cannot_parse_is_named_and_costs_no_other_receiver(tmp_path, server):
    output = run_in_airflow(
        tmp_path,
        SEND,
        TEAM="",
        NO_PROXY="127.0.0.1",
        AIRFLOW_CONN_DURABILITY_PAGERDUTY=connection("pagerduty_events", password=SECRET)[:-1],
        AIRFLOW_CONN_SLACKWEBHOOK=connection(
            "slackwebhook", password=f"http://127.0.0.1:{server.server_port}/{SECRET}"
        ),
    )
    assert [name for name, *_ in result(output)] == ["slack", "slack"] and len(server.received) == 2
    assert "alerts are not sent to pagerduty: AIRFLOW_CONN_DURABILITY_PAGERDUTY is set, but" in output
    assert SECRET not in output


def test_pagerduty_gets_a_trigger_and_a_resolve_with_the_same_key(tmp_path, server):
    output = run_in_airflow(
        tmp_path,
        TO_THE_SERVER + SEND,
        TEAM="pay",
        NO_PROXY="127.0.0.1",
        URL=f"http://127.0.0.1:{server.server_port}",
        AIRFLOW_CONN_DURABILITY_PAGERDUTY_PAY=connection("pagerduty_events", password=SECRET),
    )
    assert [text for *_, text in result(output)] == ["sent", "sent"], output
    trigger, resolve = [body for _, _, body in server.received]
    assert [body["event_action"] for body in (trigger, resolve)] == ["trigger", "resolve"]
    assert trigger["routing_key"] == SECRET
    assert trigger["dedup_key"] == resolve["dedup_key"] == "eu/offline/broker:3 down/20261121T020000Z"
    assert trigger["payload"]["summary"].startswith("Partitions offline in eu")
    assert trigger["payload"]["severity"] == "critical"


def test_a_run_that_fails_tells_slack_once_an_hour(tmp_path, server):
    url = f"http://127.0.0.1:{server.server_port}/{SECRET}"
    slack = connection("slackwebhook", password=url)
    hour = None
    while hour != (hour := datetime.now(UTC).hour):  # once more if an hour ended in between
        server.received.clear()
        conf = {"policy": str(tmp_path / "missing.yaml"), "lake": str(tmp_path / f"lake-{hour}"), "out": "out"}
        for _ in range(2):
            states = run_dag(tmp_path, "health_pulse", conf, AIRFLOW_CONN_SLACK_DEFAULT=slack, NO_PROXY="127.0.0.1")
            assert (states["run"], states["plan"]) == ("failed", "failed")
    ((_, _, body),) = server.received
    assert body["text"] == "The run of health_pulse failed"
