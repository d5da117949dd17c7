"""What is wanted of a fleet: tiers, selectors, waivers and clusters, as read from the policy files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from durability.policy.match import matches

IN_DATE = "a day not passed"
"""What is required of a waiver's day."""
# Kafka marks these as internal and no others (org.apache.kafka.common.internals.Topic).
KAFKA_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True)
class Tier:
    """What a class of topics needs: `requirements` by key, as the catalogue's controls declare them
    (`durability.catalogue.requirements`); what is left out isn't required. Numbers are lower bounds.
    """

    name: str
    requirements: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The stated requirements alone, without the name; JSON-ready.

        >>> Tier("scratch", {"replication_factor": 1, "survive": ()}).to_dict()
        {'replication_factor': 1}
        """
        stated = {k: list(v) if isinstance(v, tuple) else v for k, v in self.requirements.items()}
        return {k: v for k, v in stated.items() if v is not None and v != []}


@dataclass(frozen=True)
class Selector:
    """A line of `topics`: RE2 expressions that must all match (None: anything), and the tier they give."""

    tier: str
    cluster: str | None = None
    topic: str | None = None
    internal: bool | None = None
    team: str | None = None

    @property
    def unconditional(self) -> bool:
        return all(condition is None for condition in (self.cluster, self.topic, self.internal, self.team))

    def matches(self, cluster: str, topic: str, internal: bool, team: str | None) -> bool:
        """True if every stated condition holds; a cluster without a team matches no `team` condition."""
        return (
            (self.internal is None or self.internal == internal)
            and (self.cluster is None or matches(self.cluster, cluster))
            and (self.team is None or (team is not None and matches(self.team, team)))
            and (self.topic is None or matches(self.topic, topic))
        )


@dataclass(frozen=True)
class Application:
    """A line of `applications` (Kafka Streams): which groups, and what is required of their standbys (KIP-708)."""

    tier: str | None = None
    group: str | None = None
    cluster: str | None = None
    rack_aware_tags: tuple[str, ...] = ()
    standby_replicas: int | None = None

    def matches(self, cluster: str, group: str) -> bool:
        return (self.cluster is None or matches(self.cluster, cluster)) and (
            self.group is None or matches(self.group, group)
        )


# KIP-427's categories that a reading over time may be in, each including the worse ones after it.
DEGRADED = ("at-min-isr", "under-min-isr", "offline")
DAY_BEFORE = timedelta(days=1)
"""How much more than its windows a look-back covers: beginnings, and a timeline from one night to the next."""


@dataclass(frozen=True)
class Readings:
    """When AtMinIsr over time is a finding (KIP-427): for `prolonged_after` or longer, or `changes` within `within`.

    `by_category` and `by_tier` (its categories, None for all others) are delays that take the place of `prolonged_after`;
    what is said of a topic's tier counts before what is said of a category.
    """

    prolonged_after: timedelta = timedelta(minutes=30)
    bouncing_changes: int = 3
    bouncing_within: timedelta = timedelta(hours=6)
    by_category: dict[str, timedelta] = field(default_factory=dict)
    by_tier: dict[str, dict[str | None, timedelta]] = field(default_factory=dict)

    def delay(self, category: str, tier: str | None = None) -> timedelta:
        """How long partitions may be in a category, or a worse one, before that is prolonged.

        >>> minutes = [timedelta(minutes=m) for m in range(10)]
        >>> readings = Readings(minutes[9], by_category={"offline": minutes[1]}, by_tier={"gold": {None: minutes[5]}})
        >>> [str(readings.delay("offline", tier)) for tier in (None, "gold")]
        ['0:01:00', '0:05:00']
        """
        of_tier = self.by_tier.get(tier or "", {})
        general = self.by_category.get(category, self.prolonged_after)
        return of_tier.get(category, of_tier.get(None, general))

    @property
    def shortest_delay(self) -> timedelta:
        tiers = (None, *self.by_tier)
        return min(self.delay(category, tier) for category in DEGRADED for tier in tiers)

    @property
    def look_back(self) -> timedelta:
        """How far back readings are read."""
        delays = (self.delay(category, tier) for category in DEGRADED for tier in (None, *self.by_tier))
        return max(self.bouncing_within, *delays) + DAY_BEFORE


@dataclass(frozen=True)
class Maintenance:
    """A window [start, end) in UTC in which the clusters matching an RE2 expression may be degraded."""

    cluster: str
    start: datetime
    end: datetime
    reason: str


PERIODS = ("week", "month", "quarter")


@dataclass(frozen=True)
class Retention:
    """How long the lake keeps what; no verdict depends on it. See `durability.lake.retention` for what stays at any age.

    `snapshots`: facts as collected. `findings`: what nightly runs found. `pulses`: which topics and partitions a pulse found
    unhealthy. `counters`: clusters' partition counts, of pulses and nightly runs. Of each period (PERIODS) the first
    complete and verified nightly run is evidence for `evidence_for`, with the facts that it judged.
    """

    snapshots: timedelta = timedelta(days=90)
    findings: timedelta = timedelta(days=400)
    pulses: timedelta = timedelta(days=14)
    counters: timedelta = timedelta(days=400)
    evidence_each: str = "month"
    evidence_for: timedelta = timedelta(days=2555)


@dataclass(frozen=True)
class Policy:
    """Tiers, and which topics and applications are in which."""

    name: str
    tiers: dict[str, Tier]
    topics: tuple[Selector, ...]
    applications: tuple[Application, ...] = ()
    readings: Readings = field(default_factory=Readings)
    maintenance: tuple[Maintenance, ...] = ()
    retention: Retention = field(default_factory=Retention)

    @property
    def last_tier(self) -> str | None:
        """The tier of the last selector, a topic's that nobody thought of: what the brokers' defaults must meet."""
        return self.topics[-1].tier if self.topics else None

    def tier_of(self, cluster: str, topic: str, internal: bool | None = None, team: str | None = None) -> str | None:
        """The tier of the first selector that matches; None: nothing is required of this topic.

        `internal` None (unreadable) is decided by the name, since Kafka itself decides it so.
        """
        known = topic in KAFKA_INTERNAL if internal is None else internal
        return next((s.tier for s in self.topics if s.matches(cluster, topic, known, team)), None)

    def application_of(self, cluster: str, group: str) -> Application | None:
        """The first line of `applications` that matches; None: nothing is required of this group."""
        return next((a for a in self.applications if a.matches(cluster, group)), None)


@dataclass(frozen=True)
class Waiver:
    """A risk that someone accepted until a day. `control`, `cluster` and `resource` are RE2 expressions.

    `index`: position in the file, from 0, by which findings refer to it. `controls`: the catalogue's ids that
    `control` matches. `expires`: the last day (UTC) on which it counts.
    """

    index: int
    control: str
    controls: tuple[str, ...]
    cluster: str
    resource: str
    owner: str
    reason: str
    expires: date
    approved_by: str | None = None
    ticket: str | None = None

    def applies(self, control: str, cluster: str, resource: str) -> bool:
        """True if it names this control on this resource, expired or not."""
        return control in self.controls and matches(self.cluster, cluster) and matches(self.resource, resource)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; `expires` as YYYY-MM-DD."""
        return {**asdict(self), "controls": list(self.controls), "expires": self.expires.isoformat()}


