"""The Asset of findings: what its events say, and that a DAG can be scheduled on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.airflow import result, run_in_airflow

EXAMPLE = ROOT / "docs" / "examples" / "react_to_findings.py"
SUMMARY = {
    "outcomes": {"FAIL": 9, "UNKNOWN": 4, "EXEMPT": 1, "PASS": 70, "NOT_APPLICABLE": 0},
    "severities": {"critical": 3, "warning": 5, "info": 1},
    "changes": {"new": 2, "persisting": 12, "resolved": 6},
    "new_failures": {"critical": 1, "warning": 1, "info": 0},
    "worsened_failures": {"critical": 2, "warning": 0, "info": 0},
}
COUNTS = {"run": "nightly_audit:r1", "critical": 3, "warning": 5, "unknown": 4, "new": 2, "verified": True}
COUNTS |= {"worsened": 2, "new_critical": 3}

# A DAG with one task that announces like `report`, run as `airflow dags test` runs it; then the example is read.
RUN = """
import json, os
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = os.environ["DAGS"]
from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session
from sqlalchemy import select
bag = DagBag(os.environ["DAGS"])
run = bag.dags["announces"].test()
with create_session() as session:
    events = [(e.asset.name, e.source_task_id, e.extra) for e in session.scalars(select(AssetEvent))]
example = bag.dags["react_to_findings"]
print("RESULT", json.dumps({"errors": bag.import_errors, "state": run.state, "events": events,
    "schedule": example.schedule.name, "tasks": list(example.task_ids)}, default=str))
"""
ANNOUNCES = """
import os
from pathlib import Path
from airflow.sdk import DAG, BaseOperator
from kafka_durability.assets import FINDINGS, announce
class Report(BaseOperator):
    def execute(self, context):
        announce(context, self.outlets, "nightly_audit:r1", Path(os.environ["FINDINGS"]))
with DAG("announces", schedule=None):
    Report(task_id="report", outlets=[FINDINGS])
"""


@pytest.fixture
def findings(tmp_path) -> Path:
    path = tmp_path / "findings.json"
    document = {"format": "durability-findings/1", "run": {"verified": True}, "summary": SUMMARY, "findings": []}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.slow
def test_an_event_carries_the_counts_of_the_run(tmp_path, findings):
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "announces.py").write_text(ANNOUNCES)
    (dags / "example.py").write_text(EXAMPLE.read_text())
    seen = result(run_in_airflow(tmp_path, RUN, DAGS=str(dags), FINDINGS=str(findings)))
    assert (seen["errors"], seen["state"]) == ({}, "success")
    assert seen["events"] == [["kafka_durability_findings", "report", {**COUNTS, "findings": str(findings)}]]
    assert (seen["schedule"], seen["tasks"]) == ("kafka_durability_findings", ["open_tickets"])


@pytest.mark.parametrize(
    ("changes", "alarming"),
    [
        ({}, True),
        ({"new": 0}, True),  # a failure got worse
        ({"new": 0, "new_critical": 0}, False),
        ({"new_critical": 0}, True),
        ({"new_critical": 0, "unknown": 0}, False),
    ],
)
def test_the_documented_dag_reads_the_event(changes, alarming):
    from kafka_durability.assets import FINDINGS

    example: dict = {}
    exec(compile(EXAMPLE.read_text(), str(EXAMPLE), "exec"), example)
    task = example["react_to_findings"]().get_task("open_tickets")
    event = type("Event", (), {"extra": {**COUNTS, **changes}})
    assert task.python_callable(triggering_asset_events={FINDINGS: [event]}) == (
        ["nightly_audit:r1"] if alarming else []
    )
