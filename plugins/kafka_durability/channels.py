"""The receivers of alerts, one per Connection that exists: Slack, PagerDuty, Alertmanager.

A team with a Connection of its own gets its alerts there: `slackwebhook_payments`, `durability_pagerduty_payments`. Addresses and
keys are secrets, so errors of the libraries, which may contain them, are never shown.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from durability.errors import AuditError, Rejected
from durability.steps.notify import CONNECTIONS as SLACK
from durability.steps.notify import team_connection
from durability.within import within
from kafka_durability.connections import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from durability.alerts.model import Alert

log = logging.getLogger("airflow.task")
PAGERDUTY = ("durability_pagerduty",)
ALERTMANAGER = "durability_alertmanager"
HEARTBEAT = "durability_heartbeat"
TIMEOUT, ANSWERED_WITHIN = 10, 20
"""Seconds for each read of an answer, and for the whole of it, with all attempts of a library. PagerDuty's client repeats
requests that are throttled without end."""
SLACK_WITHIN = 40.0
"""Seconds after which no other attempt at a message to Slack begins. The next pulse tries again."""


def channels_of(team: str | None) -> list[Any]:
    """The receivers of a team's alerts (`durability.alerts.deliver.Channel`)."""
    kinds = (PagerDuty, _of_team(team, PAGERDUTY)), (Alertmanager, [ALERTMANAGER]), (Slack, _of_team(team, SLACK))
    made: list[Any] = []
    for kind, ids in kinds:
        try:
            if found := find(*ids):
                made.append(kind(found.conn_id))
        except AuditError as error:  # the other receivers still get their alerts
            log.error("alerts are not sent to %s: %s", kind.name, error)
    return made


def _of_team(team: str | None, connections: Sequence[str]) -> list[str]:
    """A team's own Connection, then the general ones."""
    own = team_connection(team, connections[0]) if team else None
    return [*([own] if own else []), *connections]


class NotSent(AuditError):
    """A message didn't arrive. Its text has no secret in it."""


@contextmanager
def _errors(connection: str) -> Iterator[None]:
    """Turn any error into NotSent with its type alone, because its text may contain an address or a key."""
    try:
        yield
    except AuditError:
        raise
    except TimeoutError:
        raise NotSent(f"Connection {connection}: no complete answer within {ANSWERED_WITHIN} s") from None
    except Exception as error:
        reason = error.args[0] if error.args else None
        cause = getattr(reason, "reason", None)
        kind = type(cause if isinstance(cause, Exception) else error).__name__
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in Rejected.STATUS:
            raise Rejected(f"Connection {connection}: HTTP {status}") from None
        raise NotSent(f"Connection {connection}: {kind}") from None


class Slack:
    """A Slack channel, through the webhook of its Connection."""

    name, keyed = "slack", False

    def __init__(self, connection: str):
        self.connection = connection

    def send(self, alert: Alert, event: str, missed: bool) -> None:
        from durability.alerts import messages

        post_to_slack(self.connection, messages.slack(alert, event, missed))

    def refresh(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Slack shows a message until somebody deletes it."""


def post_to_slack(connection: str, payload: dict[str, Any]) -> None:
    """Post to the webhook of a Connection. Raises NotSent, NotificationFailed or Rejected."""
    from durability.report.text import slack

    with _errors(connection):
        from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

        with slack.naming(connection):
            slack.send(SlackWebhookHook(slack_webhook_conn_id=connection).client.url, payload, SLACK_WITHIN)


class PagerDuty:
    """A PagerDuty service. The provider is an extra of this package, and is needed only if the Connection exists."""

    name, keyed = "pagerduty", True

    def __init__(self, connection: str):
        self.connection = connection

    def send(self, alert: Alert, event: str, missed: bool) -> None:
        from durability.alerts import messages

        try:
            hooks = import_module("airflow.providers.pagerduty.hooks.pagerduty_events")
        except ImportError as error:
            raise NotSent(
                f"the Connection {self.connection} exists, but {error.name} isn't installed: "
                "pip install 'kafka-durability-audit[pagerduty]'"
            ) from None
        with _errors(self.connection):
            hook = hooks.PagerdutyEventsHook(pagerduty_events_conn_id=self.connection)
            within(ANSWERED_WITHIN, lambda: hook.send_event(**messages.pagerduty(alert, event)))

    def refresh(self, alerts: Sequence[Alert], now: datetime) -> None:
        """An incident stays open until it is resolved."""


class Alertmanager:
    """Prometheus's Alertmanager (v2), through a Connection of type http. Labels route; it has no Connection per team."""

    name, keyed = "alertmanager", True

    def __init__(self, connection: str):
        self.connection = connection

    def send(self, alert: Alert, event: str, missed: bool) -> None:
        self.refresh([alert], datetime.now(UTC))

    def refresh(self, alerts: Sequence[Alert], now: datetime) -> None:
        from durability.alerts import messages

        request(self.connection, "POST", "api/v2/alerts", messages.alertmanager(alerts, now))


def request(connection: str, method: str, endpoint: str | None = None, json: object = None) -> None:
    """One request to the address of a Connection of type http. Raises NotSent or Rejected unless the answer is 2xx."""
    # At DEBUG it logs paths, and that of a heartbeat is a secret.
    logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)
    with _errors(connection):
        from airflow.providers.http.hooks.http import HttpHook

        class Silent(HttpHook):
            """Logs nothing: the hook logs addresses and answers, and the address of a heartbeat is a secret."""

            @property
            def log(self) -> Any:
                return logging.Logger("silent", level=logging.CRITICAL + 1)

        hook = Silent(method=method, http_conn_id=connection)
        options = {"timeout": TIMEOUT, "check_response": False, "allow_redirects": False}
        answer = within(ANSWERED_WITHIN, lambda: hook.run(endpoint, json=json, extra_options=options))
    if not 200 <= answer.status_code < 300:
        kind = Rejected if answer.status_code in Rejected.STATUS else NotSent
        raise kind(f"Connection {connection}: HTTP {answer.status_code}")


def heartbeat(kind: str, log: Any) -> None:
    """Request the address of the kind's heartbeat Connection, if there is one. Never raises.

    Each kind of run has its own: a nightly run that died must not be hidden by pulses.
    """
    try:
        found = find(f"{HEARTBEAT}_{kind}")
        if found is not None:
            request(found.conn_id, "GET")
    except Exception as error:
        log.warning(
            "the heartbeat could not be sent: %s", error if isinstance(error, AuditError) else type(error).__name__
        )
