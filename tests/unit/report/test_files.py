"""findings.json, findings.csv: what they hold, and that they appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from durability.errors import BadInput, Refused
from durability.policy import CONTROLS
from durability.report import cells, files
from durability.report.build import FILES
from durability.report.data.teams import with_teams
from durability.report.formats import spreadsheet
from durability.report.formats.oscal import POAM
from tests.support.report_cases import NIGHT, SHA, WAIVERS, finding, plan, run_data, snapshot, written

RUN_KEYS = {"id", "started_at", "verified", "policy", "snapshots", "framework"}
SNAPSHOT_KEYS = {"cluster", "snapshot_id", "captured_at", "status", "reason", "sha256"}
FINDING_KEYS = {
    *("id", "cluster", "resource_type", "resource", "control", "outcome", "severity", "cause", "observed", "required"),
    *("partitions", "message", "remediation", "change", "why", "since", "waiver"),
}


def test_the_format_is_the_documented_one(tmp_path):
    row = finding(
        "orders",
        "replication-factor",
        observed={"replication_factor": 2},
        required={"replication_factor": 3},
        partitions=[0, 4],
        cause="configuration:topic",
        message="partitions 0, 4: 2 replicas, 3 required",
        remediation="add replicas",
    )
    document = written([row], tmp_path)
    assert set(document) == {
        "format",
        "run",
        "applications",
        "brokers",
        "rack_outages",
        "objectives",
        "summary",
        "findings",
    }
    assert document["format"] == "durability-findings/1"
    assert set(document["run"]) == RUN_KEYS
    assert document["run"]["policy"] == {"name": "default", "sha256": SHA}
    assert set(document["run"]["snapshots"][0]) >= SNAPSHOT_KEYS
    (only,) = document["findings"]
    assert set(only) >= FINDING_KEYS
    assert only["observed"] == {"replication_factor": 2}
    assert only["partitions"] == [0, 4]
    assert only["since"] == "2026-11-18T02:00:00Z"
    assert only["waiver"] is None


@pytest.mark.parametrize("control", CONTROLS)
def test_observed_keys_of_every_control_arrive_unchanged(control, tmp_path):
    observed = {"replication_factor": 2, "acks": {"all": {"error": None}}, "tasks": [{"task": "0_0"}], "source": "é<"}
    document = written([finding("x", control, observed=observed)], tmp_path)
    assert document["findings"][0]["observed"] == observed
    assert list(document["summary"]["controls"]) == [control]


def test_what_passed_is_counted_and_not_listed(tmp_path):
    rows = [
        finding("a", "replication-factor"),
        finding("b", "replication-factor", "PASS"),
        finding("c", "replication-factor", "NOT_APPLICABLE"),
        finding("d", "replication-factor", "UNKNOWN"),
        finding("e", "write-headroom", severity="warning", change="new"),
        finding("f", "write-headroom", "EXEMPT", waiver=0),
    ]
    document = written(rows, tmp_path, snapshots=[snapshot(), snapshot("dead", "failed")])
    assert [f["resource"] for f in document["findings"]] == ["a", "e", "d", "f"]
    summary = document["summary"]
    assert summary["outcomes"] == {"FAIL": 2, "UNKNOWN": 1, "EXEMPT": 1, "PASS": 1, "NOT_APPLICABLE": 1}
    assert summary["severities"] == {"critical": 1, "warning": 1, "info": 0}
    assert summary["clusters"]["eu-payments"] == summary["outcomes"]
    assert set(summary["clusters"]["dead"].values()) == {0}
    assert summary["controls"]["write-headroom"]["FAIL"] == 1
    assert summary["changes"] == {"new": 1, "persisting": 3, "resolved": 0}


def test_resolved_findings_are_listed_with_why_and_not_counted(tmp_path):
    rows = [
        finding("gone", "replication-factor", "PASS", change="resolved", why="resource-deleted"),
        finding("was", "replication-factor", "PASS", change="resolved", why="fixed"),
        finding("is", "replication-factor"),
    ]
    document = written(rows, tmp_path)
    assert {(f["resource"], f["why"]) for f in document["findings"]} == {
        ("gone", "resource-deleted"),
        ("was", "fixed"),
        ("is", None),
    }
    assert document["findings"][0]["resource"] == "is"
    assert document["summary"]["outcomes"]["FAIL"] == 1
    assert document["summary"]["outcomes"]["PASS"] == 0
    assert document["summary"]["changes"]["resolved"] == 2


def test_a_finding_resolved_by_a_waiver_still_stands_as_exempt(tmp_path):
    row = finding("cache-a", "replication-factor", "EXEMPT", waiver=0, change="resolved", why="waived")
    document = written([row], tmp_path)
    assert document["summary"]["outcomes"]["EXEMPT"] == 1
    assert document["summary"]["changes"]["resolved"] == 1
    assert [f["why"] for f in document["findings"]] == ["waived"]


def test_an_exempt_finding_names_who_accepted_it_until_when(tmp_path):
    document = written([finding("cache-a", "replication-factor", "EXEMPT", waiver=0)], tmp_path)
    assert document["findings"][0]["waiver"] == {
        "index": 0,
        "owner": "payments",
        "approved_by": "A. Reviewer",
        "reason": "rebuilt from the database every hour",
        "ticket": "RISK-7",
        "expires": "2027-01-31",
        **dict.fromkeys(("requested_by", "approved_at", "approved_count", "risk", "compensating_control")),
    }


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("start", ["=1+1", "+cmd", "-2+3+cmd", "@SUM(1)", '"=1+1', " =1+1", "\t=1", "\uff1d1+1"])
@pytest.mark.parametrize("before", ["", "x;", "x,", "x|", "x\t", "x\n", "x\r\n", 'x"; ', "x\u2028"])
def test_no_cell_is_a_formula_whatever_separator_is_assumed(tmp_path, separator, start, before):
    hostile = before + start
    written([finding("orders", "replication-factor", message=hostile, observed={"source": hostile})], tmp_path)
    with (tmp_path / "findings.csv").open(encoding="utf-8", newline="") as file:
        text = file.read()
    assert all(line.startswith('"') for line in (text.splitlines()[0], text.splitlines()[1])), "each cell is quoted"
    rows = csv.reader(text.splitlines(keepends=True), delimiter=separator)
    cells = [cell for row in rows for cell in row]
    # Excel ends a row at a line break in a cell, too, where the quotes begin elsewhere than it expects.
    pieces = [piece for cell in cells for piece in re.split(r"[;,|\t\n\r\u2028]", cell)]
    assert [piece for piece in pieces if piece.strip(' "').startswith(("=", "+", "-", "@", "\uff1d"))] == []


def test_numbers_and_texts_stay_as_they_are():
    for text in (
        "-1",
        "a=b; c=-1",
        '{"acks": [1, -1, -2.5]}',
        "partitions 0, 4: 2 replicas",
        "orders-eu",
        "3 > 2; 1 - 1",
    ):
        assert cells.safe(text) == text


def test_every_finding_is_a_row_of_the_csv_and_none_is_a_formula(tmp_path):
    hostile = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", 'plain "quoted", text\nsecond line']
    rows = [finding(f"t{i}", "standby-spread", message=text, cause=text) for i, text in enumerate(hostile)]
    rows.append(finding("cache-a", "replication-factor", "EXEMPT", waiver=0, partitions=[3, 5], since=NIGHT))
    written(rows, tmp_path)
    with (tmp_path / "findings.csv").open(encoding="utf-8", newline="") as file:
        text = file.read()
    listed = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(listed) == len(rows) and ",," not in text, "each cell has quotes, also an empty one"
    by_topic = {row["resource"]: row for row in listed}
    assert [by_topic[f"t{i}"]["message"] for i in range(6)] == [f"'{text}" for text in hostile[:6]]
    assert by_topic["t6"]["message"] == hostile[6]
    assert by_topic["cache-a"]["partitions"] == "3;5"
    assert by_topic["cache-a"]["waiver_owner"] == "payments"
    assert not [cell for row in listed for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_cells_of_a_waiver_are_escaped_once():
    row = finding("cache-a", "replication-factor", "EXEMPT", waiver=0)
    listed, file = with_teams(run_data([row]).listed, plan()), io.BytesIO()
    spreadsheet.write(file, listed, [WAIVERS[0] | {"reason": "=1+1", "approved_count": 0}])
    [read] = csv.DictReader(io.StringIO(file.getvalue().decode(), newline=""))
    assert (read["waiver_reason"], read["waiver_approved_count"], read["waiver_risk"]) == ("'=1+1", "0", "")


def test_a_report_that_fails_leaves_the_one_before(tmp_path):
    before = written([finding("a", "replication-factor")], tmp_path)
    broken = finding("b", "replication-factor", observed="not JSON")
    with pytest.raises(ValueError):
        written([broken], tmp_path)
    assert json.loads((tmp_path / "findings.json").read_text()) == before
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == {*FILES, POAM}


def test_an_output_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(Refused, match="out: can't be used as output folder"):
        written([], tmp_path / "out")


def test_findings_stream_back_from_disk(tmp_path):
    rows = [finding(f"t{i}", "replication-factor", message='line\nbreak, "id" } ]') for i in range(20)]
    whole = written(rows, tmp_path)
    streamed = files.load(tmp_path / "findings.json")
    assert list(streamed["findings"]) == whole["findings"] == list(streamed["findings"])
    assert {k: v for k, v in streamed.items() if k != "findings"} == {k: v for k, v in whole.items() if k != "findings"}
    (tmp_path / "pretty.json").write_text(json.dumps(whole, indent=2))
    assert files.load(tmp_path / "pretty.json") == whole


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "durability-findings/2"}'])
def test_a_file_that_is_no_findings_json_is_named(content, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=r"other\.json"):
        files.load(path)


@given(st.lists(st.none() | st.text(" \"'\u00a0;,|\t\n\u2028=+-@\uff1d1a.]\u00e9")))
def test_a_column_of_cells_is_as_safe_as_each_cell(texts):
    assert cells.safe_column(pa.array(texts, pa.string())).to_pylist() == [cells.safe(text) for text in texts]
