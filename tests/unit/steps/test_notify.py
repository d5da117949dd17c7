"""The digest without Airflow: where its webhook comes from, and that failing to send it fails nothing and shows no secret."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from durability.steps.notify import notify, webhook_from_environment
from durability.steps.summary import StepSummary

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


def test_a_digest_that_cannot_be_sent_fails_nothing(tmp_path, caplog):
    def unusable() -> str:
        return webhook_from_environment({"AIRFLOW_CONN_SLACKWEBHOOK": f"slackwebhook://:{SECRET}@"})

    def unknown() -> str:
        raise RuntimeError(SECRET)

    for webhook in (unusable, unknown):
        summary = StepSummary()
        notify(Path(tmp_path / "findings.json"), webhook, logging.getLogger("test"), summary)
        assert summary.text == "failed, see the log"
    assert "AIRFLOW_CONN_SLACKWEBHOOK can't be used" in caplog.text and "RuntimeError" in caplog.text
    assert SECRET not in caplog.text
