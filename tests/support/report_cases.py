"""Hand-made results of a run, as the lake would give them, for the tests of reports."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

from durability.lake.tables import (
    CLUSTERS,
    COUNTED,
    FINDINGS,
    HEALTH_COUNTERS,
    PARTITION_HEALTH,
    RESOLVED_POLICY,
)
from durability.plan.plan import Plan, PolicyPart, SnapshotPart
from durability.report import builder, page, results

NIGHT = datetime(2026, 11, 21, 2, tzinfo=UTC)
SHA = "0123456789abcdef" * 4
WAIVERS = [
    {
        "index": 0,
        "control": "replication-factor",
        "controls": ["replication-factor"],
        "cluster": "eu-payments",
        "resource": "cache-.*",
        "owner": "payments",
        "approved_by": "A. Reviewer",
        "reason": "rebuilt from the database every hour",
        "ticket": "RISK-7",
        "expires": "2027-01-31",
    },
    {
        "index": 1,
        "control": "write-headroom",
        "controls": ["write-headroom"],
        "cluster": ".*",
        "resource": "audit",
        "owner": "audit",
        "approved_by": None,
        "reason": "until the move",
        "ticket": None,
        "expires": "2026-10-31",
    },
]


def finding(resource: str, control: str, outcome: str = "FAIL", severity: str | None = None, **more) -> dict:
    """A row of the table `findings`; a FAIL is critical unless said otherwise."""
    severity = severity or ("critical" if outcome in ("FAIL", "EXEMPT") else None)
    row = {name: None for name in FINDINGS.arrow.names}
    row |= {
        "cluster": "eu-payments",
        "captured_at": NIGHT,
        "snapshot_id": "eu-payments@2026-11-21T02:00:00Z",
        "run_id": "run-1",
        "result_id": "result-1",
        "resource_type": "topic",
        "resource": resource,
        "control": control,
        "outcome": outcome,
        "severity": severity,
        "change": None if outcome in ("PASS", "NOT_APPLICABLE") else "persisting",
        "since": NIGHT - timedelta(days=3),
    }
    row |= more
    row["id"] = row["id"] or f"{row['cluster']}-{row['resource']}-{control}-{row['category']}".replace(" ", "_")
    for name in ("observed", "required"):
        if isinstance(row[name], dict):
            row[name] = json.dumps(row[name])
    return row


def findings(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=FINDINGS.arrow)


def partition_health(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist([{"cluster": "eu-payments", **r} for r in rows], schema=PARTITION_HEALTH.arrow)


def health_counters(rows: list[dict]) -> pa.Table:
    zeros = dict.fromkeys(COUNTED, 0)
    return pa.Table.from_pylist([{"cluster": "eu-payments", **zeros, **r} for r in rows], schema=HEALTH_COUNTERS.arrow)


def placements(rows: list[tuple[str, dict]]) -> pa.Table:
    """Rows of `resolved_policy`: group ids with their judgements."""
    named = {"cluster": "eu-payments", "run_id": "run-1", "result_id": "result-1", "captured_at": NIGHT}
    named |= {"resource_type": "application", "waivers": []}
    found = [{**named, "resource": group, "placement": json.dumps(judged)} for group, judged in rows]
    return pa.Table.from_pylist(found, schema=RESOLVED_POLICY.arrow)


def facts(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=CLUSTERS.arrow)


def snapshot(cluster: str = "eu-payments", status: str = "accepted", **more) -> SnapshotPart:
    fields = {
        "cluster": cluster,
        "snapshot_id": f"{cluster}@2026-11-21T02:00:00Z",
        "attempt_id": "attempt-1",
        "captured_at": "2026-11-21T02:00:00Z",
        "status": status,
        "reason": None,
        "sha256": SHA,
        "provider": "self",
        "source": "live",
        "partitions": 12,
        "previous_result_id": "result-0",
    }
    return SnapshotPart(**{**fields, **more})


def plan(**more) -> Plan:
    tiers = {
        "critical": {"replication_factor": 3, "unclean_leader_election": False, "survive": ["broker", "rack"]},
        "scratch": {"replication_factor": 1},
    }
    fields = {
        "run_id": "run-1",
        "kind": "nightly",
        "result_id": "result-1",
        "started_at": "2026-11-21T02:00:05Z",
        "policy": PolicyPart(name="default", sha256=SHA, tiers=tiers, last_tier="critical"),
        "waivers": WAIVERS,
        "snapshots": [snapshot()],
        "partitions": 12,
    }
    return Plan(**{**fields, **more})


def flagged(**more) -> SimpleNamespace:
    fields = {"verified": True, "disagreements": 0, "checked": {"replication-factor": 4}}
    return SimpleNamespace(**{**fields, "not_cross_checked": ["partition-health"], "problems": [], **more})


def written(rows, out: Path, *, health=(), counters=(), read=None, checked=None, parts=None, **more) -> dict:
    """Writes the files of a run with these findings into `out`; returns its findings.json.

    health, counters: rows of `partition_health` and `health_counters`. read: rows of `clusters`. checked: what the
    cross-check found. parts: more arguments of `builder.write`. more: fields of the plan.
    """
    table = findings(rows)
    found = results.assemble(table, table)
    state = page.Health(partition_health(list(health)), health_counters(list(counters)))
    builder.write(found, state, read, plan(**more), checked or flagged(), out, **(parts or {}))
    return json.loads((out / "findings.json").read_text(encoding="utf-8"))


def findings_json(rows, snapshots=None) -> dict:
    """findings.json of these rows, without files."""
    table = findings(rows)
    found = results.assemble(table, table)
    run = builder.run_of(plan(snapshots=snapshots or [snapshot()]), flagged())
    summary = results.summarise(found.counted, [s["cluster"] for s in run["snapshots"]])
    return {"run": run, "summary": summary, "findings": list(results.documents(found.listed, plan().waivers))}
