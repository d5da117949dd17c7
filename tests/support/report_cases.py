"""Hand-made results of a run, shaped like the lake's, for tests of reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.lake.tables import (
    CLUSTERS,
    COUNTED,
    FINDINGS,
    HEALTH_COUNTERS,
    PARTITION_HEALTH,
    RESOLVED_POLICY,
)
from durability.plan.plan import Plan, PolicyPart, SnapshotPart
from durability.policy import Framework
from durability.report.build import run_of, write
from durability.report.data import results
from durability.report.data.health import Health
from durability.report.data.outages import Outages
from durability.report.data.run_data import UNREAD, RunData
from durability.report.data.teams import with_teams
from durability.report.pdf import document as pdf

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
    """A row of the table `findings`. A FAIL is critical by default."""
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
    """Rows of `resolved_policy`: group ids with their results."""
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


def run_data(rows: Sequence[dict] = (), health: Sequence[dict] = (), counters: Sequence[dict] = (), **more) -> RunData:
    """The result of `run_data.read` for these rows of `findings`, `partition_health` and `health_counters`."""
    listed = [r for r in rows if r["outcome"] not in ("PASS", "NOT_APPLICABLE") or r["change"] == "resolved"]
    counts = health_counters(list(counters))
    of = Health(partition_health(list(health)), counts)
    more.setdefault("outages", Outages(lost=of.lost_racks()))
    if "unread" in more:
        more["unread"] = more["unread"].select(UNREAD)
    return RunData(findings(list(rows)).select(results.COUNTED), results.worst_first(findings(listed)), of, **more)


def report(
    rows: Sequence[dict],
    out: Path,
    checked: SimpleNamespace | None = None,
    cut: Framework | None = None,
    paper: bool = True,
    **more,
) -> dict[str, Path]:
    """Write the reports of these rows into `out`.

    checked: the result of the cross-check.
    cut: the framework whose controls are reported.
    paper: False leaves report.pdf empty, which takes nine tenths of the time if texts are long.
    more: arguments of `run_data`, and fields of the plan.
    """
    names = (
        "health",
        "counters",
        "unread",
        "applications",
        "outages",
        "timelines",
        "trends",
        "objectives",
        "losses",
        "placements",
    )
    stated = {name: more.pop(name) for name in names if name in more}
    with pytest.MonkeyPatch.context() as patch:
        if not paper:
            patch.setattr(pdf, "build", lambda *_: None)
        return write(run_data(rows, **stated), plan(**more), checked or flagged(), out, cut)


def written(rows: Sequence[dict], out: Path, **more) -> dict:
    """`report`, but returns the findings.json."""
    report(rows, out, **more)
    return json.loads((out / "findings.json").read_text(encoding="utf-8"))


def findings_json(rows: Sequence[dict], snapshots: Sequence[dict] | None = None) -> dict:
    """findings.json of these rows, without files."""
    data = run_data(rows)
    run = run_of(plan(snapshots=snapshots or [snapshot()]), flagged())
    summary = results.summarise(data.counted, [s["cluster"] for s in run["snapshots"]])
    return {
        "run": run,
        "summary": summary,
        "findings": list(results.documents(with_teams(data.listed, plan()), plan().waivers)),
    }
