"""The webhooks of digests, from Airflow Connections."""

from __future__ import annotations

from durability.steps.notify import CONNECTIONS, Webhook, team_connection


def webhook(team: str | None = None) -> Webhook | None:
    """The webhook of a team's own Connection, or without a team of the first of `CONNECTIONS` that exists; None if there is none.

    Raises AuditError for a Connection that can't be used.
    """
    from kafka_durability.connections import find

    own = team_connection(team) if team else None
    stated = find(*(CONNECTIONS if team is None else [own] if own else []))
    if stated is None:
        return None
    from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

    url = SlackWebhookHook(slack_webhook_conn_id=stated.conn_id).client.url
    return Webhook.of(url, stated.extra_dejson, stated.conn_id)
