"""Pulses drawn as text, and what the rules of alerts make of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from durability.alerts import decide
from durability.alerts.model import OPEN, PENDING, UNREADABLE, Alert, Cause, ClusterPulse, Problem
from durability.alerts.observe import causes

START = datetime(2026, 11, 21, 2, tzinfo=UTC)
EVERY = timedelta(minutes=5)
AFTER = timedelta(minutes=5)
UNREAD, MISSING = "unread", "missing"
"""A pulse that could not read the cluster, and none of it."""


def problem(text: str, category: str = "offline", tier: str = "critical", after: timedelta = AFTER, racks=None):
    topics = frozenset({f"orders of {tier}"})
    return Problem(category, tier, after, causes(text, "eu", racks or {}), 3, topics, (f"orders-{len(text)}",))


def unreadable(after=AFTER, reason="no route"):
    return Problem(UNREADABLE, "critical", after, (Cause("not read", frozenset({"cluster"})),), 0, reason=reason)


class Replay:
    """Pulses of one fleet, one after the other. `said` has what was decided: (minute, cluster, event, cause)."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []
        self.said: list[tuple[int, str, str, str]] = []

    def pulse(self, minute: float, repeat: int = 1, listed: tuple[str, ...] = ("eu", "us"), **seen) -> None:
        """seen: by cluster, its problems, the text of one, UNREAD or MISSING. unknown: of all clusters."""
        moment = START + timedelta(minutes=minute)
        unknown = seen.pop("unknown", {})
        pulses = []
        for cluster, what in seen.items():
            if what == UNREAD:
                pulses.append(ClusterPulse(cluster, moment, "payments", (unreadable(),), unread=True))
            if what in (UNREAD, MISSING):
                continue
            problems = [problem(text) for text in what.split(" + ") if text] if isinstance(what, str) else what
            pulses.append(ClusterPulse(cluster, moment, "payments", tuple(problems), unknown))
        for _ in range(repeat):
            before = {alert.key: alert.state for alert in self.alerts}
            self.alerts = decide.advance(self.alerts, pulses, listed, moment + timedelta(seconds=30))
            for alert in self.alerts:
                if (was := before.get(alert.key)) != alert.state and alert.state not in (PENDING, "dropped"):
                    event = "page" if alert.state == OPEN else "clear"
                    self.said.append((int(minute), alert.cluster, event, alert.cause if event == "page" else was))

    def line(self, text: str) -> Replay:
        """Pulses of the cluster eu. One word each: the numbers of the brokers that are down, `.` for none, `?` for no pulse,
        `!` for one that could not read it.
        """
        words = text.split()
        for number in range(len(words)):
            self.one(words, number)
        return self

    def one(self, words: list[str], number: int, repeat: int = 1) -> None:
        """One pulse of a line."""
        brokers = ", ".join(f"broker:{broker} down" for broker in words[number].split(","))
        self.pulse(number * 5, repeat, eu={"?": MISSING, "!": UNREAD, ".": ""}.get(words[number], brokers))

    @property
    def events(self) -> list[tuple[int, str]]:
        """When something was sent, and what: a page's cause, or `clear`."""
        return [(minute, cause if event == "page" else event) for minute, _, event, cause in self.said]
