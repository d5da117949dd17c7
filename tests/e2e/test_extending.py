"""docs/extending.md, followed to the letter: three files make a control, and an older lake takes it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from durability.catalogue import CONTROLS
from durability.lake.tables import FINDINGS, TOPIC_POSTURE
from tests import ROOT
from tests.support.audited import audit
from tests.support.topology import document

PAGE = ROOT / "docs" / "extending.md"
FILES = dict(
    re.findall(r"^`((?:durability|spark_jobs|tests)/\S+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
)
NEW = ("retention-time", "replica-fetchers")
COPIED = ("durability", "spark_jobs", "expectations", "policies", "tests", "docs", "dags")
POLICY = """
format: durability-policy/1
name: extending
tiers:
  critical: {replication_factor: 3, min_insync_replicas: 2MORE}
topics: [{tier: critical}]
"""
DAY = {"orders": {"retention.ms": "86400000"}}


def cluster(day: int) -> dict:
    table = "topic replicas min\norders 1,2,3 2\nkept 1,2,3 2\nthin 1,2 2"
    return document(table, cluster="eu", captured_at=f"2026-11-{day}T02:00:00Z", configs=DAY)


def test_the_page_has_three_files_of_each_control():
    for control in NEW:
        module = control.replace("-", "_")
        rule, catalogue = f"spark_jobs/controls/{module}.py", f"durability/catalogue/{control}.yaml"
        assert {rule, catalogue, f"tests/cases/{control}.yaml"} <= set(FILES)
    assert len(FILES) == 3 * len(NEW)
    assert not set(NEW) & set(CONTROLS), "controls that are there already show nothing"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The source with the files of the page, and nothing else changed."""
    root = tmp_path_factory.mktemp("extended")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    if (ROOT / ".cache").exists():
        (root / ".cache").symlink_to((ROOT / ".cache").resolve())
    for name, content in FILES.items():
        assert not (root / name).exists()
        (root / name).write_text(content)
    return root


@pytest.mark.slow
def test_a_control_is_three_files(lake, session, copy, tmp_path):
    before, after = tmp_path / "before.yaml", tmp_path / "after.yaml"
    before.write_text(POLICY.replace("MORE", ""))
    after.write_text(POLICY.replace("MORE", ", retention_ms: 604800000, replica_fetchers: 2"))
    audit(session, lake, [cluster(21)], before, "before")
    (tmp_path / "second.json").write_text(json.dumps(cluster(22)))
    out = tmp_path / "out"
    out.mkdir()
    command = [
        sys.executable,
        "-m",
        "tests.support.extended",
        lake.location,
        after,
        tmp_path / "second.json",
        out,
        *NEW,
    ]
    ended = subprocess.run(
        list(map(str, command)), cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-4000:]

    told = json.loads((out / "findings.json").read_text())
    assert told["run"]["verified"]
    found = {(f["control"], f["resource"]): f for f in told["findings"]}
    retention = found["retention-time", "orders"]
    assert (retention["outcome"], retention["severity"], retention["change"]) == ("FAIL", "warning", "new")
    assert retention["observed"] == {"retention_ms": 86400000, "source": "topic"}
    assert retention["message"].endswith("tier critical requires 7 days")
    assert retention["remediation"].endswith("--entity-name orders --add-config retention.ms=604800000")
    assert ("retention-time", "kept") not in found
    assert {found["replica-fetchers", str(n)]["outcome"] for n in (1, 2, 3)} == {"FAIL"}
    assert found["replication-factor", "thin"]["change"] == "persisting"
    counted = told["summary"]["controls"]["retention-time"]
    assert {outcome: count for outcome, count in counted.items() if count} == {"FAIL": 1, "PASS": 2}

    rows = list(csv.DictReader((out / "findings.csv").open(encoding="utf-8")))
    assert {"retention-time", "replica-fetchers"} <= {row["control"] for row in rows}
    for page in ("report.html", "data_docs/index.html"):
        assert (out / page).exists()
    assert "retention-time" in (out / "report.html").read_text()
    assert any("retention-time" in path.read_text() for path in (out / "data_docs").rglob("*.html"))
    for page in ("docs/controls.md", "README.md"):
        text = (copy / page).read_text()
        assert all(control in text for control in NEW), page

    checks = {r["result_id"]: {c["control"] for c in r["checks"]} for r in lake.scan(TOPIC_POSTURE).to_pylist()}
    assert checks["after"] - checks["before"] == {"retention-time"}, "the lake from before is as it was"
    assert not set(NEW) & set(lake.scan(FINDINGS, "result_id = 'before'")["control"].to_pylist())
