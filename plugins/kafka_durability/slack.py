"""The webhook of the digest, from an Airflow Connection."""

from __future__ import annotations

from durability.steps.notify import CONNECTIONS


def webhook() -> str | None:
    """The webhook's address from the first of `CONNECTIONS` that exists; None if there is none. The address is a secret."""
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
