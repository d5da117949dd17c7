"""`kafka-durability up`: runs Airflow with its pages on this machine, to try it and its schedules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from durability import resources
from durability.addresses import is_loopback
from durability.cli import airflow_home
from durability.cli.exit_status import INCOMPLETE
from durability.cli.options import Given, usable
from durability.errors import Refused

if TYPE_CHECKING:
    from durability.runtime.processes import Session

PASSWORDS = "simple_auth_manager_passwords.json.generated"
POOL = ("kafka_durability", "8", "Reading clusters: how many groups of them at once")
# The pages read logs as local files, because Airflow's log servers would listen on all addresses.
API_SERVER = "api-server"
COMPONENTS = {
    API_SERVER: ["api-server"],
    "dag-processor": ["dag-processor"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
"""The components of `airflow standalone`. That command isn't used, because it doesn't notice when a component dies.

The API server comes first: a task reports to it, and fails if it doesn't answer.
"""
ANSWERS_WITHIN = 120.0
"""Seconds after which the others are started in any case."""
SETTLED_SECONDS = 60.0
"""A component that ends sooner after its start isn't restarted."""
POLL_SECONDS = 0.5


def deployment(given: Given) -> dict[str, str]:
    """The variables for the DAGs' params, and for the pages' port, of the options that are given. Their files are read here.

    Raises Refused for an option that names nothing, and BadInput for a wrong file.
    """
    from durability.policy import load_clusters, load_policy, load_waivers

    readers = {"clusters": load_clusters, "policy": load_policy, "waivers": load_waivers}
    stated = {name: usable(load, given.file(name)) for name, load in readers.items() if given.text(name)}
    if given.text("out"):
        stated["out"] = given.folder("out", Path(given.text("out")).absolute())
    variables = {f"DURABILITY_{name.upper()}": str(path) for name, path in stated.items()}
    if lake := given.text("lake"):
        folder = Path(lake).absolute()
        variables["DURABILITY_LAKE"] = lake if "://" in lake else str(given.folder("lake", folder))
    if port := given.text("port"):
        if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise Refused(f"{given.named('port')}: expected a port from 1 to 65535")
        variables["AIRFLOW__API__PORT"] = port
    return variables


def run(variables: Mapping[str, str]) -> int:
    """Run Airflow's components until Ctrl-C or SIGTERM. Returns 2 if one of them can't be kept running.

    variables: `deployment`; they replace those of the environment.
    """
    from durability.runtime import processes

    # Only this user may read the password of the pages and the database with the Connections.
    os.umask(0o077)
    home = airflow_home.template().with_name("airflow-up")
    with processes.Session("durability-up-") as session, session.adopting():
        airflow_home.migrate(home)
        environment = session.environment(_environment(home, {**os.environ, **variables}))
        shipped = resources.shipped("policies")
        files = {
            name: environment.get(f"DURABILITY_{name.upper()}") or shipped / f"{name}.yaml"
            for name in ("clusters", "policy", "waivers")
        }
        subprocess.run(
            [airflow_home.airflow(), "pools", "set", *POOL], env=environment, check=True, capture_output=True
        )
        only = is_loopback(environment["AIRFLOW__API__HOST"])
        reached = (
            "on this machine only" if only else f"listening on {environment['AIRFLOW__API__HOST']}, for other hosts too"
        )
        print(f"Airflow is starting: {environment['AIRFLOW__API__BASE_URL']} ({reached})")
        print(f"  user admin, password in {home / PASSWORDS}")
        print(
            f"  nightly_audit runs at 02:00 UTC, health_pulse every five minutes, on the clusters of {files['clusters']}"
        )
        print(f"  policy {files['policy']}, waivers {files['waivers']}")
        print("  lake_upkeep runs at 04:30 UTC and keeps the lake small")
        print(f"  logs {home}/*.log; Ctrl-C stops it", flush=True)
        # A shell ignores SIGINT for background programs, and children would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return Components(session, home, environment).keep_running()


def _environment(home: Path, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of the components: that of `airflow standalone`, with pages on this host only."""
    environment = airflow_home.environment(home, base)
    port = environment.setdefault("AIRFLOW__API__PORT", "8080")
    for name, value in {
        # A user who reaches the pages can run everything that this user can run.
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__BASE_URL": f"http://localhost:{port}",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
    }.items():
        environment.setdefault(name, value)
    environment.setdefault("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[*]"}))
    environment["AIRFLOW__CORE__EXECUTOR"] = "LocalExecutor"
    environment["AIRFLOW__CORE__AUTH_MANAGER"] = (
        "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
    )
    return environment


def _answers(host: str, port: int) -> bool:
    """Does an HTTP server answer there? With TLS it answers a plain request by no HTTP."""
    connection = HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/api/v2/version")
        connection.getresponse()
    except HTTPException:
        return True
    except OSError:
        return False
    finally:
        connection.close()
    return True


class Components:
    """Airflow's components as processes of a session. Each has a log `<name>.log` in `home`."""

    def __init__(self, session: Session, home: Path, environment: Mapping[str, str]):
        self._session, self._home, self._environment = session, home, environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._started: dict[str, float] = {}

    def keep_running(self) -> int:
        """Start all components and restart those that die. Returns 2 if one can't be kept running."""
        try:
            self._start(API_SERVER)
            self._wait_for_api()
            for name in COMPONENTS:
                if name != API_SERVER:
                    self._start(name)
            while True:
                time.sleep(POLL_SECONDS)
                for name, process in list(self._running.items()):
                    if process.poll() is not None and not self._restart(name, process):
                        return INCOMPLETE
        finally:
            self._stop()

    def _wait_for_api(self) -> None:
        """Returns when the API server answers, or has ended, which the caller notices."""
        address = self._environment["AIRFLOW__API__HOST"], int(self._environment["AIRFLOW__API__PORT"])
        until = time.monotonic() + ANSWERS_WITHIN
        while self._running[API_SERVER].poll() is None and time.monotonic() < until and not _answers(*address):
            time.sleep(POLL_SECONDS)

    def _start(self, name: str) -> None:
        command = [airflow_home.airflow(), *COMPONENTS[name]]
        log = self._home / f"{name}.log"
        self._running[name] = self._session.popen(command, log=log, cwd=self._home, env=self._environment)
        self._started[name] = time.monotonic()

    def _restart(self, name: str, process: subprocess.Popen[bytes]) -> bool:
        """End the children of a dead component and restart it. False if it died soon after its start."""
        from durability.runtime import processes

        processes.stop_family(process, signal.SIGTERM)  # a killed scheduler leaves its workers running
        code = process.returncode
        why = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        settled = time.monotonic() - self._started[name] >= SETTLED_SECONDS
        then = "it is started again" if settled else "Airflow is stopped"
        print(f"Airflow's {name} {why}: {then}; its log is {self._home / name}.log", file=sys.stderr, flush=True)
        if settled:
            self._start(name)
        return settled

    def _stop(self) -> None:
        from durability.runtime import processes

        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        for process in self._running.values():
            processes.stop_family(process, signal.SIGTERM)
