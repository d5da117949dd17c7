"""Alerts and what a pulse saw, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256

PENDING, OPEN, CLOSED, DROPPED = "pending", "open", "closed", "dropped"
"""States of an alert. pending: not paged yet. dropped: over before it was paged."""
PAGE, CLEAR = "page", "all-clear"
KEY = 255
"""The longest key: PagerDuty accepts no longer one."""
NO_CAUSE = "unknown cause"
UNREADABLE = "unreadable"
"""The category of a cluster that pulses can't read."""
FLEET = "*"
"""`cluster` of an alert about many clusters. No cluster has this id."""


@dataclass(frozen=True)
class Cause:
    """One thing that keeps replicas out of sync or leaders missing.

    text: as in `partition_health.cause`, such as "broker:3 down".
    subjects: what it is about, such as "broker:3". A rack includes its brokers.
    """

    text: str
    subjects: frozenset[str]


@dataclass(frozen=True)
class Problem:
    """Partitions of one category and tier that have the same causes, counted.

    after: how long the tier lets its topics be in the category.
    topics: their names: another problem may have partitions of the same topics.
    examples: names of some of the partitions.
    reason: why a cluster could not be read.
    clusters, listed: of FLEET, how many could not be read, and how many the pulse was to read.
    """

    category: str
    tier: str
    after: timedelta
    causes: tuple[Cause, ...]
    partitions: int = 1
    topics: frozenset[str] = frozenset()
    examples: tuple[str, ...] = ()
    reason: str | None = None
    clusters: int | None = None
    listed: int | None = None

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset().union(*(cause.subjects for cause in self.causes))


@dataclass(frozen=True)
class ClusterPulse:
    """What a pulse saw of a cluster.

    problems: of topics whose tier pages.
    unknown: by category, the partitions and unread topics of such tiers that may be in it.
    paging: by category, the tiers that page for it; None if that isn't known.
    unread: the pulse could not read the cluster. Its only problem is UNREADABLE, and it says nothing of other categories.
    lost: it was not read because the auditor failed: its collect task ended without a result.
    covered: an alert of the fleet pages for it, so none of its own starts or pages.
    """

    cluster: str
    moment: datetime
    team: str | None = None
    problems: tuple[Problem, ...] = ()
    unknown: Mapping[str, int] = field(default_factory=dict)
    paging: Mapping[str, frozenset[str]] | None = None
    unread: bool = False
    lost: bool = False
    covered: bool = False


@dataclass(frozen=True)
class TierSight:
    """When a tier's partitions were seen in an alert: since when, in how many pulses, and the pulses missed in a row."""

    tier: str
    since: datetime
    pulses: int = 1
    missed: int = 0


@dataclass(frozen=True)
class Delivery:
    """An attempt to send an event of an alert. error: None if it arrived.

    revision: that of the alert. An alert whose cause changed is sent again to receivers that recognize its key.
    """

    channel: str
    event: str
    revision: int
    at: datetime
    error: str | None = None


@dataclass(frozen=True)
class Alert:
    """One alert of a cluster and category, from its first sight to its all-clear.

    key: the same in all states; at most KEY characters.
    cause: as first seen. `now` has the causes of the last sight, `subjects` those of the whole alert.
    tier, after: the tier that paged, and its delay; None while pending.
    partitions, topics, examples: at the last sight.
    pulsed: the newest pulse of the cluster that was taken into account.
    clean: pulses in a row that didn't see it.
    unknown: partitions and topics that were unknown at first sight. More of them hold up the all-clear.
    why: why it is closed, unless by an all-clear.
    reason: why its cluster could not be read, at the last sight. Of FLEET: the most frequent reason.
    clusters, listed: as in Problem, at the last sight.
    fleet: the name of the fleet whose pulses saw it; None for documents, and for alerts of earlier versions.
    """

    key: str
    cluster: str
    category: str
    cause: str
    subjects: frozenset[str]
    first_seen: datetime
    last_seen: datetime
    pulsed: datetime
    now: tuple[str, ...] = ()
    team: str | None = None
    state: str = PENDING
    tier: str | None = None
    after: timedelta | None = None
    tiers: tuple[TierSight, ...] = ()
    partitions: int = 0
    topics: int = 0
    examples: tuple[str, ...] = ()
    clean: int = 0
    unknown: int = 0
    revision: int = 0
    opened: datetime | None = None
    closed: datetime | None = None
    why: str | None = None
    reason: str | None = None
    clusters: int | None = None
    listed: int | None = None
    fleet: str | None = None
    deliveries: tuple[Delivery, ...] = ()

    @property
    def tracked(self) -> bool:
        return self.state in (PENDING, OPEN)

    def arrived(self, channel: str, event: str) -> int | None:
        """The newest revision of an event that a channel received; None if it received none."""
        return max(
            (d.revision for d in self.deliveries if (d.channel, d.event, d.error) == (channel, event, None)),
            default=None,
        )

    def has_failed(self, channel: str) -> bool:
        """Could something not be sent to a channel, and not since either?"""
        return any(d.channel == channel and d.error is not None for d in self.deliveries)


def key_of(cluster: str, category: str, cause: str, first_seen: datetime) -> str:
    """The key of an alert. Its name is readable. A long one is cut and ends with a hash.

    >>> key_of("eu", "offline", "broker:3 down", datetime(2026, 11, 21, 2, 5, tzinfo=UTC))
    'eu/offline/broker:3 down/20261121T020500Z'
    """
    name = f"{cluster}/{category}/{cause}/{first_seen.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    if len(name) <= KEY and name.isascii() and name.isprintable():
        return name
    visible = "".join(c if c.isascii() and c.isprintable() else "?" for c in name)
    return f"{visible[: KEY - 65]}/{sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()}"
