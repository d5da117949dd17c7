"""The whole program: audits of documents in one process and through Airflow, and audits that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import ROOT
from tests.support import topology

COMMAND = [sys.executable, "-m", "durability.cli", "audit"]
THROUGH_AIRFLOW = [*COMMAND, "--airflow"]


def environment(folder: Path, **given: str) -> dict[str, str]:
    return {**os.environ, "BOOTSTRAP": "", "OUT": str(folder / "out"), "LAKE": str(folder / "lake"), **given}


def children(folder: Path) -> list[int]:
    """Live processes that were told to write into this test's OUT."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            told = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if f"OUT={folder / 'out'}".encode() in told or f"DURABILITY_OUT={folder / 'out'}".encode() in told:
            found.append(int(entry.name))
    return found


def wait_for(condition, seconds: float):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)
    return value


def audit(command: list[str], folder: Path, **given: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, env=environment(folder, **given), capture_output=True, text=True, cwd=folder, timeout=500
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [COMMAND, THROUGH_AIRFLOW], ids=["in-process", "airflow"])
def test_one_document_that_cannot_be_used_costs_the_others_nothing(tmp_path, command):
    good = topology.document("topic replicas isr min\norders 1,2,3 1,2 2\nscratch 2 2 1", cluster="good")
    broken = topology.document("topic replicas\norders 1,2,9", brokers="1:az1 2:az2", cluster="broken")
    topology.write(tmp_path / "documents", good, broken)
    done = audit(command, tmp_path, TOPOLOGY=str(tmp_path / "documents"), FAIL_ON="critical")
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "broken-001.json, /topics/0/partitions/0/replicas/2" in done.stderr
    assert "Traceback" not in said
    findings = json.loads((tmp_path / "out" / "findings.json").read_text())
    status = {s["cluster"]: s["status"] for s in findings["run"]["snapshots"]}
    assert status == {"good": "accepted", "broken-001.json": "failed"}
    assert findings["run"]["verified"] is True
    at_min = [f for f in findings["findings"] if f["control"] == "partition-health" and f["resource"] == "orders"]
    assert {f["observed"]["category"] for f in at_min} == {"at-min-isr", "under-replicated"}
    assert (tmp_path / "out" / "report.html").exists()
    assert not children(tmp_path)
    if command is COMMAND:
        return
    log = (tmp_path / "out" / "logs" / "airflow.log").read_text()
    # What libraries say of themselves hides what the audit says, and an error that is none teaches to ignore them.
    assert "Skipping registering" not in log
    # The session that was started beside Airflow evaluated them, and its lines are where Airflow's log is.
    assert "Running Spark version" in log and "Spark-Submit cmd" not in log
    assert not [line for line in log.splitlines() if "[error" in line and "XCom" in line]


@pytest.mark.parametrize("command", [COMMAND, THROUGH_AIRFLOW], ids=["in-process", "airflow"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_audit_leaves_no_process(tmp_path, number, command):
    documents = topology.write(tmp_path / "documents", topology.healthy())
    program = subprocess.Popen(
        command,
        env=environment(tmp_path, TOPOLOGY=str(documents)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: len(children(tmp_path)) > 1, 60)
    program.send_signal(number)
    _, said = program.communicate(timeout=60)
    wait_for(lambda: not children(tmp_path), 30)
    assert program.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert "Traceback" not in said


def test_a_second_audit_of_the_same_folder_is_refused(tmp_path):
    from durability.runtime import out_lock

    documents = topology.write(tmp_path / "documents", topology.healthy())
    (tmp_path / "out").mkdir()
    with out_lock.held([tmp_path / "out"]):
        done = audit(COMMAND, tmp_path, TOPOLOGY=str(documents))
    assert done.returncode == 2
    assert f"another audit (process {os.getpid()}) is using {tmp_path / 'out'}" in done.stderr
