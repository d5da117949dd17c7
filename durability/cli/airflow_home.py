"""The Airflow home of commands in this project: its location, settings and migrated database.

Airflow runs as a child process and is never imported, so that its slow start happens once.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from durability import resources
from durability.errors import Refused
from durability.runtime import locks

DATABASE, MIGRATED = "airflow.db", "migrated"
"""The database, and the file with the Airflow version that migrated it. That file is written last."""


def template() -> Path:
    """The home with the migrated database. Each run copies it."""
    return resources.state_folder() / "airflow"


def environment(home: Path, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for an `airflow` child whose AIRFLOW_HOME is `home`.

    Variables of `base` are kept, except for the home and this project's folders. This environment's `bin` comes first on
    PATH, because Airflow looks for spark-submit there.
    """
    bin_folder = Path(sys.executable).parent
    defaults = {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        # A task whose DAG isn't loaded in time is started again a minute later, and fails after three times.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "120",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        # No usage data is sent.
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "False",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    fixed = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(resources.shipped("dags")),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(resources.shipped("plugins")),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / DATABASE}",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "PATH": f"{bin_folder}{os.pathsep}{base.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
    }
    return {**defaults, **base, **fixed}


def airflow() -> str:
    """The `airflow` program of this environment."""
    return str(Path(sys.executable).parent / "airflow")


def require() -> None:
    """Raise Refused with the fix if Airflow isn't installed. Airflow isn't imported."""
    if importlib.util.find_spec("airflow") is None:
        raise Refused("Airflow isn't installed here: pip install 'kafka-durability-audit[airflow]'")


def migrate(home: Path | None = None) -> None:
    """Create or migrate the database in `home` (default: the template). Raises Refused with the log's path on failure."""
    require()
    home = home or template()
    resources.create_private(home)
    home.chmod(home.stat().st_mode & 0o700)  # an earlier version may have made it; it has passwords and Connections
    log = home / "migrate.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [airflow(), "db", "migrate"],
            env=environment(home),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            umask=0o077,
        )
    if done.returncode:
        raise Refused(f"Airflow's database could not be prepared; its log is {log}")


def prepare(source: Path) -> None:
    """Create a template's database again unless it is complete and of this Airflow version."""
    require()
    version, stamp = importlib.metadata.version("apache-airflow"), source / MIGRATED
    resources.create_private(source)
    with locks.file_lock(source / ".lock"):
        if stamp.is_file() and stamp.read_text() == version and (source / DATABASE).is_file():
            return
        # A killed process may have left a partial database. A template has no data to lose.
        (source / DATABASE).unlink(missing_ok=True)
        migrate(source)
        stamp.write_text(version)


def private_home(folder: Path, source: Path | None = None) -> Path:
    """A copy of the migrated home `source` (default: the template) for one run. Runs never share a SQLite file.

    A template without a database is migrated first. That takes a while, once.
    """
    source = source or template()
    prepare(source)
    resources.create_private(folder)
    for name in (DATABASE, "airflow.cfg"):
        if (source / name).exists():
            shutil.copy2(source / name, folder / name)
    return folder
