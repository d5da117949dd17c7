"""One run at a time on a lake, whoever starts it and whatever its temporary folder is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from kafka_durability import operators
from kafka_durability.step import holding

from durability.errors import BadInput, Refused, Unreachable
from durability.lake import catalog
from durability.lake.catalog import CATALOG_FILE
from durability.runtime import lease, run_lock

OTHER = "import sys; from durability.runtime import run_lock; run_lock.held(sys.argv[1]).__enter__()"


def other(lake: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Another run that tries to start, with another temporary folder."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    return subprocess.run([sys.executable, "-c", OTHER, lake], env=environment, capture_output=True, text=True)


def test_a_lake_in_a_folder_takes_one_run_and_nothing_else_is_left_in_it(tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    lake = tmp_path / "lake"
    lake.mkdir()
    with run_lock.held(str(lake)):
        refused = other(str(lake), tmp_path)
        assert f"another run is using the lake {lake} (process {os.getpid()})" in refused.stderr
        with run_lock.held(str(tmp_path / "none")):
            pass
    assert other(str(lake), tmp_path).returncode == 0
    assert not list(lake.iterdir())


@pytest.mark.slow
def test_a_catalog_takes_one_run_per_lake_from_all_hosts(tmp_path, postgresql, monkeypatch):
    monkeypatch.setenv("DURABILITY_CATALOG", f"{postgresql}/postgres")
    lake = "s3://bucket/lake"
    with run_lock.held(lake):
        refused = other(lake, tmp_path)
        assert f"another run is using the lake {lake};" in refused.stderr
        assert other("s3://bucket/other", tmp_path).returncode == 0
    assert other(lake, tmp_path).returncode == 0, "a process that ends leaves no lock"


def test_a_catalog_that_does_not_answer_is_said_without_its_password(monkeypatch):
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://user:secret@127.0.0.1:1/lake")
    with pytest.raises(Unreachable, match="its catalog doesn't answer") as said, run_lock.held("s3://bucket/lake"):
        pass
    assert "secret" not in str(said.value)


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def lake(request, tmp_path, monkeypatch) -> str:
    """A lake with a catalog: SQLite's in the folder, and PostgreSQL's."""
    if request.param == "s3":
        monkeypatch.setenv("DURABILITY_CATALOG", f"{request.getfixturevalue('postgresql')}/postgres")
        return f"s3://bucket/{tmp_path.name}"
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    (tmp_path / "lake").mkdir()
    with sqlite3.connect(tmp_path / "lake" / CATALOG_FILE) as catalog:
        catalog.execute("CREATE TABLE iceberg_tables (table_name TEXT)")
    return str(tmp_path / "lake")


def task(run: str, attempt: int = 1) -> dict:
    """The context of a task that may be tried twice."""
    ti = SimpleNamespace(try_number=attempt, max_tries=1)
    return {"dag": SimpleNamespace(dag_id="nightly_audit"), "run_id": run, "ti": ti}


def test_a_scheduled_run_has_the_lake_between_its_tasks_too(lake, tmp_path, monkeypatch):
    monkeypatch.delenv(run_lock.HELD, raising=False)
    with holding(lake, task("one")):
        with holding(lake, task("one")):
            pass  # groups are collected at the same time
        assert "another run is using the lake" in other(lake, tmp_path).stderr
    with pytest.raises(Unreachable, match=r"\(nightly_audit:one; .* before \d\d:\d\d UTC,"):
        run_lock.held(lake).__enter__()
    with pytest.raises(Unreachable, match="nightly_audit:one"), holding(lake, task("two")):
        pass
    with holding(lake, task("one"), last=True):
        pass
    with run_lock.held(lake), pytest.raises(Unreachable, match="another run"), holding(lake, task("two")):
        pass


@pytest.mark.parametrize(
    ("error", "attempt", "frees"),
    [
        (BadInput("policy.yaml", "line 3", "no tier"), 1, True),
        (AirflowFailException("the run is incomplete"), 1, True),
        (AirflowSkipException("no cluster"), 1, True),
        (Unreachable("the lake doesn't answer"), 1, False),
        (Unreachable("the lake doesn't answer"), 2, True),
        (KeyError("a bug"), 1, False),
    ],
)
def test_a_task_that_fails_for_good_frees_the_lake(lake, monkeypatch, error, attempt, frees):
    monkeypatch.delenv(run_lock.HELD, raising=False)
    with pytest.raises(type(error)), holding(lake, task("one", attempt)):
        raise error
    assert (lease.current(catalog.place(lake)) is None) is frees


def test_a_digest_does_not_wait_for_the_lake(lake, monkeypatch, tmp_path):
    """`notify` never fails the audit, and its task isn't tried again."""
    monkeypatch.delenv(run_lock.HELD, raising=False)
    monkeypatch.setattr(operators.notify, "notify", lambda *of: None)
    step = operators.NotifyOperator(task_id="notify", reported={"findings.json": "findings.json"}, alone=True)
    params = {name: str(tmp_path) for name in ("policy", "waivers", "clusters", "out")} | {
        "lake": lake,
        "topology": None,
    }
    with run_lock.held(lake):
        step.execute(task("one") | {"params": params})
        with pytest.raises(Unreachable, match="another run"):
            operators.CrossCheckOperator(task_id="c", evaluated={}, alone=True).execute(
                task("one") | {"params": params}
            )


