"""What a run's manifest states: an in-toto Statement v1.

A fact that isn't known is null, and `unknown` beside it has the reason.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
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
from durability.topology.document import LIVE

FORMAT = "durability-evidence/1"
SOURCES = ("durability", "expectations", "spark_jobs")
"""The packages that decide what a run finds and how it is worded."""
REPERFORM_SOURCES = (
    "find durability expectations spark_jobs -path durability/share -prune -o -type f "
    r"\( -name '*.py' -o -name '*.yaml' \) -print | LC_ALL=C sort | xargs sha256sum | sha256sum"
)
_CLUSTER = (
    *("attempt_id", "kafka_cluster_id", "kafka_version", "quorum_mode", "source", "hidden_partitions", "unreadable"),
    *("declared_brokers", "declared_topics", "declared_partitions"),
)
NOT_RECORDED = {
    "document": "the document isn't kept. Its SHA-256 is that of its canonical JSON, and the lake has the facts",
    "principal": "the collector doesn't record the principal that it authenticates as",
    "apis": "the collector doesn't record the APIs and versions of its requests",
    "clock_offset_ms": "no API of Kafka states a broker's clock",
}
NO_INVENTORY = "no inventory was compared"
NOT_READ = "the snapshot has no facts"


def statement(subjects: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """The statement. subjects: the SHA-256 of each file by its name."""
    listed = [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(subjects.items())]
    return {"_type": STATEMENT, "subject": listed, "predicateType": PREDICATE, "predicate": dict(predicate)}


def predicate(lake: Any, plan: Plan, status: str, verified: bool, **stated: Any) -> dict[str, Any]:
    """The statement's predicate. stated: the members that the writer knows.

    lake: an object with `scan(table, where, columns) -> pa.Table`.
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
        "snapshots": _snapshots(lake, plan),
    }


def sources(root: Path) -> str:
    """The SHA-256 over the hashes of the program's files below `root`, as REPERFORM_SOURCES prints it there."""
    files = [path.relative_to(root) for package in SOURCES for path in (root / package).rglob("*")]
    named = sorted(
        f.as_posix() for f in files if f.suffix in (".py", ".yaml") and f.parts[:2] != ("durability", "share")
    )
    hashes = (f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in named)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _snapshots(lake: Any, plan: Plan) -> list[dict[str, Any]]:
    read = [
        {"attempt_id": s.attempt_id, "captured_at": s.moment} for s in plan.snapshots if s.attempt_id and s.captured_at
    ]
    if not read:
        return [_snapshot(part, None, {}) for part in plan.snapshots]
    where = of_attempts(read)
    clusters = {row["attempt_id"]: row for row in lake.scan(CLUSTERS, where, list(_CLUSTER)).to_pylist()}
    rows = {
        part: Counter(lake.scan(table, where, ["attempt_id"])["attempt_id"].to_pylist())
        for part, table in (("brokers", BROKERS), ("topics", TOPICS))
    }
    found = []
    for part in plan.snapshots:
        kept = {name: counts[part.attempt_id] for name, counts in rows.items()} | {"partitions": part.partitions}
        found.append(_snapshot(part, clusters.get(part.attempt_id), kept))
    return found


def _snapshot(part: SnapshotPart, cluster: Mapping[str, Any] | None, kept: Mapping[str, int]) -> dict[str, Any]:
    """The entry of a snapshot. cluster: its row of `clusters`; None without facts. kept: its rows in the lake."""
    unknown = dict(NOT_RECORDED)
    entry: dict[str, Any] = {
        name: getattr(part, name)
        for name in ("cluster", "status", "reason", "snapshot_id", "captured_at", "source", "sha256")
    }
    entry |= dict.fromkeys(NOT_RECORDED)
    row = cluster or {}
    for name in ("kafka_cluster_id", "kafka_version"):
        entry[name] = row.get(name)
    live = part.source == LIVE
    counts = {
        "declared": {n: row[f"declared_{n}"] for n in ("brokers", "topics", "partitions")}
        if cluster and live
        else None,
        "kept": dict(kept) if cluster else None,
        "hidden_partitions": row.get("hidden_partitions") if live else None,
        "inventory": None,
    }
    if cluster and not live:
        of_document = "a document states its own counts; nothing independent was read"
        unknown |= {"counts.declared": of_document, "counts.hidden_partitions": of_document}
    elif cluster and counts["hidden_partitions"] is None:
        unknown["counts.hidden_partitions"] = "log dirs of a broker could not be read"
    unread = "no broker stated it" if live else "the document doesn't state it"
    why = NOT_READ if cluster is None else unread
    unknown |= {name: why for name in ("kafka_cluster_id", "kafka_version") if entry[name] is None}
    if part.sha256 is None:
        unknown["sha256"] = NOT_READ
    if cluster is None:
        unknown |= dict.fromkeys(("counts.declared", "counts.kept", "counts.hidden_partitions", "unreadable"), NOT_READ)
    unknown["counts.inventory"] = NO_INVENTORY
    kraft = {"kraft": True, "zookeeper": False}.get(str(row.get("quorum_mode")))
    return {
        **entry,
        "counts": counts,
        "unreadable": len(row["unreadable"] or ()) if cluster else None,
        "reperform": commands(entry["kafka_version"], kraft),
        "unknown": dict(sorted(unknown.items())),
    }


def inputs(read: Mapping[str, str | None], reasons: Mapping[str, str], as_evaluated: bool | None) -> dict[str, Any]:
    """The member `inputs`. read: the SHA-256 of each input file by name; None: `reasons` has why.

    as_evaluated: are policy and waivers still those of the run? None: unknown.
    """
    found: dict[str, Any] = {name: sha256 and {"sha256": sha256} for name, sha256 in read.items()}
    unknown = dict(reasons)
    if as_evaluated is None:
        unknown["as_evaluated"] = "policy or waivers could not be read again"
    return {**found, "as_evaluated": as_evaluated, "unknown": unknown}
