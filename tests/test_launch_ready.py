"""A Spark session that waits for its plan: given one it ends with its job's status, called off it judges nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from durability.lake import catalog
from durability.launch import ready
from durability.launch.audit import JOB
from durability.run.plan import SMALL
from durability.runtime import processes, watchdog

WAITS = "import pathlib, sys; print('told', pathlib.Path(sys.argv[2]).read_text()); sys.exit(3)"


def wait_for(condition, what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so: {what}"
        time.sleep(0.05)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts a job that waits, of a lake in this test's folder, for this process to take; its session."""
    with processes.Session("durability-test-") as session:

        def start(job: Path = JOB) -> processes.Session:
            for name, value in ready.start(session, str(tmp_path / "lake"), job, os.environ).items():
                monkeypatch.setenv(name, value)
            return session

        yield start


@pytest.mark.slow
@pytest.mark.parametrize(("lake", "partitions"), [("lake", SMALL), ("other", 10)])
def test_a_run_of_another_size_or_lake_has_a_session_of_its_own(tmp_path, started, lake, partitions) -> None:
    session = started()
    assert ready.taken(str(tmp_path / lake), partitions) is None
    wait_for(lambda: (session.folder / "ready" / ready.STATUS).exists(), "it ends by itself")
    assert (session.folder / "ready" / ready.STATUS).read_text() == "0", (
        session.folder / "ready" / ready.LOG
    ).read_text()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "nothing was judged"
    wait_for(lambda: not watchdog.marked(session.id), "no process is left")


def test_a_job_that_fails_says_so_to_who_took_it(tmp_path, started) -> None:
    (tmp_path / "jobs").mkdir()
    job = tmp_path / "jobs" / "waits.py"
    job.write_text(WAITS)
    started(job)
    waiting, said = ready.taken(str(tmp_path / "lake"), 10), []
    assert ready.taken(str(tmp_path / "lake"), 10) is None, "it is taken once"
    assert waiting.judge("a plan", said.append) != 0
    assert "told a plan" in said


def test_one_that_has_ended_before_is_not_waited_for(tmp_path, started) -> None:
    (tmp_path / "jobs").mkdir()
    job = tmp_path / "jobs" / "ends.py"
    job.write_text("raise SystemExit('no memory left')")
    session = started(job)
    wait_for(lambda: (session.folder / "ready" / ready.STATUS).exists(), "it has ended")
    said: list[str] = []
    assert ready.taken(str(tmp_path / "lake"), 10).judge("a plan", said.append) != 0
    assert "no memory left" in said


def test_what_it_was_told_is_its_owners_alone(tmp_path, started, monkeypatch) -> None:
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://user:secret@127.0.0.1/lake")
    (tmp_path / "jobs").mkdir()
    job = tmp_path / "jobs" / "ends.py"
    job.write_text("")
    session = started(job)
    folder = session.folder / "ready"
    assert "secret" in (folder / ready.PROPERTIES).read_text()
    assert ready.taken(str(tmp_path / "lake"), 10) is not None
    assert {path.stat().st_mode & 0o77 for path in (folder / ready.PROPERTIES, folder / ready.PLAN)} == {0}
    holding = [path.name for path in folder.iterdir() if path.is_file() and "secret" in path.read_text()]
    assert holding == [ready.PROPERTIES]
    for pid in watchdog.marked(session.id):
        assert b"secret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert catalog.spark_secrets(catalog.place(str(tmp_path / "lake"))), "there is one"
