"""Tiers, selectors, applications, waivers and clusters, as the policy files state them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from durability.policy.match import matches

IN_DATE = "a day not passed"
"""The requirement on a waiver's last day."""
# Kafka marks these as internal and no others (org.apache.kafka.common.internals.Topic).
KAFKA_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
PAGING = ("offline", "under-min-isr")
"""The categories of partitions (KIP-427) that a pulse can page for."""


@dataclass(frozen=True)
class Tier:
    """The requirements on a class of topics, by key (`durability.catalogue.requirements`), as a policy states them.

    Numbers are lower bounds. `{"min", "max"}` is a range, "rf-1" and "all" are numbers relative to the replication factor
    (`durability.policy.numbers`). A key that is left out isn't required.

    objective: by class (writes, data), the percentage of partition-minutes in which no single loss does that harm. No control
        reads it.
    page_after: by category (PAGING), how long a topic may be in it before a pulse pages. A category that is left out never
        pages. No verdict depends on it.
    waiver_longest: how long a waiver of its topics may last from its approval, in whole days; None for no limit.
    """

    name: str
    requirements: Mapping[str, Any] = field(default_factory=dict)
    objective: Mapping[str, float] = field(default_factory=dict)
    page_after: Mapping[str, timedelta] = field(default_factory=dict)
    waiver_longest: timedelta | None = None

    def to_dict(self) -> dict[str, Any]:
        """The stated requirements alone, without the name, objective, paging and term of waivers; JSON-ready.

        >>> Tier("scratch", {"replication_factor": 1, "survive": ()}).to_dict()
        {'replication_factor': 1}
        """
        stated = {k: list(v) if isinstance(v, tuple) else v for k, v in self.requirements.items()}
        return {k: v for k, v in stated.items() if v is not None and v != []}


@dataclass(frozen=True)
class Selector:
    """A line of `topics`: the tier of topics that meet every condition. Conditions are RE2 expressions; None for any value.

    A cluster without a team matches no `team` condition.

    replication_factor: the least and the greatest; None for no limit. A topic's number is that of the partition with the
        fewest replicas.
    """

    tier: str
    cluster: str | None = None
    topic: str | None = None
    internal: bool | None = None
    team: str | None = None
    replication_factor: tuple[int | None, int | None] | None = None

    @property
    def unconditional(self) -> bool:
        conditions = (self.cluster, self.topic, self.internal, self.team, self.replication_factor)
        return all(condition is None for condition in conditions)

    def matches_cluster(self, cluster: str, team: str | None) -> bool:
        return (self.cluster is None or matches(self.cluster, cluster)) and (
            self.team is None or (team is not None and matches(self.team, team))
        )


@dataclass(frozen=True)
class Application:
    """A line of `applications` (Kafka Streams): which groups, and the requirements on their standbys (KIP-708)."""

    tier: str | None = None
    group: str | None = None
    cluster: str | None = None
    rack_aware_tags: tuple[str, ...] = ()
    standby_replicas: int | None = None

    def matches(self, cluster: str, group: str) -> bool:
        return (self.cluster is None or matches(self.cluster, cluster)) and (
            self.group is None or matches(self.group, group)
        )


# KIP-427's categories that are read over time. Each includes the worse ones after it.
DEGRADED = ("at-min-isr", "under-min-isr", "offline")
DAY_BEFORE = timedelta(days=1)
"""A look-back covers a day more than its windows, for their beginnings and for a timeline from one night to the next."""


@dataclass(frozen=True)
class Readings:
    """When AtMinIsr over time is a finding (KIP-427).

    It is one after `prolonged_after` or longer, or after `bouncing_changes` within `bouncing_within`.

    by_category, by_tier: delays that replace `prolonged_after`. A delay of the topic's tier, by category (None: other
        categories), overrides one by category.
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

    def _delays(self) -> list[timedelta]:
        return [self.delay(category, tier) for category in DEGRADED for tier in (None, *self.by_tier)]

    @property
    def shortest_delay(self) -> timedelta:
        return min(self._delays())

    @property
    def look_back(self) -> timedelta:
        """How far back states are read."""
        return max(self.bouncing_within, *self._delays()) + DAY_BEFORE


@dataclass(frozen=True)
class Owner:
    """A line of `owners`: the team that findings on matching resources are for. Conditions are RE2 expressions; None for any.

    topic, group: only topics, or only Kafka Streams applications, meet these.
    """

    team: str
    cluster: str | None = None
    topic: str | None = None
    group: str | None = None


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
    """How long data is kept. No verdict depends on it. See `durability.lake.retention` for rows that stay at any age.

    snapshots: collected facts.
    findings: of nightly runs.
    pulses: topics and partitions that a pulse found unhealthy.
    counters: clusters' partition counts, of pulses and nightly runs.
    evidence_for: how long the first complete and verified nightly run of each period (PERIODS) is kept as evidence, with the
        facts that it evaluated.
    evidence_folders: of the runs' folders in OUT/evidence; None to keep them for ever.
    """

    snapshots: timedelta = timedelta(days=90)
    findings: timedelta = timedelta(days=400)
    pulses: timedelta = timedelta(days=14)
    counters: timedelta = timedelta(days=400)
    evidence_each: str = "month"
    evidence_for: timedelta = timedelta(days=2555)
    evidence_folders: timedelta | None = None


@dataclass(frozen=True)
class EvidenceCopy:
    """Where each run's evidence is copied, and how long the store has to keep it.

    mode: of Object Lock, GOVERNANCE or COMPLIANCE; None without a lock. days: how long, from the copy on.
    """

    bucket: str
    prefix: str = ""
    mode: str | None = None
    days: int = 0

    @property
    def address(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


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
    owners: tuple[Owner, ...] = ()
    evidence: EvidenceCopy | None = None

    @property
    def last_tier(self) -> str | None:
        """The tier of the last selector: that of new topics, which the brokers' defaults must meet."""
        return self.topics[-1].tier if self.topics else None

    def application_of(self, cluster: str, group: str) -> Application | None:
        """The first line of `applications` that matches; None if nothing is required of this group."""
        return next((a for a in self.applications if a.matches(cluster, group)), None)


