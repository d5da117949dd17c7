"""The webhooks of digests, from Airflow Connections."""

from __future__ import annotations

from durability.steps.notify import CONNECTIONS, Webhook, team_connection


def webhook(team: str | None = None) -> Webhook | None:
    """The webhook of a team's own Connection, or without a team of the first of `CONNECTIONS` that exists; None if there is none.

    Raises AuditError for an extra that can't be used.
    """
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    own = team_connection(team) if team else None
    for connection in CONNECTIONS if team is None else [own] if own else []:
        try:
            stated = BaseHook.get_connection(connection)
        except AirflowNotFoundException:
            continue
        from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

        return Webhook.of(SlackWebhookHook(slack_webhook_conn_id=connection).client.url, stated.extra_dejson)
    return None
