"""`Plan`: one run as a small JSON document, passed from task to task and to the Spark job.

Its size depends on clusters, tiers and waivers, not on topics. What is known about each resource is in the lake's table
`resolved_policy`. Times are RFC 3339 text in UTC.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, overload

from durability.errors import BadInput
from durability.plan.inventory import Inventory
from durability.policy.match import matches
from durability.policy.model import DEGRADED, Policy, Tier, Waiver, fingerprint
from durability.policy.numbers import numbers

FORMAT = "durability-plan/1"
ACCEPTED = "accepted"
COUNTED = "counted"
"""Status in a row of `runs`: the run counted this earlier snapshot's partition health, but didn't evaluate it."""
LOST = "the auditor failed, not the cluster: its collect task ended without a result; see that task's log"
"""The reason of a cluster that wasn't read because its collect task was lost, for example with its worker."""
NIGHTLY = "nightly"
KINDS = (NIGHTLY, "pulse")
SMALL = 200_000
"""Partitions of all evaluated snapshots. Below this size, preparing Spark for a large run costs more than it saves."""


@overload
def to_text(moment: datetime) -> str: ...
@overload
def to_text(moment: None) -> None: ...
@overload
def to_text(moment: datetime | None) -> str | None: ...
def to_text(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC. Microseconds are written only if there are any. None gives None."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The time that `to_text` wrote, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


@dataclass(frozen=True)
class PolicyPart:
    """The policy of a run. Durations are in seconds.

    sha256: the fingerprint of policy and waivers.
    tiers: by name, the keys that each tier states (`Tier.to_dict`).
    objectives: by name, the objective of each tier that has one (`Tier.objective`).
    last_tier: the tier of the last selector.
    applications: the policy's lines for Streams applications.
    readings: thresholds of the readings over time. `delays` has seconds by tier and category; tier "" is the default.
    maintenance: `cluster` (a pattern), `from`, `to` and `reason` of each window.
    """

    name: str
    sha256: str
    tiers: dict[str, dict[str, Any]]
    last_tier: str | None
    applications: list[dict[str, Any]] = field(default_factory=list)
    readings: dict[str, Any] = field(default_factory=dict)
    maintenance: list[dict[str, str]] = field(default_factory=list)
    objectives: dict[str, dict[str, float]] = field(default_factory=dict)
    owners: list[dict[str, str | None]] = field(default_factory=list)

    @property
    def required(self) -> dict[str, dict[str, Any]]:
        """The requirements of each tier as plain numbers (`durability.policy.numbers`)."""
        return {name: numbers(stated) for name, stated in self.tiers.items()}

    def tier(self, name: str | None) -> Tier | None:
        """The tier of that name; None if `name` is None."""
        return Tier(name, self.tiers[name], self.objectives.get(name, {})) if name is not None else None

    def windows(self, cluster: str) -> list[tuple[datetime, datetime, str]]:
        """The cluster's maintenance windows in order, as (from, to, reason), `to` exclusive. Overlapping ones are merged."""
        mine = [w for w in self.maintenance if matches(w["cluster"], cluster)]
        merged: list[tuple[datetime, datetime, str]] = []
        for start, end, reason in sorted((from_text(w["from"]), from_text(w["to"]), w["reason"]) for w in mine):
            if merged and start <= merged[-1][1]:
                before = merged.pop()
                start, end, reason = before[0], max(end, before[1]), "; ".join(dict.fromkeys((before[2], reason)))
            merged.append((start, end, reason))
        return merged


@dataclass(frozen=True)
class StaleSnapshot:
    """The last accepted snapshot (full or pulse) of a cluster that can't be evaluated now. The report names it."""

    snapshot_id: str
    captured_at: str


@dataclass(frozen=True)
class SnapshotPart:
    """One cluster in this run.

    status: accepted (evaluated), rejected (by the gate) or failed (not readable). The last two have a `reason`.
    previous_run_id, previous_result_id, previous_policy_sha256: the last run of this kind that evaluated the cluster. If the
        cluster isn't evaluated now, the last run that names it, so that the report can say since when it is unknown.
    previous_attempt_id: the attempt with the facts of the accepted snapshot before this one.
    resolved_result_id: in a pulse, the last nightly run that evaluated the cluster. It resolved the tiers of its topics.
    """

    cluster: str
    status: str
    captured_at: str | None = None
    snapshot_id: str | None = None
    attempt_id: str | None = None
    reason: str | None = None
    sha256: str | None = None
    source: str | None = None
    provider: str | None = None
    team: str | None = None
    partitions: int = 0
    previous_run_id: str | None = None
    previous_result_id: str | None = None
    previous_policy_sha256: str | None = None
    previous_attempt_id: str | None = None
    stale_snapshot: StaleSnapshot | None = None
    resolved_result_id: str | None = None

    @property
    def judged(self) -> bool:
        return self.status == ACCEPTED

    @property
    def moment(self) -> datetime:
        """`captured_at` as a datetime in UTC. Every evaluated part has one."""
        assert self.captured_at is not None
        return from_text(self.captured_at)


@dataclass(frozen=True)
class Earlier:
    """An earlier accepted snapshot whose partition health no run has counted yet."""

    cluster: str
    captured_at: str
    snapshot_id: str
    attempt_id: str
    sha256: str | None = None
    partitions: int = 0


@dataclass(frozen=True)
class LookBack:
    """Input of the readings over time (KIP-427).

    since: readings use what runs counted after this time.
    tried: by cluster, the number of earlier snapshots in that time, failed ones included.
    uncounted: earlier snapshots that this run has to count.
    """

    since: str
    tried: dict[str, int]
    uncounted: list[Earlier] = field(default_factory=list)

    @property
    def since_with_offset(self) -> str:
        """`since` as pyiceberg reads it: with an offset, because it doesn't accept "Z"."""
        return from_text(self.since).isoformat()


@dataclass(frozen=True)
class Plan:
    """One run.

    run_id: the run.
    kind: nightly or pulse.
    result_id: this attempt to evaluate the run.
    waivers: `Waiver.to_dict` of each, in the order of the file.
    partitions: the number in all evaluated snapshots. It sizes the Spark session.
    lake: the lake's location.
    staged: for a pulse, staged Parquet files by fact table. Its facts are in no table of the lake. Empty for a nightly run.
    applications: how many Streams applications have a placement verdict in `resolved_policy`.
    look_back: None for a pulse, and if the lake has no recent earlier snapshot.
    grouped: attempts (evaluated, uncounted and previous) whose rows of `partition_groups` may be used.
    inventory: what inventories list; None if the clusters file has none, and had none in the last run, or if it isn't compared.
    fleet: what identifies the clusters file (`durability.policy.fleet_name`); None if the run says nothing about a fleet.
    """

    run_id: str
    kind: str
    result_id: str
    started_at: str
    policy: PolicyPart
    waivers: list[dict[str, Any]]
    snapshots: list[SnapshotPart]
    partitions: int
    lake: str | None = None
    staged: dict[str, list[str]] = field(default_factory=dict)
    applications: int = 0
    look_back: LookBack | None = None
    grouped: list[str] = field(default_factory=list)
    inventory: Inventory | None = None
    fleet: str | None = None

    @property
    def small(self) -> bool:
        """True if Spark has so few rows that it spends its time on starting and planning."""
        return self.partitions < SMALL

    @property
    def pulse(self) -> bool:
        """True if the run evaluates partition health only, from staged facts."""
        return self.kind == "pulse"

    @property
    def judged(self) -> list[SnapshotPart]:
        """The snapshots that this run evaluates."""
        return [s for s in self.snapshots if s.judged]

    @property
    def attempts(self) -> list[str]:
        """The attempts with the facts of the snapshots that this run evaluates."""
        return [s.attempt_id for s in self.judged if s.attempt_id is not None]

    @property
    def latest(self) -> str:
        """The time of the run's newest snapshot, accepted or not; without one, the start of the run."""
        moments = [s.captured_at for s in self.snapshots if s.captured_at]
        return max(moments, key=from_text, default=self.started_at)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str, source: object = "plan.json") -> Plan:
        """The plan that `to_json` wrote. Unknown fields are ignored. Raises BadInput if the text isn't a plan."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise BadInput(source, "", f"not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise BadInput(source, "/format", f"expected a plan with format {FORMAT}")
        try:
            snapshots = [_part(SnapshotPart, s) for s in content["snapshots"]]
            return _part(cls, {**content, "policy": _part(PolicyPart, content["policy"]), "snapshots": snapshots})
        except (KeyError, TypeError) as error:
            raise BadInput(source, "", f"not a whole plan: {error}") from None

    def write(self, path: Path | str) -> Path:
        """Write the plan to `path` atomically."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(self.to_json(), encoding="utf-8")
        return partial.replace(path)

    @classmethod
    def read(cls, path: Path | str) -> Plan:
        """The plan in the file at `path`. Raises BadInput if the file can't be read or isn't a plan."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise BadInput(path, "", f"can't be read: {error.strerror}") from None
        return cls.from_json(text, path)


def _part(cls: type, content: dict[str, Any]) -> Any:
    names = {f.name for f in fields(cls)}
    known = {k: v for k, v in content.items() if k in names}
    if cls is LookBack:
        known["uncounted"] = [_part(Earlier, e) for e in known["uncounted"]]
    if cls is Plan and known.get("look_back"):
        known["look_back"] = _part(LookBack, known["look_back"])
    if cls is Plan and known.get("inventory"):
        known["inventory"] = Inventory.from_dict(known["inventory"])
    if cls is SnapshotPart and known.get("stale_snapshot"):
        known["stale_snapshot"] = _part(StaleSnapshot, known["stale_snapshot"])
    return cls(**known)


def policy_part(policy: Policy, waivers: list[Waiver]) -> PolicyPart:
    """The part of a plan that describes its policy."""
    readings = policy.readings
    return PolicyPart(
        name=policy.name,
        sha256=fingerprint(policy, waivers),
        tiers={name: tier.to_dict() for name, tier in policy.tiers.items()},
        last_tier=policy.last_tier,
        objectives={name: dict(tier.objective) for name, tier in policy.tiers.items() if tier.objective},
        applications=[{**asdict(a), "rack_aware_tags": list(a.rack_aware_tags)} for a in policy.applications],
        readings={
            "prolonged_after": int(readings.prolonged_after.total_seconds()),
            "bouncing_changes": readings.bouncing_changes,
            "bouncing_within": int(readings.bouncing_within.total_seconds()),
            "shortest_delay": int(readings.shortest_delay.total_seconds()),
            "look_back": int(readings.look_back.total_seconds()),
            "delays": {
                tier or "": {c: int(readings.delay(c, tier).total_seconds()) for c in DEGRADED}
                for tier in (None, *readings.by_tier)
            },
        },
        maintenance=[
            {"cluster": m.cluster, "from": to_text(m.start), "to": to_text(m.end), "reason": m.reason}
            for m in policy.maintenance
        ],
        owners=[asdict(owner) for owner in policy.owners],
    )
