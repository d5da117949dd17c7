"""An alert in words, and as each receiver wants it.

Names of clusters, racks and topics are strangers' text. Slack's markup is escaped; the other two take plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from durability.alerts import fleet
from durability.alerts.model import CLEAR, FLEET, PAGE, UNREADABLE, Alert
from durability.catalogue.causes import worded
from durability.plain import plain, plural
from durability.plan.plan import to_text
from durability.report.text.slack import code, escaped
from durability.report.words import clipped, joined, readable

SUMMARY = 1_024
"""The longest summary that PagerDuty accepts."""
LABEL = 200
CAUSES = 5
RESOLVES_AFTER = timedelta(minutes=20)
"""How long Alertmanager shows an alert that no pulse sends again: three pulses and some time to run."""
NAMES = {
    "offline": ("KafkaPartitionsOffline", "offline"),
    "under-min-isr": ("KafkaPartitionsUnderMinIsr", "under min ISR"),
    UNREADABLE: ("KafkaClusterUnreadable", "unreadable"),
}
FLEET_NAME = "KafkaFleetUnreadable"
EFFECTS = {"offline": "Reads and writes fail.", "under-min-isr": "acks=all writes are rejected or time out."}
SEVERITY = "critical"
"""Two categories reject writes now, so they are critical in the catalogue. The third may hide both."""
REASON = 300
"""The most characters of a reason in a title."""


def cause(alert: Alert) -> str:
    """The causes of now, else those of the page, at most CAUSES.

    >>> from datetime import datetime
    >>> when = datetime(2026, 11, 21)
    >>> cause(Alert("k", "eu", "offline", "no-leader", frozenset(), when, when, when, tuple("abcdefg")))
    'a, b, c, d, e and 2 more'
    """
    texts = alert.now or (alert.cause,)
    more = f" and {len(texts) - CAUSES} more" if len(texts) > CAUSES else ""
    return worded(", ".join(texts[:CAUSES])) + more  # type: ignore[operator]  # text gives text


def title(alert: Alert, event: str) -> str:
    """What is wrong where, or that it is over, in one line."""
    if alert.cluster == FLEET:
        return plain(_title_of_fleet(alert, event))
    if alert.category == UNREADABLE:
        return plain(_title_of_unread(alert, event))
    start = {PAGE: "Partitions", CLEAR: "Closed: partitions" if alert.why else "Over: partitions"}[event]
    return plain(f"{start} {NAMES[alert.category][1]} in {alert.cluster}: {cause(alert)}")


def _title_of_unread(alert: Alert, event: str) -> str:
    if event == PAGE:
        return f"Cluster {alert.cluster} can't be read: {clipped(alert.reason, REASON) or cause(alert)}"
    return (
        f"Closed: cluster {alert.cluster} can't be read"
        if alert.why
        else f"Over: cluster {alert.cluster} is read again"
    )


def _title_of_fleet(alert: Alert, event: str) -> str:
    lost = fleet.AUDITOR in alert.subjects
    if event == PAGE:
        number = f"{alert.clusters:,} of {plural(alert.listed or 0, 'cluster')}"
        start = f"The auditor failed: it lost {number}" if lost else f"{number} can't be read"
        return f"{start}: {clipped(alert.reason, REASON) or cause(alert)}"
    if alert.why:
        return "Closed: the auditor lost clusters" if lost else "Closed: many clusters can't be read"
    return "Over: the auditor no longer loses clusters" if lost else "Over: the fleet is read again"


def _details_of_fleet(alert: Alert, event: str, which: str, seen: str) -> str:
    if event == CLEAR:
        alone = "A cluster that still can't be read pages by itself"
        return f"{alert.why or 'Two pulses or more have read the fleet again'}: {seen}. {alone}."
    lost = fleet.AUDITOR in alert.subjects
    blame = "A collect task ended without a result" if lost else "The auditor's own network or worker may be the cause"
    examples = f"Such as {joined(list(alert.examples))}. " if alert.examples else ""
    return f"{blame}. {examples}No topic of them in {which} can page meanwhile. {seen[:1].upper()}{seen[1:]}."


def details(alert: Alert, event: str) -> str:
    """The extent, the tiers, and since when; of an all-clear, from when to when."""
    tiers = sorted({sight.tier for sight in alert.tiers if not sight.missed}) or [alert.tier or ""]
    which = f"tier {tiers[0]}" if len(tiers) == 1 else f"tiers {joined(tiers)}"
    extent = f"{plural(alert.partitions, 'partition')} of {plural(alert.topics, 'topic')} in {which}"
    seen = f"first seen {_time(alert.first_seen)}, last seen {_time(alert.last_seen)}"
    if alert.cluster == FLEET:
        return plain(_details_of_fleet(alert, event, which, seen))
    if alert.category == UNREADABLE:
        if event == CLEAR:
            return plain(f"No pulse read it: {seen}. {alert.why or 'Two pulses or more have read it'}.")
        return plain(f"No topic of it in {which} can page meanwhile. Cause: {cause(alert)}; {seen}.")
    if event == CLEAR:
        return plain(f"{extent}; {seen}. {alert.why or 'Two pulses or more no longer see it'}.")
    examples = f", such as {', '.join(alert.examples)}" if alert.examples else ""
    return plain(f"{EFFECTS[alert.category]} {extent}{examples}; {seen}.")


def slack(alert: Alert, event: str, missed: bool = False) -> dict[str, Any]:
    """The payload for Slack's webhook. missed: its page never arrived, so this message is the first one."""
    mark = ":rotating_light:" if event == PAGE else ":white_check_mark:"
    late = " The page could not be delivered." if missed else ""
    headline = escaped(title(alert, event), 600)
    text = f"{mark} *{headline}*\n{escaped(details(alert, event), 1_500)}{late}\n{code(alert.key, 300)}"
    return {"text": headline, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]}


