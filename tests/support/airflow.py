"""One migrated Airflow home for a test session, and children that use a copy of it.

Children, because Airflow reads its settings once, when it is first imported.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from durability.launch import airflow_home


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
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
