"""Sends what is due of each alert to each receiver, and remembers it in the alert.

An alert is in the lake before anything is sent, and what was sent is in the lake right after. So a killed task loses nothing: the
next try, or the next pulse, sends what is still due. If the task is killed between sending and remembering, the message is sent
again. PagerDuty and Alertmanager recognize the alert by its key or labels and show it once. Slack can't: it may show one message
twice. The other choice, remembering first, would lose a page, which is worse than showing it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from durability.alerts.model import CLEAR, CLOSED, OPEN, PAGE, Alert, Delivery
from durability.errors import AuditError, Rejected

GIVEN_UP_AFTER = timedelta(days=1)
"""An all-clear that could not be delivered for this long is given up."""


class Channel(Protocol):
    """A receiver.

    name: in `alerts.sent`. The same for all Connections of one kind, so that a new Connection doesn't repeat old pages.
    connection: the Connection that leads there.
    keyed: does it recognize an alert that it gets again?
    """

    name: str
    connection: str
    keyed: bool

    def send(self, alert: Alert, event: str, missed: bool) -> None:
        """Raises AuditError, without secrets, if the event didn't arrive. missed: the page never arrived.

        Raises Rejected if the receiver refuses this message alone. May take a minute at most.
        """

    def refresh(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Send open alerts again, if the receiver otherwise takes them for over. Raises as `send`."""


def due(alert: Alert, channel: Channel, now: datetime) -> tuple[str, bool] | None:
    """The event that a receiver has to get now, and whether it missed the page; None if there is none.

    A receiver with keys gets no page for what is over. It gets the all-clear even if it is unknown whether the page arrived: an
    answer may be lost, and an all-clear without a page shows nothing. Others get one message about it.
    """
    paged = alert.arrived(channel.name, PAGE)
    if alert.state == OPEN:
        late = paged is not None and channel.keyed and paged < alert.revision
        return (PAGE, False) if paged is None or late else None
    if alert.state != CLOSED or alert.closed is None or now - alert.closed > GIVEN_UP_AFTER:
        return None
    if alert.arrived(channel.name, CLEAR) is not None:
        return None
    return CLEAR, paged is None and not channel.keyed


def deliver(
    alerts: Sequence[Alert],
    channels_of: Callable[[str | None], Iterable[Channel]],
    remember: Callable[[Iterable[Alert]], None],
    clock: Callable[[], datetime],
    log: Any,
    until: datetime | None = None,
) -> list[Alert]:
    """Send everything that is due, and return the alerts with what was sent. Nothing is raised for a receiver that fails.

    After a failure, nothing more is sent through that Connection. The next pulse tries again, after the other Connections. A
    message that is refused costs no other one. until: nothing is sent after it.

    channels_of: the receivers by team. All alerts are sent to the first ones before any is sent to the next.
    remember: writes changed alerts.
    """
    after = {alert.key: alert for alert in alerts}
    channels: dict[str | None, list[Channel]] = {team: list(channels_of(team)) for team in {a.team for a in alerts}}
    owed = {
        channel.connection for alert in alerts for channel in channels[alert.team] if alert.has_failed(channel.name)
    }
    by_place = [
        (channel.connection in owed, place, alert.first_seen, alert.key, channel)
        for alert in alerts
        for place, channel in enumerate(channels[alert.team])
    ]
    failed: set[str] = set()
    for *_, key, channel in sorted(by_place, key=lambda entry: entry[:4]):
        alert = after[key]
        event = due(alert, channel, clock())
        if event is None or channel.connection in failed:
            continue
        if until is not None and clock() >= until:
            log.error("there was no time to send more: the next pulse sends what is still due")
            break
        error = None
        try:
            channel.send(alert, *event)
        except AuditError as problem:
            error = str(problem)
            if not isinstance(problem, Rejected):
                failed.add(channel.connection)
            log.error("%s of alert %s could not be sent to %s: %s", event[0], key, channel.name, error)
        sent = Delivery(channel.name, event[0], alert.revision, clock(), error)
        # Of failures, the last one is enough.
        others = [d for d in alert.deliveries if d.error is None or d.channel != channel.name]
        after[key] = replace(alert, deliveries=(*others, sent))
        remember([after[key]])
    return list(after.values())


def refresh(alerts: Sequence[Alert], channels: Mapping[str | None, Iterable[Channel]], now: datetime, log: Any) -> None:
    """Send open alerts again to the receivers that have to get each with every pulse. Failures are logged."""
    by_connection: dict[str, tuple[Channel, list[Alert]]] = {}
    for team, receivers in channels.items():
        for channel in receivers:
            mine = [a for a in alerts if a.team == team and a.arrived(channel.name, PAGE) is not None]
            by_connection.setdefault(channel.connection, (channel, []))[1].extend(mine)
    for channel, mine in by_connection.values():
        try:
            if mine:
                channel.refresh(mine, now)
        except AuditError as problem:
            log.error("open alerts could not be sent again to %s: %s", channel.name, problem)


def unfinished(alert: Alert, channels: Iterable[Channel], now: datetime) -> bool:
    """Is the alert tracked, or is something of it still to be sent?"""
    return alert.tracked or any(due(alert, channel, now) for channel in channels)
