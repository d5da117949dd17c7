"""`make up`: Airflow with its pages on this machine, for looking at and for trying a schedule."""

from __future__ import annotations

import json
import signal
import subprocess

from durability.launch import airflow_home

POOL = ("kafka_durability", "8", "Reading clusters: how many groups of them at once")


def run() -> int:
    """Run `airflow standalone` until Ctrl-C or SIGTERM; returns its exit status."""
    from durability.runtime import processes

    home = airflow_home.TEMPLATE.with_name("airflow-up")
    airflow_home.migrate(home)
    environment = airflow_home.environment(home)
    environment.setdefault("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": "local[*]"}))
    log = home / "standalone.log"
    with processes.Session("durability-up-") as session:
        environment = session.environment(environment)
        subprocess.run(
            [airflow_home.airflow(), "pools", "set", *POOL], env=environment, check=True, capture_output=True
        )
        print(f"Airflow is starting on port 8080; its log, with the password it made up, is {log}", flush=True)
        child = session.popen([airflow_home.airflow(), "standalone"], log=log, cwd=home, env=environment)
        try:
            return child.wait()
        finally:
            # SIGTERM would orphan what standalone has started, SIGINT doesn't; the session catches the rest.
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                child.wait(processes.STOP_SECONDS)
