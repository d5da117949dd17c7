"""Builds the plan of a run and resolves the policy for all of its resources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from durability.errors import AuditError
from durability.lake import partition_groups
from durability.lake.attempt import FULL, PULSE
from durability.lake.conditions import of_attempts
from durability.lake.tables import CLUSTERS, FACTS, PARTITION_GROUPS
from durability.plan.inventory import Inventory, compare
from durability.plan.look_back import look_back
from durability.plan.plan import (
    ACCEPTED,
    COUNTED,
    KINDS,
    NIGHTLY,
    Plan,
    SnapshotPart,
    StaleSnapshot,
    from_text,
    policy_part,
    to_text,
)
from durability.policy.model import Cluster, Policy, Waiver
from durability.policy.terms import with_limits

if TYPE_CHECKING:
    from durability.lake import Attempt, Lake
    from durability.policy.inventory import Listing

STALE_PULSES = timedelta(days=1)
"""How far back to search for a cluster's last accepted pulse."""
Row = Mapping[str, Any]


def build_plan(
    lake: Lake,
    *,
    run_id: str,
    result_id: str,
    kind: str,
    policy: Policy,
    waivers: Sequence[Waiver],
    snapshots: Iterable[Any],
    clusters: Sequence[Cluster] = (),
    attempts: Sequence[Attempt] = (),
    started_at: datetime | None = None,
    inventory: Sequence[Listing] | None = None,
    fleet: str | None = None,
) -> Plan:
    """The plan of one run over `snapshots`. A nightly run's rows of `resolved_policy` are written, too.

    snapshots: one row of `snapshots` per cluster, as `Lake.publish` and `Lake.record_failures` return them (objects or
        mappings).
    clusters: provider and team for clusters without facts.
    attempts: what a pulse staged, at least the attempts of `snapshots`. Nightly runs don't need it.
    started_at: now if not given.
    inventory: what was read of the clusters file's inventories, which may be none. None: the run doesn't compare any, so
        findings of earlier runs stay as they are.
    fleet: what identifies the clusters file (`durability.policy.fleet_name`); None if the run says nothing about a fleet.
    Raises AuditError if there is no cluster, or if a cluster occurs twice.
    """
    from durability.plan.resolved import resolve_policy

    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}; there are {', '.join(KINDS)}")
    rows = sorted((_row(s) for s in snapshots), key=lambda r: r["cluster"])
    _check_clusters(rows)
    known = {c.id: c for c in clusters}
    judged = [r for r in rows if r["status"] == ACCEPTED]
    staged = _staged(judged, attempts) if kind == PULSE else []
    facts = _staged_cluster_facts(lake, staged) if kind == PULSE else _cluster_facts(lake, judged)
    history = _History(lake, kind, run_id, rows)
    back = None if kind == PULSE else look_back(lake, policy.readings, judged, history.counted)
    earlier = back.uncounted if back else []
    parts = [_part(row, facts.get(row["attempt_id"]), known.get(row["cluster"]), history) for row in rows]
    if kind == PULSE:
        grouped = [a.attempt_id for a in staged if a.files.get(PARTITION_GROUPS.name)]
    else:
        before = [history.snapshot_before(r["cluster"], r["captured_at"]) for r in judged]
        uncounted = [vars(e) | {"captured_at": from_text(e.captured_at)} for e in earlier]
        grouped = _grouped(lake, [*judged, *filter(None, before), *uncounted])
    plan = Plan(
        run_id=run_id,
        kind=kind,
        result_id=result_id,
        started_at=to_text(started_at or datetime.now(UTC)),
        policy=policy_part(policy, list(waivers)),
        waivers=[with_limits(waiver, policy) for waiver in waivers],
        snapshots=parts,
        partitions=sum(p.partitions for p in parts if p.judged) + sum(e.partitions for e in earlier),
        lake=lake.location,
        staged=_files_by_table(staged),
        look_back=back,
        grouped=grouped,
        inventory=None if kind == PULSE or inventory is None else _inventory(lake, inventory, clusters, history, fleet),
        fleet=None if kind == PULSE else fleet,
    )
    return plan if plan.pulse else replace(plan, applications=resolve_policy(lake, plan, policy, waivers))