@dataclass(frozen=True)
class Cluster:
    """A cluster of the fleet.

    `connection`: the Airflow Connection (type kafka) that reaches it. `provider`: who runs it, see the catalogue's
    providers. `controllers`: rack by controller id, since KRaft doesn't tell. `read_within`: how long reading it may take;
    what hasn't been read by then is unreadable.
    """

    id: str
    connection: str
    provider: str = "self"
    team: str | None = None
    controllers: dict[int, str] = field(default_factory=dict)
    read_within: timedelta = timedelta(minutes=2)


def fingerprint(policy: Policy, waivers: Sequence[Waiver] = ()) -> str:
    """SHA-256 (hex) of what policy and waivers say: independent of comments, layout and the order of keys and tiers.

    The order of selectors counts, since the first match decides; so does the waivers' order, since findings refer to
    waivers by position. How long the lake keeps things doesn't: no verdict depends on it.
    """
    # What a policy doesn't use leaves its fingerprint as it was before there was such a thing.
    readings = {name: value for name, value in asdict(policy.readings).items() if value != {}}
    if policy.readings.by_tier:
        tiers = policy.readings.by_tier.items()
        readings["by_tier"] = {tier: {c or "default": d for c, d in delays.items()} for tier, delays in tiers}
    tiers_stated = {name: tier.to_dict() for name, tier in policy.tiers.items()}
    judged_by = {name: value for name, value in asdict(policy).items() if name != "retention"}
    content = {
        "policy": {**judged_by, "tiers": tiers_stated, "readings": readings},
        "waivers": [waiver.to_dict() for waiver in waivers],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_normal)
    return hashlib.sha256(text.encode()).hexdigest()


def _normal(value: object) -> object:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    raise TypeError(f"no normal form for {type(value).__name__}")
