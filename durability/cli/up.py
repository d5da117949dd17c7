"""`kafka-durability up`: Airflow with its pages on this machine, for looking at and for trying a schedule."""

from __future__ import annotations

import json
import os
import signal
import subprocess

from durability import resources
from durability.cli import airflow_home

PASSWORDS = "simple_auth_manager_passwords.json.generated"
POOL = ("kafka_durability", "8", "Reading clusters: how many groups of them at once")


def run() -> int:
    """Run `airflow standalone` until Ctrl-C or SIGTERM; returns its exit status."""
    from durability.runtime import processes

    # The password of the pages, and the database with the Connections, are this user's alone.
    os.umask(0o077)
    home = airflow_home.template().with_name("airflow-up")
    airflow_home.migrate(home)
    environment = airflow_home.environment(home)
    port = environment.setdefault("AIRFLOW__API__PORT", "8080")
    for name, value in {
        # Everybody who reaches the pages may start what this user can start.
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__BASE_URL": f"http://localhost:{port}",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
    }.items():
        environment.setdefault(name, value)
    environment.setdefault("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[*]"}))
    clusters = environment.get("DURABILITY_CLUSTERS") or resources.shipped("policies", "clusters.yaml")
    log = home / "standalone.log"
    with processes.Session("durability-up-") as session:
        environment = session.environment(environment)
        subprocess.run(
            [airflow_home.airflow(), "pools", "set", *POOL], env=environment, check=True, capture_output=True
        )
        print(f"Airflow is starting: {environment['AIRFLOW__API__BASE_URL']} (on this machine only)")
        print(f"  user admin, password in {home / PASSWORDS}")
        print(f"  nightly_audit runs at 02:00 UTC, health_pulse every five minutes, on the clusters of {clusters}")
        print("  lake_upkeep runs at 04:30 UTC and keeps the lake small")
        print(f"  log {log}; Ctrl-C stops it", flush=True)
        # A shell starts what it puts in the background with SIGINT ignored, which children would inherit.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        child = session.popen([airflow_home.airflow(), "standalone"], log=log, cwd=home, env=environment)
        try:
            return child.wait()
        finally:
            # SIGTERM would orphan what standalone has started, SIGINT doesn't; the session catches the rest.
            processes.stop_family(child, signal.SIGINT)
