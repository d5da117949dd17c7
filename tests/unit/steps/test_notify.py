"""The digest without Airflow: where its webhook comes from, and that failing to send it fails nothing and shows no secret."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import pytest

from durability.errors import AuditError, Refused, Unreachable
from durability.plan.plan import PolicyPart
from durability.report.text import slack
from durability.steps.notify import Webhook, notify, webhook_from_environment
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests.support.report_cases import SHA, finding, snapshot, written

SECRET = "T0/B0/hunter2"


SHIPPED = Path(__file__).parents[3] / "policies" / "policy.yaml"


@dataclass
class Run:
    """Settings of a run."""

    lake: object
    policy: Path
    clusters: Path | None = None
    topology: Path | None = None
    fleet = Settings.fleet

    def open_lake(self):
        return self.lake


def of(lake, policy=SHIPPED) -> Run:
    return Run(lake, policy)


def fleet(url: str, **more):
    """The fleet's channel alone."""
    return lambda team: None if team else Webhook(url, **more)


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        ({"password": f"https://chat.example/{SECRET}"}, f"https://chat.example/{SECRET}"),
        ({"host": "https://chat.example/hooks/", "password": f"/{SECRET}"}, f"https://chat.example/hooks/{SECRET}"),
        ({"password": SECRET}, f"https://hooks.slack.com/services/{SECRET}"),
        ({"host": "https://chat.example"}, None),
    ],
)
def test_the_webhook_is_read_as_airflows_hook_reads_it(connection, expected):
    stated = json.dumps({"conn_type": "slackwebhook", **connection})
    for team, name in ((None, "slackwebhook"), (None, "slack_default"), ("Pay & Co", "slackwebhook_pay_co")):
        channel = expected and Webhook(expected, connection=name)
        assert webhook_from_environment({f"AIRFLOW_CONN_{name.upper()}": stated}, team) == channel
    assert webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": stated}, "Pay & Co") is None
    assert webhook_from_environment({}) is None
    with pytest.raises(Refused, match=r"expected JSON such as \{\"conn_type\": \"slackwebhook\""):
        webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": f"slackwebhook://:{SECRET}@"})


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("https://chat.example/", False),
        ("http://chat.example/", True),
        ("HTTP://10.0.0.1:80/", True),
        ("http://localhost:8065/", False),
        ("http://[::1]/", False),
    ],
)
def test_a_webhook_without_tls_is_warned_of(tmp_path, monkeypatch, caplog, address, warned):
    monkeypatch.setattr("durability.report.text.slack.send", lambda *_: None)
    written([finding("orders", "replication-factor", change="new")], tmp_path)
    summary, settings = StepSummary(), of(Mock(**{"was_sent.return_value": False}))
    notify(settings, tmp_path / "findings.json", fleet(address + SECRET), logging.getLogger("test"), summary)
    assert summary.text.startswith("sent")
    assert ("the webhook's address is http" in summary.text) is warned is ("unencrypted" in caplog.text)
    assert SECRET not in caplog.text + summary.text


def test_a_digest_that_cannot_be_sent_fails_nothing_and_names_the_connection(tmp_path, caplog):
    def unreachable(team):
        return webhook_from_environment({"AIRFLOW_CONN_SLACK_DEFAULT": json.dumps({"password": f"ftp://{SECRET}"})})

    def unusable(team):
        return webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": f"slackwebhook://:{SECRET}@"})

    def unknown(team):
        raise RuntimeError(SECRET)

    written([finding("orders", "replication-factor", change="new")], tmp_path)
    problems: list[str] = []
    for webhook in (unusable, unknown, unreachable):
        summary = StepSummary()
        settings = of(Mock(**{"was_sent.return_value": False}))
        notify(settings, tmp_path / "findings.json", webhook, logging.getLogger("test"), summary)
        problems += summary.problems
        assert summary.text == "failed"
    said = "\n".join(problems)
    assert "AIRFLOW_CONN_SLACKWEBHOOK can't be used" in said and "RuntimeError" in said
    assert "the digest could not be sent: Connection slack_default: Slack got no message" in said
    assert SECRET not in caplog.text + said


def test_no_digest_is_sent_twice(lake, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append(payload))
    settings = of(lake)

    def step() -> str:
        summary = StepSummary()
        notify(settings, tmp_path / "findings.json", fleet("https://chat.example/x"), logging.getLogger("t"), summary)
        return summary.text

    written([finding("orders", "replication-factor", change="new")], tmp_path)
    assert [step(), step()] == ["sent", "sent before"] and len(sent) == 1
    written([finding("orders", "replication-factor", "UNKNOWN", change="new")], tmp_path)
    assert step() == "sent" and len(sent) == 2, "evaluated again, the run says something else"


