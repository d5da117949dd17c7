"""findings.ocsf.jsonl, as OCSF's own schema and its consumers read it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

from durability.policy import shipped_frameworks
from tests.support.report_cases import finding, report, snapshot

MESSAGE = {"message": "partition 0: replication factor 1, 3 required", "remediation": "Add replicas"}


@cache
def validator(version: str = "1.8.0") -> Draft202012Validator:
    """Of Compliance Finding, without profiles. It refuses members that the class doesn't have."""
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=version)).get_class_schema("compliance_finding")
    return Draft202012Validator(schema)


def events(folder: Path, rows: list[dict], **more) -> list[dict]:
    """The events of these rows, after OCSF's schema has accepted each."""
    report(rows, folder, **more)
    found = [json.loads(line) for line in (folder / "findings.ocsf.jsonl").read_bytes().splitlines()]
    assert [(e["finding_info"]["uid"], problem.message) for e in found for problem in validator().iter_errors(e)] == []
    return found


def event(folder: Path, row: dict, **more) -> dict:
    (found,) = events(folder, [row], **more)
    return found


def test_a_failure_is_an_event(tmp_path):
    row = finding(
        "orders",
        "replication-factor",
        cause="configuration:topic",
        observed={"replication_factor": 1},
        required={"replication_factor": 3},
        partitions=[0, 7],
        tier="critical",
        **MESSAGE,
    )
    found = event(tmp_path, row, snapshots=[snapshot(team="payments")])
    assert (found["class_uid"], found["type_uid"], found["activity_id"]) == (2003, 200302, 2)
    assert (found["severity_id"], found["severity"]) == (5, "Critical")
    assert found["time"] == found["finding_info"]["last_seen_time"] == 1795226400000  # 2026-11-21T02:00:00Z
    assert found["finding_info"]["first_seen_time"] == 1795226400000 - 3 * 86_400_000
    assert found["finding_info"]["uid"] == row["id"]
    assert found["message"] == MESSAGE["message"]
    assert found["remediation"] == {"desc": "Add replicas"}
    assert "status_id" not in found  # the consumer's to set
    compliance = found["compliance"]
    assert (compliance["control"], compliance["status_id"], compliance["status"]) == ("replication-factor", 3, "Fail")
    assert compliance["control_parameters"] == [{"name": "replication_factor", "value": "3"}]
    assert found["evidences"][0]["data"] == {"replication_factor": 1}
    (resource,) = found["resources"]
    assert (resource["name"], resource["type"], resource["namespace"]) == ("orders", "topic", "eu-payments")
    assert resource["owner"]["name"] == "payments"
    assert resource["data"] == {"partitions": [0, 7]}


@pytest.mark.parametrize(
    ("change", "outcome", "activity", "status"),
    [
        ("new", "FAIL", 1, None),
        ("persisting", "FAIL", 2, None),
        ("resolved", "PASS", 3, 4),
        ("resolved", "NOT_APPLICABLE", 3, 4),
        ("new", "UNKNOWN", 1, None),
        (None, "UNKNOWN", 0, None),
        ("new", "EXEMPT", 1, 3),
        ("resolved", "EXEMPT", 2, 3),  # a waiver resolves nothing
    ],
)
def test_changes_are_activities(tmp_path, change, outcome, activity, status):
    row = finding("t", "log-dirs", outcome, change=change, waiver=0 if outcome == "EXEMPT" else None)
    found = event(tmp_path, row)
    assert (found["activity_id"], found["type_uid"], found.get("status_id")) == (activity, 200300 + activity, status)


def test_unknown_is_never_a_pass(tmp_path):
    compliance = event(tmp_path, finding("t", "log-dirs", "UNKNOWN", message="not readable"))["compliance"]
    assert (compliance["status_id"], compliance["status_code"]) == (0, "UNKNOWN")
    assert compliance["status_details"] == ["not readable"]
    silent = event(tmp_path, finding("t", "log-dirs", "UNKNOWN"))["compliance"]
    assert silent["status_details"] == ["UNKNOWN: no reason is recorded"]


