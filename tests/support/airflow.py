"""One migrated Airflow home for all workers of a test run, and children that use a copy of it.

Children, because Airflow reads its settings once, when it is first imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from durability.cli import airflow_home

_FOLDERS: list[Path] = []


@pytest.fixture(scope="session", autouse=True)
def _folder_of_the_run(tmp_path_factory) -> None:
    """Remembers the folder that the run's workers share; pytest removes it some runs later."""
    mine = tmp_path_factory.getbasetemp()
    _FOLDERS.append(mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine)


def template() -> Path:
    """An AIRFLOW_HOME from whose database each test takes its own copy, migrated by the first worker that needs one."""
    return _FOLDERS[-1] / "airflow-template"


MOST_SECONDS = 900
"""A run has up to three Spark jobs, beside other tests on few cores."""


def run_in_airflow(folder: Path, source: str, **environ: str) -> str:
    """Run Python source in a child that has Airflow as a scheduler would have it; returns what it printed."""
    home = airflow_home.private_home(folder / "airflow", template())
    environment = airflow_home.environment(home, {**os.environ, **environ})
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = """
import json, os
from airflow.dag_processing.dagbag import DagBag
asked = json.loads(os.environ["ASKED"])
dag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]).dags[asked["dag_id"]]
run = dag.test(run_conf=asked["conf"])
print("RESULT", json.dumps({"run": run.state, **{t.task_id: t.state for t in run.get_task_instances()}}))
"""


def run_dag(folder: Path, dag_id: str, conf: dict, **environ: str) -> dict[str, str]:
    """Runs a DAG once, without retries; the state of the run and of each task by name."""
    asked = json.dumps({"dag_id": dag_id, "conf": conf})
    return result(run_in_airflow(folder, RUN, ASKED=asked, DURABILITY_RETRIES="0", **environ))


def result(output: str):
    """What a child's line RESULT says."""
    (line,) = [x for x in output.splitlines() if x.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))
