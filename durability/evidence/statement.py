"""What a run's manifest states: an in-toto Statement v1.

A fact that isn't known is null, and `unknown` beside it has the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from durability import __version__
from durability.evidence.reperform import commands
from durability.evidence.verify import PREDICATE, STATEMENT
from durability.lake.conditions import of_attempts
from durability.lake.tables import BROKERS, CLUSTERS, TOPICS
from durability.plan.plan import Plan, SnapshotPart, to_text
from durability.resources import NAME, PACKAGES
from durability.topology.document import LIVE, canonical

FORMAT = "durability-evidence/1"
SOURCES = ("durability", "expectations", "spark_jobs")
"""The packages that decide what a run finds and how it is worded."""
REPERFORM_SOURCES = (
    "find durability expectations spark_jobs -path durability/share -prune -o -type f "
    r"\( -name '*.py' -o -name '*.yaml' \) -print | LC_ALL=C sort | xargs sha256sum | sha256sum"
)
_CLUSTER = (
    *("attempt_id", "kafka_cluster_id", "kafka_version", "quorum_mode", "source", "hidden_partitions", "unreadable"),
    *("declared_brokers", "declared_topics", "declared_partitions", "collection"),
)
COLLECTED = ("principal", "acls", "apis", "clock_offset_ms")
"""Members that `durability.collect.provenance` records."""
NOT_READ = "the snapshot has no facts"
DOCUMENT = "a document doesn't state it, and nothing independent of the document was read"
_EARLIER = "not recorded: an earlier version collected the snapshot"
UNREAD = {
    "document": "the document wasn't kept. sha256 is that of its canonical JSON, and the lake has the facts",
    "kafka_cluster_id": "no broker stated it",
    "kafka_version": "no broker stated it",
    "principal": _EARLIER,
    "acls": _EARLIER,
    "apis": _EARLIER,
    "clock_offset_ms": "the leader of a KRaft quorum states its clock since Kafka 3.4; none did",
    "counts.log_dirs": "no log dirs could be read",
    "counts.hidden_partitions": "not all log dirs could be read",
    "counts.inventory": "inventories list clusters. They have no counts of brokers, topics and partitions",
}
"""Reasons why a fact of a live cluster may be unknown."""


def statement(subjects: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """The statement. subjects: the SHA-256 of each file by its name."""
    listed = [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(subjects.items())]
    return {"_type": STATEMENT, "subject": listed, "predicateType": PREDICATE, "predicate": dict(predicate)}


def predicate(plan: Plan, status: str, verified: bool, **stated: Any) -> dict[str, Any]:
    """The statement's predicate. stated: the members that the writer knows.

    status: of the run (`durability.steps.conclude`). verified: did the cross-check confirm the verdicts?
    """
    return {
        "format": FORMAT,
        **stated,
        "run": {
            "id": plan.run_id,
            "result_id": plan.result_id,
            "kind": plan.kind,
            "started_at": plan.started_at,
            "attested_at": to_text(datetime.now(UTC).replace(microsecond=0)),
            "status": status,
            "verified": verified,
        },
        "policy": {"name": plan.policy.name, "sha256": plan.policy.sha256},
        "code": {"name": NAME, "version": __version__, "sha256": sources(PACKAGES), "reperform": REPERFORM_SOURCES},
        "lake": plan.lake,
        "inventory": _inventory(plan),
    }


def _inventory(plan: Plan) -> dict[str, Any] | None:
    """What the fleet was compared with; None if clusters.yaml has no inventory."""
    found = plan.inventory
    if found is None or not found.sources:
        return None
    return {
        "sources": [asdict(source) for source in found.sources],
        "not_audited": [listed.id for listed in found.not_audited],
        "not_listed": found.unlisted,
    }


def sources(root: Path) -> str:
    """The SHA-256 over the hashes of the program's files below `root`, as REPERFORM_SOURCES prints it there."""
    files = [path.relative_to(root) for package in SOURCES for path in (root / package).rglob("*")]
    named = sorted(
        f.as_posix() for f in files if f.suffix in (".py", ".yaml") and f.parts[:2] != ("durability", "share")
    )
    hashes = (f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in named)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def take_acls(snapshots: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Replace the ACLs in the entries of snapshots by their count and SHA-256. Returns the ACLs by cluster.

    A proof of one finding shows the manifest, and ACLs name topics, groups and hosts. A file of the folder has them.
    """
    found = {}
    for entry in snapshots:
        if (acls := entry["acls"]) is not None:
            found[entry["cluster"]] = acls
            entry["acls"] = {"count": acls["count"], "sha256": hashlib.sha256(canonical(acls)).hexdigest()}
    return found


def snapshots(lake: Any, plan: Plan, documents: Mapping[str, str]) -> list[dict[str, Any]]:
    """The member `snapshots`, with the ACLs as they were read.

    lake: an object with `scan(table, where, columns) -> pa.Table`.
    documents: the file of each snapshot's document by attempt id.
    """
    read = [
        {"attempt_id": s.attempt_id, "captured_at": s.moment} for s in plan.snapshots if s.attempt_id and s.captured_at
    ]
    if not read:
        return [_snapshot(part, None, {}, None) for part in plan.snapshots]
    where = of_attempts(read)
    clusters = {row["attempt_id"]: row for row in lake.scan(CLUSTERS, where, list(_CLUSTER)).to_pylist()}
    rows = {
        part: Counter(lake.scan(table, where, ["attempt_id"])["attempt_id"].to_pylist())
        for part, table in (("brokers", BROKERS), ("topics", TOPICS))
    }
    found = []
    for part in plan.snapshots:
        kept = {name: counts[part.attempt_id] for name, counts in rows.items()} | {"partitions": part.partitions}
        document = documents.get(part.attempt_id or "")
        found.append(_snapshot(part, clusters.get(part.attempt_id), kept, document))
    return found


def _snapshot(
    part: SnapshotPart, cluster: Mapping[str, Any] | None, kept: Mapping[str, int], document: str | None
) -> dict[str, Any]:
    """The entry of a snapshot. cluster: its row of `clusters`; None without facts. kept: its rows in the lake.

    document: the file of its document; None if there is none.
    """
    row = cluster or {}
    live = part.source == LIVE
    facts = {name: row.get(name) for name in ("kafka_cluster_id", "kafka_version")}
    collection = json.loads(row.get("collection") or "{}")
    facts |= {name: collection.get(name) for name in COLLECTED}
    counts: dict[str, Any] = {"declared": None, "kept": dict(kept) if cluster else None}
    counts["log_dirs"] = collection.get("log_dirs")
    counts |= {"hidden_partitions": row.get("hidden_partitions") if live else None, "inventory": None}
    if cluster and live:
        counts["declared"] = {name: row[f"declared_{name}"] for name in ("brokers", "topics", "partitions")}
    reason = NOT_READ if cluster is None else DOCUMENT if not live else None
    unknown = _unknown(part, {**facts, "document": document}, counts, reason)
    if why := collection.get("acls_reason"):
        unknown["acls"] = why
    return {
        **{
            name: getattr(part, name)
            for name in ("cluster", "status", "reason", "snapshot_id", "captured_at", "source")
        },
        "sha256": part.sha256,
        "document": document,
        **facts,
        "counts": counts,
        "unreadable": len(row["unreadable"] or ()) if cluster else None,
        "reperform": commands(
            row.get("kafka_version"), {"kraft": True, "zookeeper": False}.get(row.get("quorum_mode", ""))
        ),
        "unknown": unknown,
    }


def _unknown(
    part: SnapshotPart, facts: Mapping[str, Any], counts: Mapping[str, Any], reason: str | None
) -> dict[str, str]:
    """Why members of a snapshot's entry are null. reason: the one for all facts, if there is one."""
    found = {name: reason or UNREAD[name] for name, value in facts.items() if value is None}
    if found.get("document") == DOCUMENT:
        found["document"] = UNREAD["document"]
    found |= {f"counts.{name}": reason or UNREAD[f"counts.{name}"] for name, value in counts.items() if value is None}
    found["counts.inventory"] = UNREAD["counts.inventory"]
    found |= {f"counts.declared.{n}": "not stated" for n, count in (counts["declared"] or {}).items() if count is None}
    if part.sha256 is None:
        found |= dict.fromkeys(("sha256", "unreadable"), NOT_READ)
    named = {name: "unknown" for name in ("snapshot_id", "captured_at", "source") if getattr(part, name) is None}
    return dict(sorted({**named, **found}.items()))


def inputs(read: Mapping[str, str | None], reasons: Mapping[str, str], as_evaluated: bool | None) -> dict[str, Any]:
    """The member `inputs`. read: the SHA-256 of each input file by name; None: `reasons` has why.

    as_evaluated: are policy and waivers still those of the run? None: unknown.
    """
    found: dict[str, Any] = {name: sha256 and {"sha256": sha256} for name, sha256 in read.items()}
    unknown = dict(reasons)
    if as_evaluated is None:
        unknown["as_evaluated"] = "policy or waivers could not be read again"
    return {**found, "as_evaluated": as_evaluated, "unknown": unknown}