def test_a_waived_failure_fails_and_is_suppressed(tmp_path):
    found = event(tmp_path, finding("cache-1", "replication-factor", "EXEMPT", waiver=0, **MESSAGE))
    accepted = "payments accepts this until 2027-01-31: rebuilt from the database every hour"
    accepted += " (approved by A. Reviewer, ticket RISK-7)"
    assert (found["status"], found["comment"]) == ("Suppressed", accepted)
    assert (found["compliance"]["status_id"], found["compliance"]["status_code"]) == (3, "EXEMPT")
    assert found["compliance"]["status_details"] == [MESSAGE["message"], accepted]


def test_a_resolved_finding_tells_why_and_how_severe_it_was(tmp_path):
    row = finding(
        "t", "write-headroom", "PASS", change="resolved", why="fixed", previous_severity="info", message="was"
    )
    found = event(tmp_path, row)
    assert found["compliance"]["status_details"] == ["fixed", "was"]
    assert (found["compliance"]["status_id"], found["severity"]) == (1, "Informational")
    assert "last_seen_time" not in found["finding_info"]
    gone = event(tmp_path, finding("t", "log-dirs", "NOT_APPLICABLE", change="resolved", why="resource-deleted"))
    assert gone["compliance"]["status_id"] == 99


def test_severity_is_the_catalogues_where_the_outcome_has_none(tmp_path):
    found = event(tmp_path, finding("t", "isr-rack-spread", "UNKNOWN", category="at-min-rack-isr"))
    assert (found["severity_id"], found["compliance"]["status_id"]) == (1, 0)


def test_requirements_are_supported_and_not_judged(tmp_path):
    compliance = event(tmp_path, finding("orders", "rack-loss", **MESSAGE))["compliance"]
    supported = {(f.title, r.id) for f in shipped_frameworks() for r in f.requirements if "rack-loss" in r.controls}
    assert {(check["standards"][0], check["uid"]) for check in compliance["checks"]} == supported
    assert set(compliance["requirements"]) == {f"{title} {requirement}" for title, requirement in supported}
    assert set(compliance["standards"]) == {title for title, _ in supported}
    for check in compliance["checks"]:
        assert "status" not in check and "status_id" not in check
        assert check["desc"] in ("strength: direct", "strength: supporting")


def test_a_control_that_no_framework_maps_has_an_event(tmp_path):
    found = event(tmp_path, finding("orders", "a-control-of-ours", **MESSAGE))
    assert found["compliance"].keys() & {"checks", "standards", "requirements"} == set()


def test_a_cluster_that_was_not_read_has_the_time_of_the_run(tmp_path):
    nowhere = snapshot("us", "failed", captured_at=None, snapshot_id=None, sha256=None, reason="no broker answers")
    row = finding(None, "controller-quorum", "UNKNOWN", cluster="us", resource_type="cluster", since=None)
    found = event(tmp_path, row, snapshots=[nowhere])
    assert found["time"] == 1795226405000  # started_at
    assert found["resources"][0]["name"] == "us"
    assert "first_seen_time" not in found["finding_info"]


def test_text_of_strangers_stays_on_its_line(tmp_path):
    hostile = 'a","status_id":1,"x":"\n{}\r\u2028\u0085\x00\U0001f600\x1b[2J'
    rows = [
        finding(hostile, "replication-factor", message=hostile, remediation=hostile, cause=hostile, tier=hostile)
        | {"observed": json.dumps({hostile: hostile}), "required": json.dumps({"racks": [hostile]})}
    ] * 2
    found = events(tmp_path, rows, snapshots=[snapshot(team=hostile)])
    text = (tmp_path / "findings.ocsf.jsonl").read_bytes().decode()
    assert text.isascii() and len(text.splitlines()) == len(found) == 2
    assert found[0]["message"] == hostile == found[0]["resources"][0]["owner"]["name"]
    assert found[0]["compliance"]["status_id"] == 3


def test_the_checker_refuses_what_is_wrong(tmp_path):
    found = event(tmp_path, finding("orders", "rack-loss", **MESSAGE))
    for wrong in ({**found, "extra": 1}, {**found, "severity_id": 7}, {k: v for k, v in found.items() if k != "time"}):
        assert list(validator().iter_errors(wrong))
