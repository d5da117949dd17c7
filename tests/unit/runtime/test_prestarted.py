"""A Spark session that waits for its plan: given one it ends with its job's status, called off it judges nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability import resources
from durability.cli import airflow_run
from durability.cli.inputs import Input
from durability.plan.plan import SMALL
from durability.runtime import prestarted, processes, spark, watchdog
from durability.steps.evaluate import JobFailed, SparkEvaluation
from durability.steps.summary import StepSummary
from tests.support.waiting import wait_for

JOB = resources.spark_job("evaluate.py")
READS = "import pathlib, sys\nprint('told ' + pathlib.Path(sys.argv[2]).read_text(), flush=True)\n"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts a job that waits, of a lake in this test's folder, for this process to take; the folder and the job's leader."""
    with processes.Session("durability-test-") as session:

        def start(code: str | None = None) -> tuple[Path, int]:
            job = JOB if code is None else tmp_path / "jobs" / "job.py"
            if code is not None:
                job.parent.mkdir()
                job.write_text(code)
            for name, value in prestarted.start(session, str(tmp_path / "lake"), job, spark.environment()).items():
                monkeypatch.setenv(name, value)
            folder = session.folder / "prestarted"
            return folder, int((folder / prestarted.LEADER).read_text())

        yield start


@pytest.mark.slow
@pytest.mark.parametrize(("lake", "partitions"), [("lake", SMALL), ("other", 10)])
def test_a_run_of_another_size_or_lake_has_a_session_of_its_own(tmp_path, started, lake, partitions) -> None:
    folder, leader = started()
    assert prestarted.take(str(tmp_path / lake), partitions) is None
    assert (folder / prestarted.STATUS).read_text().strip() == "0", (folder / prestarted.LOG).read_text()
    assert "Running Spark version" in (folder / prestarted.LOG).read_text()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "nothing was judged"
    assert not watchdog.family(leader), "it doesn't stand beside the run's own"


@pytest.mark.parametrize(("then", "status"), [("sys.exit(3)", 3), ("", 0)])
def test_its_taker_learns_how_its_job_ended(tmp_path, started, then, status) -> None:
    started(READS + then)
    waiting, said = prestarted.take(str(tmp_path / "lake"), 10), []
    assert prestarted.take(str(tmp_path / "lake"), 10) is None, "it is taken once"
    assert waiting.give("a plan")
    assert waiting.wait(said.append) == status
    assert "told a plan" in said


def test_one_that_has_ended_before_is_given_nothing(tmp_path, started) -> None:
    folder, _ = started("raise SystemExit('no memory left')")
    wait_for((folder / prestarted.STATUS).exists, "it has ended")
    waiting, said = prestarted.take(str(tmp_path / "lake"), 10), []
    assert not waiting.give("a plan")
    assert waiting.wait(said.append) == 1
    assert "no memory left" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_killed_is_not_waited_for(tmp_path, started, number) -> None:
    folder, leader = started(READS + "import time\ntime.sleep(600)")
    waiting = prestarted.take(str(tmp_path / "lake"), 10)
    assert waiting.give("a plan")
    wait_for(lambda: "told a plan" in (folder / prestarted.LOG).read_text(), "it works on the plan")
    if number == signal.SIGTERM:
        waiting.stop()
    else:
        for pid in watchdog.family(leader):
            watchdog.send(pid, number)
    assert waiting.wait(lambda line: None) != 0
    assert not watchdog.family(leader)


PLAN = SimpleNamespace(partitions=10, judged=[1], snapshots=[1], to_json=lambda: "a plan")
LAKE = SimpleNamespace(location="lake")


def test_the_step_submits_its_job_where_the_session_has_died(monkeypatch) -> None:
    submitted, said = [], []
    dead = SimpleNamespace(give=lambda plan: False, wait=lambda log: log("no memory left"))
    monkeypatch.setattr(prestarted, "take", lambda lake, partitions: dead)
    evaluation = SparkEvaluation(lambda lake, plan: submitted.append(plan), said.append)
    summary = StepSummary()
    evaluation.run(LAKE, PLAN, summary)
    assert summary.text == "1 of 1 cluster, 10 partitions"
    assert submitted == [PLAN] and said[0] == "no memory left"
    assert not evaluation.stop(), "what it submitted isn't the session's"


def test_the_step_fails_with_the_session_and_ends_it_when_killed(monkeypatch) -> None:
    stopped = []
    session = SimpleNamespace(give=lambda plan: True, wait=lambda log: 1, stop=lambda: stopped.append(True))
    monkeypatch.setattr(prestarted, "take", lambda lake, partitions: session)
    monkeypatch.setattr("durability.plan.inputs.check", lambda lake, plan: None)
    evaluation = SparkEvaluation(lambda lake, plan: pytest.fail("it was submitted as well"), lambda line: None)
    with pytest.raises(JobFailed, match="exit status 1"):
        evaluation.run(LAKE, PLAN, StepSummary())
    assert evaluation.stop() and stopped == [True]


def test_what_it_was_told_is_its_owners_alone(tmp_path, started, monkeypatch) -> None:
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://user:secret@127.0.0.1/lake")
    folder, leader = started(READS + "import time\ntime.sleep(600)")
    waiting = prestarted.take(str(tmp_path / "lake"), 10)
    assert waiting is not None, "the catalog is one of what has to be the same"
    assert waiting.give("a plan")
    wait_for(lambda: "told a plan" in (folder / prestarted.LOG).read_text(), "it works on the plan")
    assert {path.stat().st_mode & 0o77 for path in (folder / prestarted.PROPERTIES, folder / prestarted.PLAN)} == {0}
    assert [p.name for p in folder.iterdir() if p.is_file() and "secret" in p.read_text()] == [prestarted.PROPERTIES]
    family = watchdog.family(leader)
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family]
    assert any(b"org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    assert not [command for command in commands if b"secret" in command]
    waiting.stop()


def test_a_session_that_the_environment_names_is_not_ours(tmp_path, monkeypatch) -> None:
    options = SimpleNamespace(lake=str(tmp_path / "lake"), out=tmp_path / "out", signing_key=None)
    monkeypatch.setattr(airflow_run.airflow_home, "private_home", lambda folder: folder)
    given = {**os.environ, prestarted.VARIABLE: "/nowhere"}
    made = airflow_run.airflow_environment(options, Input("x", tmp_path / "clusters.yaml"), given, tmp_path)
    assert prestarted.VARIABLE not in made


@pytest.mark.parametrize("named", [None, "spark://127.0.0.1:7077"])
def test_a_session_is_prestarted_unless_a_connection_names_another(named, tmp_path, monkeypatch) -> None:
    options = SimpleNamespace(lake=str(tmp_path / "lake"), out=tmp_path / "out", signing_key=None)
    monkeypatch.setattr(airflow_run.airflow_home, "private_home", lambda folder: folder)
    started, ran = [], []
    monkeypatch.setattr(prestarted, "start", lambda *given: started.append(given) or {prestarted.VARIABLE: "/ours"})
    monkeypatch.setattr(airflow_run, "run", lambda *given: ran.append(given[-1]) or True)
    environ = dict(os.environ) | ({airflow_run.SPARK: named} if named else {})
    what = SimpleNamespace(connection=None, settings=lambda _: SimpleNamespace(to_params=dict))
    assert airflow_run.audit(options, what, SimpleNamespace(folder=tmp_path), tmp_path / "log", None, environ)
    assert ran[0].get(prestarted.VARIABLE) == (None if named else "/ours") and len(started) == (named is None)
    assert (ran[0][airflow_run.SPARK] == named) == (named is not None)