@dataclass(frozen=True)
class Waiver:
    """A risk that is accepted until a day. control, cluster, resource: RE2 expressions.

    index: position in the file, from 0. Findings refer to it.
    controls: ids of the controls that `control` matches.
    expires: the last day (UTC) on which the waiver is valid.
    approved_count: the number of resources that it covered when it was approved.
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
    requested_by: str | None = None
    approved_at: date | None = None
    approved_count: int | None = None
    risk: str | None = None
    compensating_control: str | None = None

    def applies(self, control: str, cluster: str, resource: str) -> bool:
        """True if it names this control on this resource, expired or not."""
        return control in self.controls and matches(self.cluster, cluster) and matches(self.resource, resource)

    def to_dict(self) -> dict[str, object]:
        """As JSON values, with days as YYYY-MM-DD."""
        days = {
            name: day and day.isoformat()
            for name, day in (("expires", self.expires), ("approved_at", self.approved_at))
        }
        return {**asdict(self), "controls": list(self.controls), **days}


@dataclass(frozen=True)
class Cluster:
    """A cluster of the fleet.

    connection: the Airflow Connection (type kafka) that reaches it.
    provider: who runs it, one of the catalogue's providers.
    controllers: rack by controller id, which Kafka doesn't state.
    read_within: how long reading it may take. What hasn't been read by then is unreadable.
    kafka_cluster_id: Kafka's id of the cluster; None to expect that of the last snapshot.
    inventory_names: its other names in inventories.
    """

    id: str
    connection: str
    provider: str = "self"
    team: str | None = None
    controllers: dict[int, str] = field(default_factory=dict)
    read_within: timedelta = timedelta(minutes=2)
    kafka_cluster_id: str | None = None
    inventory_names: tuple[str, ...] = ()


NO_VERDICT = ("retention", "owners", "evidence")
"""Parts of a policy on which no verdict depends."""


def fingerprint(policy: Policy, waivers: Sequence[Waiver] = ()) -> str:
    """SHA-256 (hex) of the content of policy and waivers, independent of comments, layout, and the order of keys and tiers.

    The order of selectors counts, because the first match decides. The order of waivers counts, because findings refer to them
    by position. `retention`, `owners`, `evidence` and a tier's `page_after` don't count, because no verdict depends on them.
    """
    # Keys that came later change the fingerprint only of policies that use them.
    readings = {name: value for name, value in asdict(policy.readings).items() if value != {}}
    if policy.readings.by_tier:
        tiers = policy.readings.by_tier.items()
        readings["by_tier"] = {tier: {c or "default": d for c, d in delays.items()} for tier, delays in tiers}
    tiers_stated = {name: tier.to_dict() for name, tier in policy.tiers.items()}
    for name, tier in policy.tiers.items():
        if tier.objective:
            tiers_stated[name]["objective"] = {harm: float(percent) for harm, percent in tier.objective.items()}
        if tier.waiver_longest is not None:
            tiers_stated[name]["waiver_longest"] = tier.waiver_longest
    evaluated = {name: value for name, value in asdict(policy).items() if name not in NO_VERDICT}
    selectors = [
        {name: value for name, value in asdict(s).items() if name != "replication_factor" or value is not None}
        for s in policy.topics
    ]
    content = {
        "policy": {**evaluated, "tiers": tiers_stated, "topics": selectors, "readings": readings},
        "waivers": [
            {
                name: value
                for name, value in waiver.to_dict().items()
                if value is not None or name in ("approved_by", "ticket")
            }
            for waiver in waivers
        ],
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_normal)
    return hashlib.sha256(text.encode()).hexdigest()


def _normal(value: object) -> object:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    raise TypeError(f"no normal form for {type(value).__name__}")