def _inventory(
    lake: Lake, listings: Sequence[Listing], clusters: Sequence[Cluster], history: _History, fleet: str | None
) -> Inventory | None:
    """The inventories, compared with the clusters file. None if there is none, and the fleet's last run had none.

    Runs of other fleets in the lake have other clusters. So nothing is compared with them.
    """
    before: list[str] = []
    for run in reversed(history.inventories):
        earlier = Inventory.from_dict(json.loads(run["inventory"]))
        if earlier.fleet != fleet:
            continue
        if not before and not listings and not earlier.sources:
            return None
        if not before or not earlier.unread:
            before.append(run["result_id"])
        if not earlier.unread:
            break
    if not listings and not before:
        return None
    found = {name: kafka_id for name, (kafka_id, _) in lake.kafka_cluster_ids(c.id for c in clusters).items()}
    # One that is stated is checked whenever the cluster is read.
    stated = {c.id: c.kafka_cluster_id for c in clusters if c.kafka_cluster_id}
    return compare(listings, clusters if listings else (), found | stated, before, fleet)


def _row(snapshot: Any) -> dict[str, Any]:
    row = dict(snapshot) if isinstance(snapshot, Mapping) else dict(vars(snapshot))
    if isinstance(row["captured_at"], str):
        row["captured_at"] = from_text(row["captured_at"])
    return row


def _check_clusters(rows: list[dict[str, Any]]) -> None:
    if not rows:
        raise AuditError(
            "nothing to judge: no cluster was read; name clusters in clusters.yaml, or TOPOLOGY, or BOOTSTRAP"
        )
    twice = sorted(name for name, count in Counter(r["cluster"] for r in rows).items() if count > 1)
    if twice:
        raise AuditError(f"a run judges one snapshot a cluster; there are several of {', '.join(twice)}")


def _cluster_facts(lake: Lake, rows: list[dict[str, Any]]) -> dict[str, Row]:
    """provider and team by attempt id, from committed facts."""
    if not rows:
        return {}
    found = lake.scan(CLUSTERS, of_attempts(rows), ["attempt_id", "provider", "team"])
    return {r["attempt_id"]: r for r in found.to_pylist()}


def _grouped(lake: Lake, rows: Sequence[Row]) -> list[str]:
    """Ids of the attempts whose `partition_groups` were built with the settings that today's rules read."""
    many = [row for row in rows if (row["partitions"] or 0) >= partition_groups.FROM]
    # A run that an earlier version started may meet a lake without this table.
    if not many or not lake.has(PARTITION_GROUPS):
        return []
    found = lake.scan(PARTITION_GROUPS, of_attempts(many), ["attempt_id", "reads"])
    return pc.unique(found.filter(pc.field("reads") == partition_groups.READS)["attempt_id"]).to_pylist()


