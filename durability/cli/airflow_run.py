"""Runs a DAG once, in a child process with an Airflow home of its own, followed through its journal."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability import resources
from durability.cli import airflow_home
from durability.cli.console import Console
from durability.cli.inputs import CONNECTION, Input
from durability.cli.options import Options
from durability.runtime import prestarted, run_lock
from durability.steps import journal
from durability.steps.crash import STOPPED

if TYPE_CHECKING:
    from durability.runtime.processes import Session

AUDIT = "nightly_audit"
SPARK = "AIRFLOW_CONN_SPARK"
POLL_SECONDS = 0.1


def audit(
    options: Options, what: Input, session: Session, log: Path, console: Console, environ: Mapping[str, str]
) -> bool:
    """Run the DAG `nightly_audit` and return whether it succeeded. Logs of Airflow and Spark go to `log`."""
    environment = airflow_environment(options, what, environ, session.folder)
    if SPARK not in environ:
        # If it can't be prestarted, the task submits the job itself and reports the cause.
        with suppress(OSError, ValueError):
            job = resources.spark_job("evaluate.py")
            environment |= prestarted.start(session, options.lake, job, environment)
    return run(AUDIT, what.settings(options).to_params(), session, log, console, environment)


def run(
    dag: str,
    params: Mapping[str, Any],
    session: Session,
    log: Path,
    console: Console,
    environment: Mapping[str, str],
) -> bool:
    """Run a DAG and return whether it succeeded. environment: the result of `airflow_environment`."""
    # No secrets: all users can read command lines.
    command = [airflow_home.airflow(), "dags", "test", dag, "--conf", json.dumps(params)]
    child = session.popen(command, log=log, env=dict(environment))
    _follow(child, journal.Reader(Path(environment[journal.VARIABLE])), console)
    return child.returncode == 0


def airflow_environment(
    options: Options, what: Input | None, environ: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """The environment of the Airflow child: its own home in `folder`, the Connections, and the journal.

    what: an input whose Connection the DAG needs.
    """
    home = airflow_home.private_home(folder / "airflow")
    environment = airflow_home.environment(home, environ)
    environment.pop(prestarted.VARIABLE, None)
    if SPARK not in environment:
        environment[SPARK] = json.dumps({"conn_type": "spark", "host": "local[*]"})
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # only this host can reach the session
    if what is not None and what.connection is not None:
        connection = {"conn_type": "kafka", "extra": dict(what.connection)}
        environment[f"AIRFLOW_CONN_{CONNECTION.upper()}"] = json.dumps(connection)
    if options.signing_key:
        from durability.evidence import keys

        signing = {"conn_type": "generic", "extra": {"file": str(options.signing_key)}}
        environment[f"AIRFLOW_CONN_{keys.CONNECTION.upper()}"] = json.dumps(signing)
    return {
        **environment,
        journal.VARIABLE: str(folder / "journal.jsonl"),
        run_lock.HELD: options.lake,
        "DURABILITY_RETRIES": "0",
        "DURABILITY_LAKE": options.lake,
        "DURABILITY_OUT": str(options.out),
    }


def _follow(child: subprocess.Popen, events: journal.Reader, console: Console) -> None:
    """Show steps and collect problems until the child ends. A step without an end was killed."""
    running: Counter[str] = Counter()
    while True:
        ended = child.poll() is not None
        for event in events.new():
            if event["event"] == "problem":
                console.problem(event["name"], event["text"])
            elif event["state"] == "done":
                running[event["name"]] -= 1
                console.done(event["name"], event["seconds"], event["note"])
            else:
                running[event["name"]] += 1
                console.started(event["name"])
        if ended:
            for name in +running:
                console.problem(name, f"{name} {STOPPED}: its process was killed, by a signal or for lack of memory")
            return
        time.sleep(POLL_SECONDS)
