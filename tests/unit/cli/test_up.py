"""`up` keeps Airflow's components running, or ends and says why; what a dead one left doesn't stay."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_durability import settings

from durability import resources
from durability.cli import airflow_home, up
from durability.cli.options import Given
from durability.errors import AuditError
from durability.runtime import watchdog
from durability.runtime.processes import free_port
from tests.support.waiting import wait_for

# A component writes its id and that of a child, as the scheduler has workers. The API server's child answers after a second. The
# others are too early if nobody has asked it before.
AIRFLOW = """#!/bin/sh
echo "$@" >> "$HERE/commands"
case "$1" in db|pools) exit 0;; esac
[ "$1" = "$FAILS" ] && exit 3
if [ "$1" = api-server ]; then "$PYTHON" -c "$SERVES" & else [ -e "$HERE/asked" ] || touch "$HERE/early"; sleep 600 & fi
echo "$$ $!" > "$HERE/$1.part" && mv "$HERE/$1.part" "$HERE/$1"
wait
"""
SERVES = """
import os, pathlib, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Asked(BaseHTTPRequestHandler):
    def do_GET(self):
        pathlib.Path(os.environ["HERE"], "asked").touch()
        self.send_error(404)
time.sleep(1)
HTTPServer((os.environ["AIRFLOW__API__HOST"], int(os.environ["AIRFLOW__API__PORT"])), Asked).serve_forever()
"""
RUN = """
import pathlib, sys
from durability import resources
from durability.cli import airflow_home, up
from durability.cli.options import Given
from durability.errors import AuditError
from durability.runtime import processes
airflow_home.airflow = lambda: sys.argv[1]
airflow_home.template = lambda: pathlib.Path(sys.argv[2])
up.SETTLED_SECONDS = float(sys.argv[3])
processes.exit_on_sigterm()
sys.exit(up.run({}))
"""


@pytest.fixture
def start(tmp_path: Path):
    """Starts `up` with a component that fails, if named, and the seconds after which one counts as settled."""
    program = tmp_path / "airflow"
    program.write_text(AIRFLOW)
    program.chmod(0o755)
    running: list[subprocess.Popen[str]] = []

    def start(fails: str = "", settled: float = 0) -> subprocess.Popen[str]:
        arguments = [str(program), str(tmp_path / "state" / "airflow"), str(settled)]
        environment = {**os.environ, "HERE": str(tmp_path), "FAILS": fails, "PYTHON": sys.executable, "SERVES": SERVES}
        environment |= {"AIRFLOW__API__PORT": str(free_port())}
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def ids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()]


def test_a_killed_scheduler_is_started_again_and_its_workers_go(tmp_path: Path, start) -> None:
    process = start()
    wait_for(lambda: all((tmp_path / name).exists() for name in up.COMPONENTS), "all components run")
    assert not (tmp_path / "early").exists(), "tasks could run before the API server answers"
    scheduler, worker = ids(tmp_path / "scheduler")
    os.kill(scheduler, signal.SIGKILL)
    wait_for(lambda: scheduler not in ids(tmp_path / "scheduler"), "it is started again")
    assert not watchdog._alive(worker), "its worker lives on"
    again = [pid for name in up.COMPONENTS for pid in ids(tmp_path / name)]
    assert all(map(watchdog._alive, again))
    process.terminate()
    _, said = process.communicate(timeout=180)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Airflow's scheduler was killed by signal 9: it is started again; its log is" in said
    assert not any(map(watchdog._alive, again)), "a component outlives `up`"


def test_a_component_that_ends_at_once_ends_all_and_is_named(tmp_path: Path, start) -> None:
    process = start(fails="api-server", settled=600)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 2
    assert "Airflow's api-server ended with status 3: Airflow is stopped; its log is" in said
    left = [pid for name in up.COMPONENTS if (tmp_path / name).exists() for pid in ids(tmp_path / name)]
    assert not any(map(watchdog._alive, left))


def test_no_log_server_listens(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    for name in ("scheduler", "triggerer"):  # the others serve no logs
        assert "--skip-serve-logs" in up.COMPONENTS[name]
    environment = up._environment(tmp_path)
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert airflow_home.airflow().endswith("airflow")


def test_what_the_schedules_use_is_read_before_anything_starts(tmp_path: Path, monkeypatch) -> None:
    written = {name: tmp_path / f"{name}.yaml" for name in ("clusters", "policy", "waivers")}
    for name, path in written.items():
        path.write_bytes(resources.shipped("policies", f"{name}.yaml").read_bytes())
    stated = {name: str(path) for name, path in written.items()}
    monkeypatch.chdir(tmp_path)
    found = up.deployment(Given(stated | {"out": "reports", "lake": "s3://bucket/lake", "port": "8085"}))
    assert found == {f"DURABILITY_{name.upper()}": path for name, path in stated.items()} | {
        "DURABILITY_OUT": str(tmp_path / "reports"),
        "DURABILITY_LAKE": "s3://bucket/lake",
        "AIRFLOW__API__PORT": "8085",
    }
    assert up.deployment(Given({"lake": "lake"})) == {"DURABILITY_LAKE": str(tmp_path / "lake")}
    # As the DAGs' forms have them.
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    given = settings.params()
    assert {name: given[name].value for name in stated} == stated
    written["policy"].write_text("tiers: 1")
    wrong = ({"policy": stated["policy"]}, {"clusters": "none.yaml"}, {"out": stated["policy"]}, {"port": "http"})
    for options in wrong:
        (value,) = options.values()
        with pytest.raises(AuditError, match=re.escape(value)):
            up.deployment(Given(options))
