"""Step notify: sends the run's digests to Slack, to the fleet's channel and to those of teams, where there are webhooks."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from durability.addresses import is_loopback
from durability.collect.connections import stated_connection
from durability.errors import AuditError
from durability.plain import plural
from durability.policy import load_clusters, load_policy
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.report.text.digest import Digests

CONNECTIONS = ("slackwebhook", "slack_default")
"""Ids of the Connection with the webhook of the fleet's channel. The first one that exists is used."""


@dataclass(frozen=True)
class Webhook:
    """A channel's incoming webhook.

    url: its address, a secret.
    report_url: of the folder with the reports, for links; None if they aren't served.
    unchanged: send a digest although nothing changed?
    connection: the id of its Connection, for messages.
    """

    url: str
    report_url: str | None = None
    unchanged: bool = False
    connection: str = CONNECTIONS[0]

    @classmethod
    def of(cls, url: str, extra: Mapping[str, Any], connection: str) -> Webhook:
        """With `report_url` and `unchanged` of a Connection's extra. Raises AuditError for values that can't be used."""
        link, unchanged = extra.get("report_url"), extra.get("unchanged", False)
        if link is not None and not re.fullmatch(r"https?://[^\s<>|]{1,400}", str(link)):
            raise AuditError(f"Connection {connection}: `report_url` in its extra must begin with http:// or https://")
        if not isinstance(unchanged, bool):
            raise AuditError(f"Connection {connection}: `unchanged` in its extra must be true or false")
        return cls(url, link, unchanged, connection)


FAILED = "failed"
EXPECTED = 'JSON such as {"conn_type": "slackwebhook", "password": "https://hooks.slack.com/services/..."}'
WITHIN = 150.0
"""Seconds after which no other digest is begun. One may take two minutes, and the task has five."""
WebhookOf = Callable[[str | None], Webhook | None]
"""Gives the webhook of a team's own channel, or of the fleet's channel for None; None if there is none."""


def team_connection(team: str, kind: str = CONNECTIONS[0]) -> str | None:
    """The id of a team's own Connection. Ids have letters, digits and underscores. None if its name has neither.

    kind: the id of the Connection without a team.

    >>> team_connection("Pay & Co"), team_connection("...")
    ('slackwebhook_pay_co', None)
    """
    own = re.sub(r"[^a-z0-9]+", "_", team.lower()).strip("_")
    return f"{kind}_{own}" if own else None


def notify(settings: Settings, findings: Path, webhook: WebhookOf, log: Any, summary: StepSummary) -> None:
    """Send the digests of a findings.json and put the outcome and problems into `summary`. Errors aren't raised.

    The lake records sent digests, so that a repeated step sends none twice. Without news none is sent, unless the Connection asks
    for it, or an earlier digest of the channel had news and could not be sent. One channel's fault costs no other channel its
    digest.

    log: a logger of Python or Airflow.
    """

    teams = _teams(settings, log)

    @cache
    def read() -> Digests:
        """Read at the first channel: most commands have none."""
        from durability.report.files import load
        from durability.report.text import digest

        return digest.read(load(findings), teams)

    until = time.monotonic() + WITHIN
    outcomes = [_tell(team, webhook, settings, read, findings, log, until, summary) for team in [None, *teams]]
    summary.text = _summary([outcome for outcome in outcomes if outcome])


def _teams(settings: Settings, log: Any) -> dict[str, set[str]]:
    """The clusters of each team that the policy's owners or the clusters file name. Two teams never share a Connection."""
    try:
        named: dict[str, set[str]] = {line.team: set() for line in load_policy(settings.policy).owners if line.team}
        for cluster in load_clusters(settings.clusters) if settings.clusters and not settings.topology else ():
            if cluster.team:
                named.setdefault(cluster.team, set()).add(cluster.id)
    except AuditError as error:
        log.error("teams get no digests: %s", error)
        return {}
    connections = Counter(map(team_connection, named))
    for team in sorted(named):
        connection = team_connection(team)
        if connection is not None and connections[connection] > 1:
            log.error("team %s gets no digest: another team's Connection has the same id, %s", team, connection)
            del named[team]
    return dict(sorted(named.items()))


