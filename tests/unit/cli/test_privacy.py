"""What runs leave behind is their user's alone, unless that user shares a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from durability import resources
from durability.atomic import atomic_files
from durability.cli import airflow_home, up
from durability.cli.options import Given
from durability.lake import catalog

AIRFLOW = """#!/bin/sh
echo "airflow $@"
[ "$1" = db ] && echo connections > "$AIRFLOW_HOME/airflow.db"
[ "$1" = api-server ] && echo password > "$AIRFLOW_HOME/%s"
exit 0
"""


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The template's home, of an Airflow that only leaves its files."""
    program = tmp_path / "airflow"
    program.write_text(AIRFLOW % up.PASSWORDS)
    program.chmod(0o755)
    monkeypatch.setattr(airflow_home, "airflow", lambda: str(program))
    monkeypatch.setattr(airflow_home, "template", lambda: tmp_path / "state" / "airflow")
    return tmp_path / "state" / "airflow"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_that_a_run_creates_are_private(tmp_path: Path) -> None:
    catalog.prepare(catalog.place(str(tmp_path / "lake"), {}))
    with atomic_files(tmp_path / "out", "findings.json"):
        pass
    Given({}).folder("out", tmp_path / "stated")
    resources.create_private(tmp_path / "state")
    assert [mode(tmp_path / name) for name in ("lake", "out", "stated", "state")] == [0o700] * 4


def test_a_folder_that_is_shared_stays_shared(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o750)
    with atomic_files(tmp_path / "out", "findings.json"):
        pass
    assert mode(tmp_path / "out") == 0o750


def test_a_reports_files_have_the_modes_that_the_user_chose(tmp_path: Path) -> None:
    os.umask(0o077)
    with atomic_files(tmp_path, "findings.json"):
        pass
    assert mode(tmp_path / "findings.json") == 0o600


def test_airflows_database_is_private_also_where_it_was_not(home: Path) -> None:
    home.mkdir(parents=True)
    assert mode(home) == 0o755
    airflow_home.migrate()
    assert mode(home) == 0o700
    assert mode(home / "airflow.db") == 0o600


def test_a_half_made_database_is_made_anew(home: Path, tmp_path: Path) -> None:
    home.mkdir(parents=True)
    (home / "airflow.db").touch()
    airflow_home.private_home(tmp_path / "run")
    made = (home / "airflow.db").stat()
    assert made.st_size and (tmp_path / "run" / "airflow.db").stat().st_size == made.st_size
    airflow_home.private_home(tmp_path / "again")
    assert (home / "airflow.db").stat().st_mtime_ns == made.st_mtime_ns, "a whole one stays"


def test_the_admins_password_and_the_log_are_private(home: Path, capsys) -> None:
    assert up.run({}) == 2, "its components end at once"
    beside = home.with_name("airflow-up")
    assert mode(beside) == 0o700
    assert {name: mode(beside / name) for name in (up.PASSWORDS, "api-server.log", "airflow.db")} == {
        up.PASSWORDS: 0o600,
        "api-server.log": 0o600,
        "airflow.db": 0o600,
    }