def test_a_digest_that_cannot_be_remembered_is_still_sent(lake, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(slack, "send", lambda url, payload: None)
    monkeypatch.setattr(type(lake), "remember_sent", Mock(side_effect=Unreachable("no space left")))
    written([finding("orders", "replication-factor", change="new")], tmp_path)
    summary, settings = StepSummary(), of(lake)
    notify(settings, tmp_path / "findings.json", fleet("https://chat.example/x"), logging.getLogger("t"), summary)
    assert summary.text == "sent" and "the digest is sent, but" in caplog.text and "no space left" in caplog.text


def test_a_digest_that_failed_is_sent_by_the_next_try(lake, tmp_path, monkeypatch):
    settings = of(lake)
    written([finding("orders", "replication-factor", change="new")], tmp_path)
    said = []
    for answer in (slack.NotificationFailed("503"), None):
        monkeypatch.setattr(slack, "send", Mock(side_effect=answer))
        summary = StepSummary()
        notify(settings, tmp_path / "findings.json", fleet("https://chat.example/x"), logging.getLogger("t"), summary)
        said.append(summary.text)
    assert said == ["failed", "sent"]


def test_a_digest_that_could_not_be_sent_is_made_up_for_by_the_next_run(lake, tmp_path, monkeypatch):
    """Its news persist in the next run, which has none. Each channel is owed its own digest."""
    sent, down = [], True

    def send(url, payload):
        if down and url.endswith("fleet"):
            raise slack.NotificationFailed("503")
        sent.append(json.dumps(payload))

    monkeypatch.setattr(slack, "send", send)

    def night(number: int, change: str) -> str:
        written([finding("orders", "replication-factor", change=change)], tmp_path, run_id=f"run-{number}")
        summary, channel = StepSummary(), fleet("https://chat.example/fleet")
        notify(of(lake), tmp_path / "findings.json", channel, logging.getLogger("t"), summary)
        return summary.text

    assert [night(1, "new"), night(2, "persisting")] == ["failed"] * 2
    for number in range(120):  # what else was sent since
        lake.remember_sent(f"other{number}")
    down = False
    settings = of(lake)
    settings.clusters = tmp_path / "others.yaml"
    settings.clusters.write_text(
        "format: durability-clusters/1\nfleet: others\nclusters: [{id: us, connection: kafka_us}]\n"
    )
    summary = StepSummary()
    notify(settings, tmp_path / "findings.json", fleet("https://chat.example/others"), logging.getLogger("t"), summary)
    assert summary.text == "nothing changed", "another fleet in the same lake owes nothing"
    assert night(3, "persisting") == "sent"
    assert len(sent) == 1 and "could not be sent" in sent[0] and "*Persisting: 1 finding*" in sent[0]
    assert [night(3, "persisting"), night(4, "persisting")] == ["nothing changed"] * 2
    assert night(5, "new") == "sent" and "could not be sent" not in sent[1]


def test_a_digest_is_owed_also_if_its_connection_is_wrong(lake, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append(json.dumps(payload)))

    def night(change: str, channel) -> str:
        written([finding("orders", "replication-factor", change=change)], tmp_path, run_id=change)
        summary = StepSummary()
        notify(of(lake), tmp_path / "findings.json", channel, logging.getLogger("t"), summary)
        return summary.text

    assert night("new", Mock(side_effect=Refused("report_url: isn't an address"))) == "failed"
    assert night("persisting", fleet("https://chat.example/fleet")) == "sent" and "could not be sent" in sent[0]


OWNED = """\
format: durability-policy/1
tiers: {any: {replication_factor: 3}}
topics: [{tier: any}]
owners:
  - {match: {topic: orders}, team: Pay & Co}
  - {match: {topic: audit}, team: risk}
"""


def test_each_team_has_its_own_channel_and_one_fault_costs_that_digest_alone(lake, tmp_path, monkeypatch, caplog):
    (tmp_path / "policy.yaml").write_text(OWNED)
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append((url, payload)))
    owners = [{"team": "Pay & Co", "topic": "orders", "group": None, "cluster": None}]
    owners.append({"team": "risk", "topic": "audit", "group": None, "cluster": None})
    rows = [finding(name, "replication-factor", change="new") for name in ("orders", "audit", "other")]
    written(rows, tmp_path, policy=PolicyPart(name="p", sha256=SHA, tiers={}, last_tier="any", owners=owners))

    def webhook(team):
        if team == "risk":
            raise RuntimeError(SECRET)
        return Webhook(f"https://chat.example/{team}", report_url="https://reports.example/night")

    summary = StepSummary()
    notify(of(lake, tmp_path / "policy.yaml"), tmp_path / "findings.json", webhook, logging.getLogger("t"), summary)
    assert summary.text == "3 digests: sent; sent; failed"
    assert summary.problems == ["the digest of team risk could not be sent: RuntimeError"]
    assert SECRET not in caplog.text
    (_, of_fleet), (url, of_team) = sent
    assert url == "https://chat.example/Pay & Co"
    assert "<https://reports.example/night/report.html|report>" in json.dumps(of_fleet)
    assert "<https://reports.example/night/teams/pay-co-" in json.dumps(of_team)
    assert "3 findings" in json.dumps(of_fleet) and "1 finding on 1 topic" in json.dumps(of_team)