def _staged(rows: list[dict[str, Any]], attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts of `rows`, in the order of `rows`."""
    known = {a.attempt_id: a for a in attempts}
    missing = [r["cluster"] for r in rows if r["attempt_id"] not in known]
    if missing:
        raise ValueError(f"a pulse is judged by what was staged; nothing is known of that of {', '.join(missing)}")
    return [known[r["attempt_id"]] for r in rows]


def _files_by_table(attempts: list[Attempt]) -> dict[str, list[str]]:
    """The staged files of these attempts by fact table. Empty without attempts."""
    if not attempts:
        return {}
    return {table.name: [path for a in attempts for path in a.files.get(table.name, [])] for table in FACTS}


def _staged_cluster_facts(lake: Lake, attempts: list[Attempt]) -> dict[str, Row]:
    """provider and team by attempt id, from files that are not committed."""
    return {a.attempt_id: row for a in attempts for row in lake.read_staged(a, CLUSTERS).to_pylist()}


class _History:
    """The lake's earlier runs and accepted snapshots, read once for the whole fleet.

    A pulse is compared with nothing, so it reads no snapshots with facts. Of runs it only needs those that resolved tiers.

    runs: by cluster, (run, captured_at) of the earlier runs of this kind that evaluated it, oldest first.
    resolved: in a pulse, by cluster, (result_id, captured_at) of the nightly runs that evaluated it, oldest first.
    last: by cluster, the newest run of this kind that names it, evaluated or not.
    counted: (cluster, snapshot_id) of snapshots that a run of this kind evaluated or counted.
    full: by cluster, its accepted snapshots with facts, oldest first.
    accepted: as `full`, with the pulses. Read only if a cluster can't be evaluated now.
    inventories: the earlier nightly runs of a clusters file, of any fleet, oldest first.
    """

    def __init__(self, lake: Lake, kind: str, run_id: str, rows: list[dict[str, Any]]):
        self.runs: dict[str, list[tuple[Row, datetime]]] = {}
        self.full: dict[str, list[Row]] = {}
        self.accepted: dict[str, list[Row]] = {}
        self.last: dict[str, Row] = {}
        self.counted: set[tuple[str, str]] = set()
        self.resolved: dict[str, list[tuple[str, datetime]]] = {}
        self.inventories: list[Row] = []
        missing = [r for r in rows if r["status"] != ACCEPTED]
        full = lake.snapshots(status=ACCEPTED, kind=FULL) if kind != PULSE or missing else []
        pulses = []
        if missing:
            since = min(r["captured_at"] for r in missing) - STALE_PULSES
            pulses = lake.snapshots(status=ACCEPTED, kind=PULSE, since=since)
        for snapshot in sorted(full + pulses, key=lambda s: s["captured_at"]):
            self.accepted.setdefault(snapshot["cluster"], []).append(snapshot)
        if kind == PULSE:
            for run in lake.runs(NIGHTLY, ("result_id", "finished_at", "snapshots")):
                for judged in run["snapshots"] or []:
                    if judged["status"] == ACCEPTED:
                        resolved = run["result_id"], judged["captured_at"]
                        self.resolved.setdefault(judged["cluster"], []).append(resolved)
            for results in self.resolved.values():
                results.sort(key=lambda found: found[1])
            return
        for snapshot in full:
            self.full.setdefault(snapshot["cluster"], []).append(snapshot)
        for run in lake.runs(kind):
            if run["run_id"] != run_id and run["inventory"]:
                self.inventories.append(run)
            for judged in run["snapshots"] or []:
                if judged["status"] in (ACCEPTED, COUNTED):
                    self.counted.add((judged["cluster"], judged["snapshot_id"]))
                if run["run_id"] != run_id:
                    self.last[judged["cluster"]] = run
                if judged["status"] == ACCEPTED and run["run_id"] != run_id:
                    self.runs.setdefault(judged["cluster"], []).append((run, judged["captured_at"]))
        for evaluated in self.runs.values():  # a clock may have jumped back between two runs
            evaluated.sort(key=lambda found: found[1])

    def run_before(self, cluster: str, captured_at: datetime) -> Row:
        """The run of the cluster's newest snapshot of `captured_at` or before; empty if there is none."""
        runs = [run for run, moment in self.runs.get(cluster, []) if moment <= captured_at]
        return runs[-1] if runs else {}

    def resolved_before(self, cluster: str, captured_at: datetime) -> str | None:
        """The result of the nightly run of the cluster's newest snapshot of `captured_at` or before. Only for a pulse."""
        results = [result for result, moment in self.resolved.get(cluster, []) if moment <= captured_at]
        return results[-1] if results else None

    def snapshot_before(self, cluster: str, captured_at: datetime) -> Row:
        """The newest accepted snapshot with facts from before `captured_at`; empty if there is none."""
        older = [s for s in self.full.get(cluster, []) if s["captured_at"] < captured_at]
        return older[-1] if older else {}


def _provider_and_team(facts: Row | None, cluster: Cluster | None) -> tuple[str, str | None]:
    """Those of the snapshot's facts, else those of the clusters file."""
    provider, team = "self", None
    if cluster:
        provider, team = cluster.provider, cluster.team
    if facts:
        provider, team = facts["provider"], facts["team"] or team
    return provider, team or None


def _part(row: dict[str, Any], facts: Row | None, cluster: Cluster | None, history: _History) -> SnapshotPart:
    name, captured_at = row["cluster"], row["captured_at"]
    stale, attempt, resolved = None, None, history.resolved_before(name, captured_at)
    provider, team = _provider_and_team(facts, cluster)
    if row["status"] == ACCEPTED:
        previous = history.run_before(name, captured_at)
        attempt = history.snapshot_before(name, captured_at).get("attempt_id")
    else:
        previous = history.last.get(name, {})
        if accepted := history.accepted.get(name):
            stale = StaleSnapshot(accepted[-1]["snapshot_id"], to_text(accepted[-1]["captured_at"]))
    return SnapshotPart(
        **{key: row[key] for key in ("cluster", "status", "snapshot_id", "attempt_id", "reason", "sha256", "source")},
        captured_at=to_text(captured_at),
        provider=provider,
        team=team,
        partitions=row["partitions"] or 0,
        previous_run_id=previous.get("run_id"),
        previous_result_id=previous.get("result_id"),
        previous_policy_sha256=previous.get("policy_sha256"),
        previous_attempt_id=attempt,
        stale_snapshot=stale,
        resolved_result_id=resolved,
    )
