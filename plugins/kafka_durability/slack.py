"""The digest's way out: through a `slackwebhook` Connection, if there is one."""

from __future__ import annotations

from pathlib import Path

CONNECTIONS = ("slackwebhook", "slack_default")


def send_digest(findings: Path, log) -> str:
    """Send the digest of a findings.json; returns what came of it in a few words. Never raises for Slack's sake.

    Nothing of the Connection is logged: its password is the webhook's secret.
    """
    from durability.report import slack
    from durability.report.files import load

    try:
        url = _webhook()
        if url is None:
            return "no slackwebhook Connection"
        slack.send(url, slack.digest(load(findings), paths=[findings.with_name("report.html")]))
    except slack.NotificationFailed as error:
        log.error("%s", error)
        return "failed, see the log"
    except Exception as error:
        log.error("the digest could not be sent: %s", type(error).__name__)
        return "failed, see the log"
    return "sent"


def _webhook() -> str | None:
    """The webhook's address from the first Connection there is; None: there is none."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    for connection in CONNECTIONS:
        try:
            BaseHook.get_connection(connection)
        except AirflowNotFoundException:
            continue
        from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

        return SlackWebhookHook(slack_webhook_conn_id=connection).client.url
    return None
