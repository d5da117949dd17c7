"""The whole program: an audit of documents through Airflow, and audits that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support import topology, unusable
from tests.support.unusable import children
from tests.support.waiting import wait_for

COMMAND = [sys.executable, "-m", "durability.cli", "audit"]
THROUGH_AIRFLOW = [*COMMAND, "--airflow"]


def environment(folder: Path, **given: str) -> dict[str, str]:
    return {**os.environ, "BOOTSTRAP": "", "OUT": str(folder / "out"), "LAKE": str(folder / "lake"), **given}


def audit(command: list[str], folder: Path, **given: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, env=environment(folder, **given), capture_output=True, text=True, cwd=folder, timeout=500
    )


@pytest.mark.slow
def test_one_document_that_cannot_be_used_costs_the_others_nothing(tmp_path):
    """Without Airflow: test_public_cases.py."""
    documents = unusable.write(tmp_path / "documents")
    done = audit(THROUGH_AIRFLOW, tmp_path, TOPOLOGY=str(documents), FAIL_ON="critical")
    assert set(unusable.check_others(done, tmp_path)) == {"good"}
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
    wait_for(lambda: len(children(tmp_path)) > 1, "its children run", 180)
    program.send_signal(number)
    _, said = program.communicate(timeout=180)
    wait_for(lambda: not children(tmp_path), "they are gone")
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