def _tell(
    team: str | None,
    webhook: WebhookOf,
    settings: Settings,
    read: Callable[[], Digests],
    findings: Path,
    log: Any,
    until: float,
    summary: StepSummary,
) -> str | None:
    """What happened to the digest of a team, or of the fleet; None if it has no channel. Problems are without secrets.

    until: of `time.monotonic`. After it no digest is begun: the next run sends it.
    """
    whose = f"the digest of team {team}" if team else "the digest"
    owed = _owed(settings, team)
    try:
        channel = webhook(team)
        if channel is None or (team and team not in read().teams and not read().missing(team)):
            return None
        if time.monotonic() >= until:
            raise AuditError("other channels took all the time of this step")
        return _send(settings, read(), team, channel, findings, owed, log)
    except Exception as error:
        why = error if isinstance(error, AuditError) else type(error).__name__
        summary.problems.append(f"{whose} could not be sent: {why}")
    _owe(settings, owed, log)
    return FAILED


def _send(
    settings: Settings, digests: Digests, team: str | None, channel: Webhook, findings: Path, owed: str, log: Any
) -> str:
    """Send one digest, unless it was sent before or has no news. Returns what happened. owed: the name of `_owed`."""
    from durability.report.text import digest, slack

    lake = settings.open_lake()
    late = lake.is_owed(owed)
    if not channel.unchanged and not digests.has_news(team) and not late:
        return "nothing changed"
    page = findings.with_name("report.html")
    message = digest.payload(digests, team, [page], channel.report_url)
    name = _name(digests.run["id"], [team, message] if team else message)
    if lake.was_sent(name):
        return "sent before"
    if digests.has_news(team) and not late:
        # A step that is killed while it sends leaves it owed.
        _owe(settings, owed, log)
    with slack.naming(channel.connection):
        slack.send(channel.url, digest.after_a_failure(message) if late else message)
    said = "sent"
    try:
        # In this order: if the step is killed in between, no digest is owed that was sent.
        lake.remember_owed(owed, False)
        lake.remember_sent(name)
    except AuditError as error:
        log.warning("the digest is sent, but the lake can't remember that, so this step would send it again: %s", error)
    if _crosses_the_network_unencrypted(channel.url):
        warning = "the webhook's address is http, so that digest and address cross the network unencrypted"
        log.warning("%s", warning)
        said += f". Warning: {warning}"
    return said


def _owed(settings: Settings, team: str | None) -> str:
    """The name under which the lake records that a digest of the fleet, or of a team in it, could not be sent."""
    return hashlib.sha256(json.dumps([settings.fleet, team]).encode()).hexdigest()


def _owe(settings: Settings, name: str, log: Any) -> None:
    """Record that a digest was not sent. In the next run its news persist, and would otherwise be in no digest."""
    try:
        settings.open_lake().remember_owed(name, True)
    except Exception as error:
        why = error if isinstance(error, AuditError) else type(error).__name__
        log.warning("the lake can't remember that, so the next digest may not have this run's news: %s", why)


def _summary(outcomes: list[str]) -> str:
    """What happened to the digests, in a few words.

    >>> _summary([]), _summary(["sent"]), _summary(["sent", "nothing changed"])
    ('no slackwebhook Connection', 'sent', '2 digests: sent; nothing changed')
    """
    if not outcomes:
        return "no slackwebhook Connection"
    return outcomes[0] if len(outcomes) == 1 else f"{plural(len(outcomes), 'digest')}: {'; '.join(outcomes)}"


def _crosses_the_network_unencrypted(url: str) -> bool:
    stated = urlsplit(url)
    return stated.scheme.lower() == "http" and not is_loopback(stated.hostname or "")


def _name(run_id: str, message: Any) -> str:
    """The digest's key in the lake. A digest with other content gets another key."""
    return hashlib.sha256(json.dumps([run_id, message], sort_keys=True).encode()).hexdigest()


def webhook_from_environment(environ: Mapping[str, str], team: str | None = None) -> Webhook | None:
    """The webhook of the first of `CONNECTIONS`, or of a team's own one, in AIRFLOW_CONN_<ID> (JSON), for runs without Airflow.

    None if there is none. As in Airflow's hook, `password` is the whole address or the path after `host`.
    """
    own = team_connection(team) if team else None
    for connection in CONNECTIONS if team is None else [own] if own else []:
        stated = stated_connection(connection, environ, EXPECTED)
        if stated and stated.get("password"):
            password = str(stated["password"])
            host = str(stated.get("host") or "https://hooks.slack.com/services").rstrip("/")
            extra = stated.get("extra")
            url = password if "://" in password else f"{host}/{password.lstrip('/')}"
            return Webhook.of(url, extra if isinstance(extra, Mapping) else {}, connection)
    return None
