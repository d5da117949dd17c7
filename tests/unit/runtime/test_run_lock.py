"""One run at a time on a lake, whoever starts it and whatever its temporary folder is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.errors import Unreachable
from durability.runtime import run_lock

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


@pytest.mark.parametrize(
    ("kind", "ours", "waits"), [("nightly", False, True), ("nightly", True, False), ("pulse", False, False)]
)
def test_a_nightly_run_does_not_start_beside_an_audit(tmp_path, monkeypatch, kind, ours, waits):
    from kafka_durability.operators import PlanOperator

    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    monkeypatch.setenv(run_lock.HELD, str(tmp_path) if ours else "elsewhere")
    planned = PlanOperator(task_id="plan", kind=kind)
    settings = SimpleNamespace(lake=str(tmp_path))
    with run_lock.held(str(tmp_path)):
        if waits:
            with pytest.raises(Unreachable), planned._alone(settings):
                pass
        else:
            with planned._alone(settings):
                pass
    with planned._alone(settings):
        pass
