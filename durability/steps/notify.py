"""Step notify: sends the run's digest to Slack if there is a webhook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from durability.addresses import is_loopback
from durability.collect.connections import stated_connection
from durability.errors import AuditError
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

CONNECTIONS = ("slackwebhook", "slack_default")
"""Ids of the Connection with the webhook. The first one that exists is used."""


def notify(
    settings: Settings, findings: Path, webhook: Callable[[], str | None], log: Any, summary: StepSummary
) -> None:
    """Send the digest of a findings.json and put the outcome into `summary`. Errors are logged, not raised.

    The lake records sent digests, so that a repeated step sends none twice.

    webhook: returns the webhook's address or None. The address is a secret, so neither it nor its Connection is logged.
    log: a logger of Python or Airflow.
    """
    summary.text = "failed, see the log"
    try:
        url = webhook()
        if url is None:
            summary.text = "no slackwebhook Connection"
            return
        from durability.report.files import load
        from durability.report.text import slack

        document = load(findings)
        digest = slack.digest(document, paths=[findings.with_name("report.html")])
        lake, name = settings.open_lake(), _name(document["run"]["id"], digest)
        if lake.was_sent(name):
            summary.text = "sent before"
            return
        slack.send(url, digest)
        summary.text = "sent"
        try:
            lake.remember_sent(name)
        except AuditError as error:
            log.warning(
                "the digest is sent, but the lake can't remember that, so this step would send it again: %s", error
            )
        if _crosses_the_network_unencrypted(url):
            warning = "the webhook's address is http, so that digest and address cross the network unencrypted"
            log.warning("%s", warning)
            summary.text += f". Warning: {warning}"
    except ModuleNotFoundError as error:
        log.error("the digest could not be sent: %s isn't installed; it comes with the extra 'airflow'", error.name)
    except Exception as error:
        log.error("the digest could not be sent: %s", error if isinstance(error, AuditError) else type(error).__name__)


def _crosses_the_network_unencrypted(url: str) -> bool:
    stated = urlsplit(url)
    return stated.scheme.lower() == "http" and not is_loopback(stated.hostname or "")


def _name(run_id: str, digest: Mapping[str, Any]) -> str:
    """The digest's key in the lake. A digest with other content gets another key."""
    return hashlib.sha256(json.dumps([run_id, digest], sort_keys=True).encode()).hexdigest()


def webhook_from_environment(environ: Mapping[str, str]) -> str | None:
    """The webhook of the first of `CONNECTIONS` in AIRFLOW_CONN_<ID> (JSON), for runs without Airflow; None if there is none.

    As in Airflow's hook, `password` is the whole address or the path after `host`.
    """
    for connection in CONNECTIONS:
        stated = stated_connection(connection, environ)
        if stated and stated.get("password"):
            password = str(stated["password"])
            host = str(stated.get("host") or "https://hooks.slack.com/services").rstrip("/")
            return password if "://" in password else f"{host}/{password.lstrip('/')}"
    return None