def pagerduty(alert: Alert, event: str) -> dict[str, Any]:
    """The arguments of `PagerdutyEventsHook.send_event`."""
    return {
        "summary": title(alert, event)[:SUMMARY],
        "severity": SEVERITY,
        "source": plain(_place(alert)),
        "action": "trigger" if event == PAGE else "resolve",
        "dedup_key": alert.key,
        "component": plain(alert.cause)[:LABEL],
        "group": plain(alert.team or _place(alert)),
        "class_type": alert.category,
        "custom_details": {"about": details(alert, event), "tier": alert.tier, "partitions": alert.partitions},
    }


def alertmanager(alerts: Iterable[Alert], now: datetime) -> list[dict[str, Any]]:
    """The body of `POST /api/v2/alerts`. Labels are the same for the whole life of an alert; none is a topic.

    Alertmanager resolves an alert at `endsAt`, so each pulse sends open ones again.
    """
    return [
        {
            "labels": {
                name: plain(value)[:LABEL]
                for name, value in (
                    ("alertname", FLEET_NAME if alert.cluster == FLEET else NAMES[alert.category][0]),
                    ("cluster", None if alert.cluster == FLEET else alert.cluster),
                    ("category", alert.category),
                    ("tier", alert.tier),
                    ("severity", SEVERITY),
                    ("cause", alert.cause),
                    ("team", alert.team),
                )
                if value  # Alertmanager has no empty labels
            },
            "annotations": {"summary": title(alert, PAGE), "description": details(alert, PAGE)},
            "startsAt": to_text(alert.first_seen),
            "endsAt": to_text(alert.closed or now + RESOLVES_AFTER),
        }
        for alert in alerts
    ]


def _place(alert: Alert) -> str:
    return "fleet" if alert.cluster == FLEET else alert.cluster


def _time(moment: datetime) -> str:
    return readable(to_text(moment))