def test_digests_for_which_no_time_is_left_are_sent_by_the_next_run(lake, tmp_path, monkeypatch):
    (tmp_path / "policy.yaml").write_text(OWNED)
    problems: list[str] = []
    monkeypatch.setattr("durability.steps.notify.WITHIN", 0.0)
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append(json.dumps(payload)))
    owners = [{"team": "risk", "topic": "audit", "group": None, "cluster": None}]
    policy = PolicyPart(name="p", sha256=SHA, tiers={}, last_tier="any", owners=owners)
    written([finding("audit", "replication-factor", change="new")], tmp_path, policy=policy)

    def run(webhook):
        summary = StepSummary()
        notify(of(lake, tmp_path / "policy.yaml"), tmp_path / "findings.json", webhook, logging.getLogger("t"), summary)
        problems.extend(summary.problems)
        return summary.text

    def webhook(team):
        return Webhook(f"https://chat.example/{team}") if team in (None, "risk") else None

    assert run(webhook) == "2 digests: failed; failed" and not sent
    assert "the digest of team risk could not be sent: other channels took all the time of this step" in problems
    monkeypatch.setattr("durability.steps.notify.WITHIN", 60.0)
    written([finding("audit", "replication-factor", change="persisting")], tmp_path, policy=policy)
    assert run(webhook) == "2 digests: sent; sent" and len(sent) == 2


def test_a_digest_is_sent_though_the_lake_can_not_remember_that_it_is_owed(lake, tmp_path, monkeypatch, caplog):
    written([finding("orders", "replication-factor", change="new")], tmp_path)
    monkeypatch.setattr(lake, "remember_owed", Mock(side_effect=Unreachable("the bucket is full")))
    monkeypatch.setattr(slack, "send", lambda *_: None)
    summary = StepSummary()
    notify(of(lake), tmp_path / "findings.json", fleet("https://chat.example/x"), logging.getLogger("t"), summary)
    assert summary.text == "sent" and "the bucket is full" in caplog.text


def test_a_digest_is_owed_while_it_is_sent(lake, tmp_path, monkeypatch):
    """The step may be killed then."""
    written([finding("orders", "replication-factor", change="new")], tmp_path)
    owed = []
    remember = lake.remember_owed
    monkeypatch.setattr(lake, "remember_owed", lambda name, is_owed: (owed.append(is_owed), remember(name, is_owed)))
    monkeypatch.setattr(slack, "send", lambda *_: owed.append("sent"))
    url = "https://chat.example/x"
    notify(of(lake), tmp_path / "findings.json", fleet(url), logging.getLogger("t"), StepSummary())
    assert owed == [True, "sent", False]


@pytest.mark.parametrize("unchanged", [False, True])
def test_nothing_is_sent_if_nothing_changed_unless_the_connection_asks_for_it(lake, tmp_path, monkeypatch, unchanged):
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append(payload))
    written([finding("orders", "replication-factor", change="persisting")], tmp_path)
    summary, channel = StepSummary(), fleet("https://chat.example/x", unchanged=unchanged)
    notify(of(lake), tmp_path / "findings.json", channel, logging.getLogger("t"), summary)
    assert (summary.text, len(sent)) == (("sent", 1) if unchanged else ("nothing changed", 0))


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"report_url": "javascript:alert(1)"}, "`report_url`"),
        ({"report_url": "https://x|<!here>"}, "`report_url`"),
        ({"unchanged": "no"}, "`unchanged`"),
    ],
)
def test_an_extra_that_cannot_be_used_is_told(extra, says):
    with pytest.raises(AuditError, match=says):
        Webhook.of("https://chat.example/x", extra, "slackwebhook")


def test_a_team_is_told_if_its_cluster_could_not_be_evaluated_and_teams_never_share_a_channel(
    lake, tmp_path, monkeypatch, caplog
):
    listed = [("eu-payments", "pay"), ("us", "gone"), ("x", "Pay & Co"), ("y", "pay-co")]
    lines = "".join(f"  - {{id: {cluster}, team: {team}}}\n" for cluster, team in listed)
    (tmp_path / "clusters.yaml").write_text(f"format: durability-clusters/1\nclusters:\n{lines}")
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append((url, json.dumps(payload))))
    written([], tmp_path, snapshots=[snapshot(), snapshot("us", "failed", reason="no broker answers")])
    settings = of(lake)
    settings.clusters = tmp_path / "clusters.yaml"
    summary = StepSummary()
    channels = {None: "fleet", "pay": "pay", "gone": "gone", "Pay & Co": "both", "pay-co": "both"}
    notify(
        settings,
        tmp_path / "findings.json",
        lambda team: Webhook(f"https://{channels[team]}.example"),
        logging.getLogger("t"),
        summary,
    )
    assert [url for url, _ in sent] == ["https://fleet.example", "https://gone.example"]
    assert all("Not evaluated: us." in text for _, text in sent)
    assert caplog.text.count("gets no digest: another team's Connection has the same id, slackwebhook_pay_co") == 2
