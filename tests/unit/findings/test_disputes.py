"""Results count from their row in `runs`; where two readings differ nothing is known."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.catalogue.causes import DISAGREE
from durability.errors import Refused
from durability.findings import write
from durability.lake import tables
from durability.steps.findings import findings
from durability.steps.summary import StepSummary
from tests.support.lake import EVERYWHERE
from tests.support.report_cases import plan as planned
from tests.support.words import TARGET

pytestmark = EVERYWHERE
FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


def run_row(number, clusters, status="complete", kind="nightly"):
    moment = datetime(2026, 11, 20 + number, tzinfo=UTC)
    snapshots = [
        {"cluster": c, "snapshot_id": "s", "attempt_id": "a", "captured_at": moment, "status": state}
        for c, state in clusters.items()
    ]
    return {
        "run_id": f"run-{number}",
        "result_id": f"result-{number}",
        "kind": kind,
        "captured_at": moment,
        "started_at": moment,
        "finished_at": moment + timedelta(minutes=number),
        "status": status,
        "snapshots": snapshots,
    }


def test_runs_are_listed_as_they_finished(lake):
    lake.commit_run(run_row(3, {"a": "failed", "b": "accepted"}, status="incomplete"))
    lake.commit_run(run_row(1, {"a": "accepted"}))
    lake.commit_run(run_row(2, {"a": "accepted"}, status="unverified"))
    lake.commit_run(run_row(4, {"a": "accepted"}, kind="pulse"))
    lake.commit_run(run_row(5, {"a": "accepted"}, status="aborted"))
    assert [run["run_id"] for run in lake.runs("nightly")] == ["run-1", "run-2", "run-3", "run-5"]


def result_rows(run, rows):
    keys = {"run_id": run["run_id"], "result_id": run["result_id"], "cluster": "a"}
    return [keys | {"captured_at": run["captured_at"], "snapshot_id": "s"} | row for row in rows]


def test_where_spark_and_great_expectations_disagree_the_finding_is_unknown(lake):
    run = run_row(1, {"a": "accepted"})
    found = [
        {"control": "replication-factor", "resource": "orders", "outcome": "FAIL", "severity": "critical"},
        {"control": "replication-factor", "resource": "audit", "outcome": "FAIL", "severity": "critical"},
        {"control": "write-headroom", "resource": "orders", "outcome": "PASS"},
    ]
    common = {"resource_type": "topic", "cause": "configuration:topic", "tier": "critical", "evidence": TARGET}
    numbers = {"observed": '{"replication_factor": 1}', "required": '{"replication_factor": 3}', "partitions": [0]}
    verdicts = [common | numbers | row for row in found]
    stale = run | {"result_id": "interrupted"}
    for of in (run, stale):
        lake.append(tables.VERDICTS, pa.Table.from_pylist(result_rows(of, verdicts), tables.VERDICTS.arrow))
    differing = [
        {"control": "replication-factor", "resource": "orders", "spark": "FAIL", "expectations": "PASS"},
        {"control": "write-headroom", "resource": "orders", "spark": "PASS", "expectations": "FAIL"},
    ]
    differing.append(
        {"control": "replication-factor", "resource": "never-seen", "spark": "PASS", "expectations": "FAIL"}
    )
    lake.append(tables.DISAGREEMENTS, pa.Table.from_pylist(result_rows(run, differing), tables.DISAGREEMENTS.arrow))
    assert write(lake, SimpleNamespace(**run, judged=[], attempts=[])) == 4
    listed = lake.scan(tables.FINDINGS).to_pylist()
    assert {row["result_id"] for row in listed} == {run["result_id"]}
    assert sorted((row["resource"], row["control"], row["outcome"], row["cause"]) for row in listed) == [
        ("audit", "replication-factor", "FAIL", "configuration:topic"),
        ("never-seen", "replication-factor", "UNKNOWN", DISAGREE),
        ("orders", "replication-factor", "UNKNOWN", DISAGREE),
        ("orders", "write-headroom", "UNKNOWN", DISAGREE),
    ]
    assert {row["severity"] for row in listed if row["outcome"] == "UNKNOWN"} == {None}
    assert {row["remediation"] for row in listed if row["outcome"] == "UNKNOWN"} == {None}
    messages = {(row["resource"], row["control"]): row["message"] for row in listed}
    assert messages["orders", "replication-factor"] == (
        "Spark says FAIL, Great Expectations PASS. The rule's own words: partition 0: replication factor 1, 3 required by tier"
        " critical"
    )
    assert messages["orders", "write-headroom"].endswith("The rule's own words: no message")
    assert messages["never-seen", "replication-factor"] == (
        "Spark says PASS, Great Expectations FAIL. The rule's own words: no message"
    )


def test_appending_takes_rows_of_several_days_and_knows_its_columns(lake):
    runs = [run_row(number, {"a": "accepted"}) for number in (3, 1, 2)]
    lake.append(tables.RUNS, pa.Table.from_pylist(runs, tables.RUNS.arrow).select(["run_id", "captured_at"]))
    assert lake.scan(tables.RUNS, "run_id = 'run-2'", ["captured_at", "policy_name"]).to_pylist() == [
        {"captured_at": datetime(2026, 11, 22, tzinfo=UTC), "policy_name": None}
    ]
    with pytest.raises(ValueError, match="colour"):
        lake.append(tables.RUNS, pa.table({"colour": ["red"]}))


def test_a_cross_check_that_found_something_else_after_findings_is_noticed(lake):
    """A cleared `cross_check` leaves findings of the one before; they are never left as they are without a word."""
    run = run_row(1, {"a": "accepted"})
    verdict = {"resource_type": "topic", "control": "replication-factor", "resource": "orders", "outcome": "PASS"}
    lake.append(tables.VERDICTS, pa.Table.from_pylist(result_rows(run, [verdict | {"id": "v"}])))
    plan = planned(run_id=run["run_id"], result_id=run["result_id"])
    settings = SimpleNamespace(open_lake=lambda: lake)

    def step(disagreements: int) -> int:
        return findings(settings, plan, SimpleNamespace(disagreements=disagreements, verified=True), StepSummary())

    assert step(0) == step(0) == 1
    said = {"control": "replication-factor", "resource": "orders", "spark": "PASS", "expectations": "FAIL"}

    def dispute(of: dict, resource: str) -> None:
        rows = result_rows(of, [said | {"resource": resource}])
        lake.append(tables.DISAGREEMENTS, pa.Table.from_pylist(rows))

    dispute(run, "orders")
    with pytest.raises(Refused, match="clear `evaluate` with everything downstream"):
        step(1)
    again = run | {"result_id": "again"}
    plan = planned(run_id=again["run_id"], result_id=again["result_id"])
    lake.append(tables.VERDICTS, pa.Table.from_pylist(result_rows(again, [verdict | {"id": "v"}])))
    dispute(again, "orders")
    assert step(1) == 1
    dispute(again, "orders")  # the cross-check again, with the same difference
    assert step(1) == 1
    with pytest.raises(Refused, match="clear `evaluate`"):  # with none
        step(0)
    dispute(again, "audit")  # with as many, but another one
    with pytest.raises(Refused, match="clear `evaluate`"):
        step(1)
