"""findings.junit.xml, as a CI server's parser reads it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from durability.report.formats import junit
from tests.support.report_cases import finding, report, snapshot

MESSAGE = {"message": "partition 0: replication factor 1, 3 required", "remediation": "Add replicas"}
ROWS = [
    finding("orders", "replication-factor", **MESSAGE),
    finding("logs", "partition-health", severity="warning", category="at-min-isr", **MESSAGE),
    finding("hidden", "replication-factor", "UNKNOWN", **MESSAGE),
    finding("cache-1", "replication-factor", "EXEMPT", waiver=0, **MESSAGE),
    finding("fine", "replication-factor", "PASS"),
    finding("good", "replication-factor", "PASS"),
    finding("scratch", "replication-factor", "NOT_APPLICABLE"),
    finding("mended", "replication-factor", "PASS", change="resolved", why="fixed"),
]


def suites(folder, rows=ROWS, **more) -> dict[str, ElementTree.Element]:
    report(rows, folder, **more)
    root = ElementTree.parse(folder / "findings.junit.xml").getroot()
    assert root.tag == "testsuites"
    return {suite.get("name"): suite for suite in root}


def results(suite: ElementTree.Element) -> dict[tuple[str, str], tuple[str, str | None]]:
    """By class and name of a case: the tag and the message of its result."""
    found = {}
    for case in suite.iter("testcase"):
        (result,) = list(case) or [ElementTree.Element("passed")]
        found[case.get("classname"), case.get("name")] = (result.tag, result.get("message"))
    return found


def test_outcomes_are_results(tmp_path):
    suite = suites(tmp_path)["eu-payments"]
    exempt = f"payments accepts this until 2027-01-31: rebuilt from the database every hour ({MESSAGE['message']})"
    assert results(suite) == {
        ("replication-factor", "topic orders"): ("failure", MESSAGE["message"]),
        ("partition-health", "topic logs (at-min-isr)"): ("failure", MESSAGE["message"]),
        ("replication-factor", "topic hidden"): ("error", MESSAGE["message"]),
        ("replication-factor", "topic cache-1"): ("skipped", exempt),
        ("replication-factor", "2 passed"): ("passed", None),
    }
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "timestamp")}
    assert counts == {"tests": "5", "failures": "2", "errors": "1", "skipped": "1", "timestamp": "2026-11-21T02:00:00"}
    (failure, *_) = suite.iter("failure")
    assert (failure.get("type"), failure.text) == ("critical", "Add replicas")


def test_a_cluster_that_was_not_judged_is_an_error(tmp_path):
    nowhere = snapshot("us", "unreachable", captured_at=None, snapshot_id=None, reason="no broker answers")
    found = suites(tmp_path, snapshots=[snapshot(), nowhere])
    assert results(found["us"]) == {("collection", "snapshot"): ("error", "unreachable: no broker answers")}
    assert found["us"].get("errors") == "1"


def test_findings_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(junit, "CASES", 1)
    found = results(suites(tmp_path)["eu-payments"])
    assert found == {
        ("replication-factor", "topic orders"): ("failure", MESSAGE["message"]),
        ("replication-factor", "2 passed"): ("passed", None),
        ("FAIL", "1 more finding"): ("failure", "1 more finding with outcome FAIL in findings.json"),
        ("UNKNOWN", "1 more finding"): ("error", "1 more finding with outcome UNKNOWN in findings.json"),
        ("EXEMPT", "1 more finding"): ("skipped", "1 more finding with outcome EXEMPT in findings.json"),
    }


def test_text_of_strangers_stays_text(tmp_path):
    hostile = '</failure><testcase name="forged"/>\x1b]0;owned\x07\x00\u202e&<![CDATA['
    row = finding("orders", "replication-factor", message=hostile, remediation=hostile, cluster="eu\x1b<b>")
    (suite,) = suites(tmp_path, [row], snapshots=[snapshot("eu\x1b<b>")]).values()
    (case,) = suite.iter("testcase")
    (failure,) = case
    shown = '</failure><testcase name="forged"/>\\x1b]0;owned\\x07\\x00\\u202e&<![CDATA['
    assert failure.get("message") == failure.text == shown
    assert suite.get("name") == "eu\\x1b<b>"


def test_without_findings_there_is_a_suite_per_cluster(tmp_path):
    (suite,) = suites(tmp_path, []).values()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("eu-payments", "0", "0")
