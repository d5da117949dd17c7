"""The digest without Airflow: where its webhook comes from, and that failing to send it fails nothing and shows no secret."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from durability.errors import Unreachable
from durability.report.text import slack
from durability.steps.notify import notify, webhook_from_environment
from durability.steps.summary import StepSummary
from tests.support.report_cases import finding, written

SECRET = "T0/B0/hunter2"


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
    assert webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": stated}) == expected
    assert webhook_from_environment({"AIRFLOW_CONN_SLACK_DEFAULT": stated}) == expected
    assert webhook_from_environment({}) is None


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
    monkeypatch.setattr("durability.report.files.load", lambda _: {"run": {"id": "r"}})
    monkeypatch.setattr("durability.report.text.slack.digest", lambda *_, **__: {})
    monkeypatch.setattr("durability.report.text.slack.send", lambda *_: None)
    summary = StepSummary()
    settings = SimpleNamespace(open_lake=lambda: Mock(**{"was_sent.return_value": False}))
    notify(settings, tmp_path / "findings.json", lambda: address + SECRET, logging.getLogger("test"), summary)
    assert summary.text.startswith("sent")
    assert ("the webhook's address is http" in summary.text) is warned is ("unencrypted" in caplog.text)
    assert SECRET not in caplog.text + summary.text


def test_a_digest_that_cannot_be_sent_fails_nothing(tmp_path, caplog):
    def unusable() -> str:
        return webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": f"slackwebhook://:{SECRET}@"})

    def unknown() -> str:
        raise RuntimeError(SECRET)

    for webhook in (unusable, unknown):
        summary = StepSummary()
        settings = SimpleNamespace(open_lake=lambda: None)
        notify(settings, Path(tmp_path / "findings.json"), webhook, logging.getLogger("test"), summary)
        assert summary.text == "failed, see the log"
    assert "AIRFLOW_CONN_SLACKWEBHOOK can't be used" in caplog.text and "RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_no_digest_is_sent_twice(lake, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(slack, "send", lambda url, payload: sent.append(payload))
    settings = SimpleNamespace(open_lake=lambda: lake)

    def step() -> str:
        summary = StepSummary()
        notify(settings, tmp_path / "findings.json", lambda: "https://chat.example/x", logging.getLogger("t"), summary)
        return summary.text

    written([finding("orders", "replication-factor")], tmp_path)
    assert [step(), step()] == ["sent", "sent before"] and len(sent) == 1
    written([finding("orders", "replication-factor", "UNKNOWN")], tmp_path)
    assert step() == "sent" and len(sent) == 2, "evaluated again, the run says something else"


def test_a_digest_that_cannot_be_remembered_is_still_sent(lake, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(slack, "send", lambda url, payload: None)
    monkeypatch.setattr(type(lake), "remember_sent", Mock(side_effect=Unreachable("no space left")))
    written([finding("orders", "replication-factor")], tmp_path)
    summary, settings = StepSummary(), SimpleNamespace(open_lake=lambda: lake)
    notify(settings, tmp_path / "findings.json", lambda: "https://chat.example/x", logging.getLogger("t"), summary)
    assert summary.text == "sent" and "the digest is sent, but" in caplog.text and "no space left" in caplog.text


def test_a_digest_that_failed_is_sent_by_the_next_try(lake, tmp_path, monkeypatch):
    settings = SimpleNamespace(open_lake=lambda: lake)
    written([finding("orders", "replication-factor")], tmp_path)
    said = []
    for answer in (slack.NotificationFailed("503"), None):
        monkeypatch.setattr(slack, "send", Mock(side_effect=answer))
        summary = StepSummary()
        notify(settings, tmp_path / "findings.json", lambda: "https://chat.example/x", logging.getLogger("t"), summary)
        said.append(summary.text)
    assert said == ["failed, see the log", "sent"]
