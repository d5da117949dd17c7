"""What `make audit` refuses, and what it takes for granted."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from durability.launch.audit import kafka_connection
from durability.launch.console import Console

from durability.errors import Refused
from durability.launch import audit as launcher
from durability.launch import journal, locks, options, outcome

ROOT = Path(__file__).resolve().parents[1]
TYPO = (
    "format: durability-policy/1\nname: x\ntiers:\n  critical: {replication_facto: 3}\ntopics:\n  - {tier: critical}\n"
)


@pytest.fixture
def documents(tmp_path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    return folder


def audit(folder: Path, **given: str) -> subprocess.CompletedProcess:
    """`python -m durability.launch audit` as make starts it."""
    environment = {**os.environ, "OUT": str(folder / "out"), "LAKE": str(folder / "lake"), **given}
    command = [sys.executable, "-m", "durability.launch", "audit"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=60)


def test_a_typo_in_the_policy_is_refused_with_file_and_line(tmp_path, documents):
    policy = tmp_path / "policy.yaml"
    policy.write_text(TYPO)
    done = audit(tmp_path, TOPOLOGY=str(documents), POLICY=str(policy))
    assert done.returncode == 2
    assert f"{policy}, line 4" in done.stderr and "replication_facto" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"TOPOLOGY": "/nowhere/at/all"}, "TOPOLOGY=/nowhere/at/all: no such file or folder"),
        ({"BOOTSTRAP": "broker-without-port"}, "is not host:port"),
        ({"BOOTSTRAP": "broker:99999"}, "is not host:port"),
        ({"BOOTSTRAP": "a:1", "TOPOLOGY": "/tmp"}, "either a cluster or documents"),
        ({"BOOTSTRAP": "a:1", "FAIL_ON": "often"}, "FAIL_ON=often: expected one of critical, warning, unknown, never"),
        ({"BOOTSTRAP": "a:1", "POLICY": "/nowhere.yaml"}, "POLICY=/nowhere.yaml: no such file"),
    ],
)
def test_options_that_name_nothing_or_contradict_each_other(tmp_path, given, said):
    done = audit(tmp_path, **given)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_an_out_folder_that_is_a_file(tmp_path, documents):
    (tmp_path / "out").write_text("mine")
    done = audit(tmp_path, TOPOLOGY=str(documents))
    assert done.returncode == 2 and "is a file, a folder is needed" in done.stderr
    assert (tmp_path / "out").read_text() == "mine"


def test_documents_get_a_lake_of_their_own_and_clusters_share_one(tmp_path, documents):
    given = {"TOPOLOGY": str(documents), "OUT": str(tmp_path / "out")}
    asked = options.from_environment(given)
    assert (asked.source, asked.lake, asked.fail_on) == ("topology", str(tmp_path / "out" / "lake"), "never")
    asked = options.from_environment({"BOOTSTRAP": "a:1, b:2", "OUT": str(tmp_path / "out")})
    assert (asked.source, asked.bootstrap) == ("bootstrap", "a:1,b:2")
    assert asked.lake == str(ROOT / ".state" / "lake")
    assert asked.policy == ROOT / "policies" / "policy.yaml"


def test_nothing_said_is_the_demo_with_its_own_policy(tmp_path):
    asked = options.from_environment({"OUT": str(tmp_path), "BOOTSTRAP": " ", "TOPOLOGY": ""})
    assert asked.source == "demo"
    assert asked.policy == ROOT / "policies" / "demo" / "policy.yaml"


def test_two_audits_of_one_folder(tmp_path):
    with locks.held([tmp_path]):
        with pytest.raises(Refused, match=rf"another audit \(process {os.getpid()}\) is using"), locks.held([tmp_path]):
            pytest.fail("the lock was given twice")
        with locks.held([tmp_path / ".."]):
            pass
    with locks.held([tmp_path]):
        assert not any(tmp_path.iterdir())


def test_a_users_connection_keeps_its_security_settings():
    given = json.dumps({"conn_type": "kafka", "password": "s", "extra": json.dumps({"security.protocol": "SASL_SSL"})})
    made = json.loads(kafka_connection("b:9093", given))
    assert made["extra"] == {"security.protocol": "SASL_SSL", "bootstrap.servers": "b:9093"}
    assert made["password"] == "s"


def test_the_journal_gives_only_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    reader = journal.Reader(path)
    assert list(reader.new()) == []
    monkeypatch.setenv(journal.VARIABLE, str(path))
    journal.write("step", name="plan", state="done")
    with path.open("a") as file:
        file.write('{"event": "pro')
    assert [e["name"] for e in reader.new()] == ["plan"]
    with path.open("a") as file:
        file.write('blem", "text": "t"}\n')
    assert [e["text"] for e in reader.new()] == ["t"]


@pytest.mark.parametrize(
    ("outcomes", "reached_by"),
    [
        ([("FAIL", "critical")], {"critical", "warning", "unknown"}),
        ([("FAIL", "warning")], {"warning", "unknown"}),
        ([("UNKNOWN", None)], {"unknown"}),
        ([("FAIL", "info"), ("EXEMPT", "critical")], set()),
    ],
)
def test_how_grave_a_finding_ends_the_program_with_1(outcomes, reached_by):
    findings = [{"outcome": o, "severity": s, "change": "new"} for o, s in outcomes]
    assert {f for f in options.FAIL_ON if outcome.reached(findings, f)} == reached_by
    resolved = [{**f, "change": "resolved"} for f in findings]
    assert not any(outcome.reached(resolved, f) for f in options.FAIL_ON)


@pytest.mark.parametrize(("status", "said"), [("failed", "nothing could be read"), ("accepted", "what could be read")])
def test_an_incomplete_audit_says_what_its_report_is_worth(tmp_path, monkeypatch, status, said):
    snapshots = [{"cluster": "a", "status": status}, {"cluster": "b", "status": "failed"}]
    document = {"format": "durability-findings/1", "run": {"snapshots": snapshots}, "findings": []}
    (tmp_path / "findings.json").write_text(json.dumps(document))
    monkeypatch.setattr("durability.report.console.summary_text", lambda *_, **__: "")
    errors = io.StringIO()
    asked = SimpleNamespace(out=tmp_path, fail_on="never")
    ended = launcher._conclude(asked, 1, ["why"], 0.0, tmp_path / "log", Console(io.StringIO(), errors))
    assert ended == outcome.INCOMPLETE and said in errors.getvalue()
