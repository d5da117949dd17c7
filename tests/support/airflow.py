"""One migrated Airflow home for a test session, and children that use a copy of it.

Children, because Airflow reads its settings once, when it is first imported.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from durability.cli import airflow_home


@functools.cache
def template() -> Path:
    """An AIRFLOW_HOME with a migrated database, from which each test takes its own copy."""
    home = Path(tempfile.mkdtemp(prefix="durability-test-airflow-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    airflow_home.migrate(home)
    return home


def run_in_airflow(folder: Path, source: str, **environ: str) -> str:
    """Run Python source in a child that has Airflow as a scheduler would have it; returns what it printed."""
    home = airflow_home.private_home(folder / "airflow", template())
    environment = airflow_home.environment(home, {**os.environ, **environ})
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=300, cwd=folder
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
