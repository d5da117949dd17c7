"""What the report says of Streams applications: the tasks that a lost zone takes with it."""

from __future__ import annotations

import json

from durability.lake import tables
from durability.report.build import build
from durability.report.data.applications import applications
from durability.report.files import load
from tests.support.html import SCRIPT, parse
from tests.support.report_cases import findings, flagged, placements, plan, report

JUDGED = {
    "type": "classic",
    "standby_replicas": 1,
    "rack_aware_tags": ["zone"],
    "clients": 3,
    "tasks": 4,
    "standbys": 0,
}
LOSSES = [
    {"tag": "zone", "value": "az1", "count": 9, "tasks": [f"0_{n}" for n in range(9)]},
    {"tag": "zone", "value": SCRIPT, "count": 0, "tasks": []},
]


def test_the_lost_tasks_are_told_in_json_and_on_the_page(lake, tmp_path):
    moving = {"type": "classic", "rack_aware_tags": ["zone"], "unknown": "the placement is in transition"}
    rows = [("quiet", {**JUDGED, "losses": []}), ("orders", {**JUDGED, "losses": LOSSES}), ("moving", moving)]
    lake.append(tables.RESOLVED_POLICY, placements([*rows, ("nobody's", {"type": "classic"})]))
    lake.append(tables.FINDINGS, findings([]))
    build(lake, plan(applications=4), flagged(), tmp_path)
    document = json.loads((tmp_path / "findings.json").read_text())
    assert [a["group"] for a in document["applications"]] == ["orders", "moving", "quiet"]
    assert document["applications"][0]["losses"] == LOSSES
    assert load(tmp_path / "findings.json")["applications"] == document["applications"]
    words, _ = parse((tmp_path / "report.html").read_text())
    assert "zone az1 : 9 tasks (0_0, 0_1, 0_2, 0_3, 0_4, 0_5, and 3 more)" in words
    assert "the placement is in transition" in words
    assert f"zone {SCRIPT} : none" in words


def test_strangers_names_stay_text(lake, tmp_path):
    losses = [{"tag": SCRIPT, "value": SCRIPT, "count": 1, "tasks": [SCRIPT]}]
    hostile = {**JUDGED, "rack_aware_tags": [SCRIPT], "type": SCRIPT}
    rows = [(SCRIPT, {**hostile, "losses": losses}), (f"{SCRIPT} 2", {**hostile, "unknown": SCRIPT})]
    lake.append(tables.RESOLVED_POLICY, placements(rows))
    lake.append(tables.FINDINGS, findings([]))
    build(lake, plan(applications=2), flagged(), tmp_path)
    words, reader = parse((tmp_path / "report.html").read_text())
    assert words.count("<script>alert(1)</script>") >= 5
    assert not reader.tags & {"script", "img"}


def test_a_fleet_without_applications_has_no_such_section(lake, tmp_path):
    build(lake, plan(), flagged(), tmp_path)
    assert json.loads((tmp_path / "findings.json").read_text())["applications"] == []
    assert 'id="applications"' not in (tmp_path / "report.html").read_text()


def test_the_page_stays_small(tmp_path):
    losses = [{"tag": "host", "value": f"h{n:02}", "count": 30, "tasks": ["0_0"] * 20} for n in range(20)]
    found = applications(placements([(f"app-{n}", {**JUDGED, "losses": losses}) for n in range(300)]))
    report([], tmp_path, applications=found)
    words, _ = parse((tmp_path / "report.html").read_text())
    assert "200 more applications in findings.json." in words
    assert words.count("14 more values of host") == 100 and words.count("and 24 more") == 600
