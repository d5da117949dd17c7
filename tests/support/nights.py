"""A period of ten nights in October, and what writes nights into a lake."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from durability.evidence.nights import Period
from durability.lake import tables

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
OCTOBER = Period(date(2026, 10, 1), date(2026, 10, 11))  # ten nights
HOSTILE = "<script>alert(1)</script>\u202e\x07"


def at(day: int, hour: int = 2) -> datetime:
    return datetime(2026, 10, 1, hour, tzinfo=UTC) + timedelta(days=day - 1)


def waiver(**stated) -> dict:
    base = dict.fromkeys(("approved_by", "ticket", "requested_by", "approved_at", "approved_count", "risk"))
    return {
        **base,
        "index": 0,
        "control": "replication-factor",
        "controls": ["replication-factor"],
        "cluster": "eu",
        "resource": "orders",
        "owner": "team-a",
        "reason": "small",
        "compensating_control": None,
        **stated,
    }


class Nights:
    """Writes nights into a lake: a run's snapshots, findings and row."""

    def __init__(self, lake):
        self.lake, self.snapshots, self.findings, self.runs = lake, [], [], []

    def snapshot(self, cluster: str, day: int, status: str = "accepted", reason: str | None = None, **more) -> dict:
        row = {
            "cluster": cluster,
            "captured_at": at(day),
            "snapshot_id": f"{cluster}@{day}",
            "attempt_id": f"{cluster}-{day}",
            "status": status,
            "reason": reason,
            "source": "live" if status != "failed" else cluster,
            "published_at": at(day, 3),
            "kind": "full",
            **more,
        }
        self.snapshots.append(row)
        return row

    def run(self, day: int, parts, findings=(), status="complete", verified=True, policy="p1", waivers=(), **more):
        run = {"run_id": f"run-{day}", "result_id": f"run-{day}:1", **more}
        rows = [{**self.finding(f"{run['run_id']}-{i}", day), **run, **f} for i, f in enumerate(findings)]
        self.findings += [{k: v for k, v in row.items() if k in tables.FINDINGS.arrow.names} for row in rows]
        changes, outcomes = {"new": 0, "resolved": 0}, {"FAIL": 0, "UNKNOWN": 0, "EXEMPT": 0, "PASS": 0}
        for row in rows:
            if row["change"] in changes:
                changes[row["change"]] += 1
            if row["change"] != "resolved" or row["outcome"] == "EXEMPT":
                outcomes[row["outcome"]] += 1
        names = ("cluster", "snapshot_id", "attempt_id", "captured_at", "status", "reason")
        self.runs.append(
            {
                **{"kind": "nightly", "captured_at": at(day), "started_at": at(day), "finished_at": at(day, 4)},
                **{"status": status, "verified": verified, "policy_name": "policy", "policy_sha256": policy},
                "waivers": json.dumps(list(waivers)),
                "snapshots": [{name: part[name] for name in names} for part in parts],
                "summary": json.dumps({"changes": changes, "outcomes": outcomes}),
                **run,
            }
        )

    def finding(self, id: str, day: int) -> dict:
        return {
            **{"cluster": "eu", "captured_at": at(day), "id": id, "resource_type": "topic", "resource": "orders"},
            **{"control": "replication-factor", "outcome": "FAIL", "severity": "critical", "since": at(day)},
            **{"change": "new", "why": None, "waiver": None, "previous_severity": None},
        }

    def write(self):
        for table, rows in (
            (tables.SNAPSHOTS, self.snapshots),
            (tables.FINDINGS, self.findings),
            (tables.RUNS, self.runs),
        ):
            if rows:
                self.lake.append(table, pa.Table.from_pylist(rows, table.arrow))
        return self.lake


def of(found: dict, cluster: str) -> dict:
    return next(row for row in found["clusters"] if row["cluster"] == cluster)