def test_a_run_that_died_frees_the_lake_after_a_while(lake, monkeypatch):
    monkeypatch.setattr(run_lock, "BETWEEN_TASKS", 0)
    run_lock.renew(lake, "dead")
    with run_lock.held(lake):
        pass
    monkeypatch.setattr(run_lock, "BETWEEN_TASKS", 60)
    run_lock.renew(lake, "next")
    with pytest.raises(Unreachable, match="next"):
        run_lock.renew(lake, "dead")


def test_many_runs_that_start_at_once_are_one(lake):
    """The first ones of a catalog: each of them makes the table."""
    with lease.engine(catalog.place(lake)).begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {lease.TABLE}")
    with ThreadPoolExecutor(8) as pool:
        taken = [*pool.map(lambda n: lease.take(catalog.place(lake), f"run {n}", 60), range(8))]
    assert taken.count(None) == 1
    assert len({other.run for other in taken if other}) == 1


@pytest.mark.slow
def test_a_table_that_another_run_makes_meanwhile_is_no_failure(postgresql, monkeypatch):
    """PostgreSQL reports the same race as unique_violation or as duplicate_table."""
    monkeypatch.setenv("DURABILITY_CATALOG", f"{postgresql}/postgres")
    place = catalog.place("s3://bucket/meanwhile")
    monkeypatch.setattr(lease, "_MAKE", lease._MAKE.replace("IF NOT EXISTS ", ""))
    lease.take(place, "first", 60)
    real, asked = sqlalchemy.inspect, []

    def blind(connection):
        """The first question comes before the other run has made its table."""
        asked.append(connection)
        return SimpleNamespace(has_table=lambda table: False) if len(asked) == 1 else real(connection)

    monkeypatch.setattr(sqlalchemy, "inspect", blind)
    assert lease.take(place, "second", 60).run == "first"
    monkeypatch.setattr(lease, "_MAKE", "CREATE TABLE no_schema.lease (warehouse TEXT)")
    monkeypatch.setattr(sqlalchemy, "inspect", lambda connection: SimpleNamespace(has_table=lambda table: False))
    with pytest.raises(Unreachable, match="ProgrammingError"):
        lease.take(place, "third", 60)


def test_a_lake_that_is_not_made_yet_has_no_lease_and_gets_no_database(tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    run_lock.renew(str(tmp_path), "first")
    run_lock.end(str(tmp_path), "first")
    assert not list(tmp_path.iterdir())


def test_a_catalog_that_is_none_any_more_is_not_hidden_by_the_lease(tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    (tmp_path / CATALOG_FILE).write_text("nonsense")
    with run_lock.held(str(tmp_path)), pytest.raises(Refused, match="can't be read as a lake's catalog"):
        catalog.prepare(catalog.place(str(tmp_path)))


def test_an_audit_of_the_command_line_has_the_lock_of_the_run_that_it_starts(lake, monkeypatch):
    monkeypatch.setenv(run_lock.HELD, lake)
    with run_lock.held(lake), holding(lake, task("its own")):
        pass
    assert lease.current(catalog.place(lake)) is None
