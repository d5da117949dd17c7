"""The reports of a run, from a real lake."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from durability.lake import tables
from durability.report.build import build
from tests.support.report_cases import (
    NIGHT,
    facts,
    finding,
    findings,
    flagged,
    health_counters,
    partition_health,
    plan,
)

RESULT = {"captured_at": NIGHT, "run_id": "run-1", "result_id": "result-1"}


@pytest.fixture
def audited(lake):
    """A lake with one result of run-1, and another of the same run that doesn't count."""
    rows = [
        finding("orders", "replication-factor"),
        finding("fine", "replication-factor", "PASS"),
        finding("doubted", "replication-factor", "PASS"),
        finding("gone", "log-dirs", "PASS", change="resolved", why="fixed"),
    ]
    lake.append(tables.FINDINGS, findings(rows))
    lake.append(tables.FINDINGS, findings([{**finding("other", "log-dirs"), "result_id": "result-0"}]))
    health = {**RESULT, "topic": "orders", "partitions": [0], "categories": ["offline"], "cause": "broker:3 down"}
    lake.append(tables.PARTITION_HEALTH, partition_health([health]))
    counters = {**RESULT, "topic": "orders", "partitions": 1, "offline": 1}
    lake.append(tables.HEALTH_COUNTERS, health_counters([counters]))
    unreadable = [{"path": "/cluster/controllers", "reason": "DENIED"}]
    read = [
        {"cluster": "eu-payments", "captured_at": NIGHT, "attempt_id": "attempt-1", "unreadable": unreadable},
        {"cluster": "eu-payments", "captured_at": NIGHT - timedelta(days=1), "attempt_id": "attempt-0"},
    ]
    lake.append(tables.CLUSTERS, facts(read))
    return lake


def test_a_result_is_reported_and_no_other(audited, tmp_path):
    out = tmp_path / "out"
    written = build(audited, plan(), flagged(), out)
    document = json.loads((out / "findings.json").read_text())
    assert [(f["resource"], f["outcome"]) for f in document["findings"]] == [("orders", "FAIL"), ("gone", "PASS")]
    assert document["summary"]["outcomes"]["PASS"] == 2
    assert document["summary"]["resources"] == {"topic": 3}
    assert {name: path.exists() for name, path in written.items()} == {
        "findings.json": True,
        "findings.csv": True,
        "report.html": True,
        "losses.json": True,
        "findings.junit.xml": True,
        "findings.ocsf.jsonl": True,
        "metrics.prom": True,
        "report.pdf": True,
        "summary.md": True,
        "oscal/component-definition.json": True,
        "oscal/assessment-plan.json": True,
        "oscal/assessment-results.json": True,
        "oscal/poam.json": True,
    }
    page = (out / "report.html").read_text()
    assert "/cluster/controllers" in page
    assert "Broker 3 down" in page


def test_a_run_without_any_snapshot_still_has_its_report(lake, tmp_path):
    written = build(lake, plan(snapshots=[]), flagged(), tmp_path / "out")
    document = json.loads(written["findings.json"].read_text())
    assert document["summary"]["outcomes"]["FAIL"] == 0
    page = written["report.html"].read_text()
    assert "<h1>Nothing was evaluated: the run has no cluster.</h1>" in page and "t-unknown" in page
