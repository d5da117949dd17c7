"""Reports that are cut to the controls that support a framework."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from durability.catalogue import CONTROLS
from durability.policy import Framework
from durability.policy.frameworks import FrameworkRequirement
from durability.report.text import digest
from durability.report.text.console import summary_text
from durability.steps.settings import Settings
from tests.support.report_cases import finding, report
from tests.support.schemas import problems

CUT = Framework(
    "house",
    "House rules",
    (FrameworkRequirement("1", "Redundancy", ("replication-factor", "rack-loss"), "direct", "x", "y"),),
)
NOTE = f"This report has only the 2 of {len(CONTROLS)} controls that support House rules."
ROWS = [
    finding("orders", "replication-factor", message="m"),
    finding("orders", "rack-loss", "UNKNOWN", message="m"),
    finding("fine", "replication-factor", "PASS"),
    finding("orders", "partition-health", category="offline", message="m"),
    finding("orders", "log-dirs", "UNKNOWN", message="m"),
    finding("other", "log-dirs", "PASS"),
]
REPORTED = {("orders", "replication-factor"), ("orders", "rack-loss")}


@pytest.fixture
def out(tmp_path) -> Path:
    report(ROWS, tmp_path, cut=CUT)
    return tmp_path


def test_findings_of_other_controls_are_neither_listed_nor_counted(out):
    document = json.loads((out / "findings.json").read_text())
    assert problems("findings", document) == []
    assert document["run"]["framework"] == {
        "id": "house",
        "title": "House rules",
        "controls": ["rack-loss", "replication-factor"],
    }
    assert {(f["resource"], f["control"]) for f in document["findings"]} == REPORTED
    assert document["summary"]["controls"].keys() == {"rack-loss", "replication-factor"}
    outcomes = document["summary"]["outcomes"]
    assert (outcomes["FAIL"], outcomes["UNKNOWN"], outcomes["PASS"]) == (1, 1, 1)
    with (out / "findings.csv").open() as file:
        assert {(row["resource"], row["control"]) for row in csv.DictReader(file)} == REPORTED


def test_formats_of_other_programs_are_cut_too(out):
    events = [json.loads(line) for line in (out / "findings.ocsf.jsonl").read_text().splitlines()]
    assert {(e["resources"][0]["name"], e["compliance"]["control"]) for e in events} == REPORTED
    assert [e["compliance"]["standards"] for e in events] == [["House rules"]] * 2
    (suite,) = ElementTree.parse(out / "findings.junit.xml").getroot()
    assert {case.get("classname") for case in suite.iter("testcase")} == {"rack-loss", "replication-factor"}
    assert "House rules" in [each.get("value") for each in suite.iter("property")]
    metrics = text_string_to_metric_families((out / "metrics.prom").read_text())
    counted = {s.labels["control"] for m in metrics for s in m.samples if s.name == "kafka_durability_findings"}
    assert counted == {"rack-loss", "replication-factor"}


def test_every_reader_is_told(out):
    document = json.loads((out / "findings.json").read_text())
    assert NOTE in (out / "report.html").read_text()
    assert NOTE in (out / "summary.md").read_text()
    assert NOTE in " ".join(summary_text(document, []).split())
    assert NOTE in json.dumps(digest.payload(digest.read(document)))


def test_a_whole_report_says_nothing_of_it(tmp_path):
    report(ROWS, tmp_path)
    document = json.loads((tmp_path / "findings.json").read_text())
    assert document["run"]["framework"] is None
    assert len(document["findings"]) == 4
    assert "This report has only" not in (tmp_path / "report.html").read_text()


def test_a_run_of_an_earlier_version_has_no_such_param(tmp_path):
    stated = Settings(tmp_path, tmp_path, tmp_path, tmp_path, "lake", None, "soc2").to_params()
    assert Settings.from_params(stated).framework == "soc2"
    assert Settings.from_params({name: v for name, v in stated.items() if name != "framework"}).framework is None
    assert Settings.from_params({**stated, "framework": ""}).framework is None
