"""The Airflow that commands of this project start: where it lives, its settings, its migrated database.

Airflow is a child process here and is never imported: its start-up is paid once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from durability.errors import Refused

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".state"
TEMPLATE = STATE / "airflow"


def environment(home: Path, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for an `airflow` child whose AIRFLOW_HOME is `home`.

    What `base` sets stays, except for the home and the folders that belong to this project. This environment's own
    `bin` comes first on PATH, where Airflow looks for spark-submit.
    """
    bin_folder = Path(sys.executable).parent
    defaults = {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        # Runs are labelled with what they did, not with usage numbers sent elsewhere.
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "False",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    fixed = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "PATH": f"{bin_folder}{os.pathsep}{base.get('PATH', os.defpath)}",
        "PYTHONUNBUFFERED": "1",
    }
    return {**defaults, **base, **fixed}


def airflow() -> str:
    """The `airflow` program of this environment."""
    return str(Path(sys.executable).parent / "airflow")


def migrate(home: Path = TEMPLATE) -> None:
    """Create or migrate the database under `home`; Refused with the log's place when Airflow can't."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "migrate.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [airflow(), "db", "migrate"], env=environment(home), stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise Refused(f"Airflow's database could not be prepared; its log is {log}")


def private_home(folder: Path, template: Path = TEMPLATE) -> Path:
    """A copy of the migrated home for one run alone, so that two runs never share a SQLite file.

    Refused when `template` was never migrated.
    """
    if not (template / "airflow.db").exists():
        raise Refused(f"Airflow's database is missing under {template}; run `make setup`")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("airflow.db", "airflow.cfg"):
        if (template / name).exists():
            shutil.copy2(template / name, folder / name)
    return folder
