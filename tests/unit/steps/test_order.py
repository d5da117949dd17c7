"""The order of a run: its results count before people read of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.lake import tables
from durability.steps import audit
from durability.steps.results import Collected, Gated
from expectations.posture import Flagged
from tests.support.report_cases import plan, snapshot


class Killed(BaseException):
    """As SIGKILL: nothing handles it."""


@pytest.fixture
def run(lake, tmp_path, monkeypatch):
    """A run over a result that is in the lake already; steps before it do nothing."""
    made = plan(snapshots=[snapshot()])
    row = {"run_id": made.run_id, "result_id": made.result_id, "cluster": made.snapshots[0].cluster, "id": "v"}
    row |= {"captured_at": made.snapshots[0].moment, "snapshot_id": "s", "resource_type": "topic", "resource": "orders"}
    verdict = row | {"control": "replication-factor", "outcome": "PASS"}
    lake.append(tables.VERDICTS, pa.Table.from_pylist([verdict]))
    monkeypatch.setattr(audit.plan, "plan", lambda *args, **more: [["eu"]])
    monkeypatch.setattr(audit.collect, "collect", lambda *args, **more: Collected([]))
    monkeypatch.setattr(audit.gate, "gate", lambda *args, **more: Gated([], [], []))
    monkeypatch.setattr(audit.publish, "publish", lambda *args, **more: [])
    monkeypatch.setattr(audit.evaluate, "plan_evaluation", lambda *args, **more: made)
    monkeypatch.setattr(audit.cross_check, "cross_check", lambda *args, **more: Flagged(True, 0, {}))
    services = SimpleNamespace(
        connect=None,
        evaluation=SimpleNamespace(run=lambda *args: None),
        webhook=lambda team: None,
        signing_key=lambda: None,
        reporter=SimpleNamespace(**dict.fromkeys(("started", "progress", "problem", "done"), lambda *args: None)),
    )
    inputs = dict.fromkeys(("policy", "waivers", "clusters", "topology", "framework"))
    inputs["policy"] = Path(__file__).parents[3] / "policies" / "policy.yaml"
    settings = SimpleNamespace(open_lake=lambda: lake, fleet=None, out=tmp_path / "out", **inputs)
    return lambda: audit.run(settings, services)


@pytest.mark.parametrize("step", ["report", "notify"])
def test_a_run_killed_while_it_reports_counts_for_the_next(lake, run, monkeypatch, step):
    def killed(*args):
        raise Killed

    monkeypatch.setattr(getattr(audit, step), step, killed)
    with pytest.raises(Killed):
        run()
    (row,) = lake.runs("nightly")
    assert (row["result_id"], row["status"]) == ("result-1", "complete")


def test_the_row_has_the_counts_of_the_report(lake, run, tmp_path):
    assert run().status == "complete"
    (row,) = lake.runs("nightly")
    stated = json.loads((tmp_path / "out" / "findings.json").read_text())
    recorded = json.loads(row["summary"])
    # For the evidence of a period, the row has the tiers, too.
    assert recorded.pop("objectives")["tiers"].keys() == {"critical", "scratch"}
    assert recorded == stated["summary"]
