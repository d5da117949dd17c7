"""`make audit`: the nightly DAG once, from options to exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from durability.errors import Refused
from durability.launch import airflow_home, journal, locks, options, outcome, ready
from durability.launch.console import Console
from durability.launch.options import Options

DAG = "nightly_audit"
JOB = airflow_home.ROOT / "spark_jobs" / "evaluate.py"
SPARK = "AIRFLOW_CONN_SPARK"
CONNECTION = "kafka_bootstrap"
POLL_SECONDS = 0.1
REPORTS = ("report.html", "findings.json", "findings.csv", "data_docs/index.html")


def run(environ: Mapping[str, str] = os.environ) -> int:
    """Run one audit as the environment's options say; returns 0 done, 1 FAIL_ON reached, 2 incomplete or refused.

    Raises AuditError for what a user can mend before anything is started.
    """
    from durability.runtime import jars, processes

    console = Console()
    asked = options.from_environment(environ)
    jars.java_command()
    folders = [asked.out, *([] if "://" in asked.lake else [Path(asked.lake)])]
    with locks.held(folders), processes.Session("durability-audit-") as session:
        if asked.source == "demo":
            return _demo(asked, environ, session, console)
        return _audited(asked, environ, session, console, asked.bootstrap, asked.cluster)


def _demo(asked: Options, environ: Mapping[str, str], session, console: Console) -> int:
    from durability.local_kafka import demo

    began = time.monotonic()
    console.line("Starting the embedded cluster: 3 racks, 6 brokers, deliberate mistakes")
    with demo.running() as cluster:
        console.done("cluster", time.monotonic() - began, cluster.bootstrap)
        return _audited(asked, environ, session, console, cluster.bootstrap, name="demo")


def _audited(
    asked: Options,
    environ: Mapping[str, str],
    session,
    console: Console,
    bootstrap: str | None,
    name: str | None = None,
) -> int:
    events = session.folder / "journal.jsonl"
    log = asked.out / "logs" / "airflow.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    environment = airflow_environment(asked, environ, session.folder, events, bootstrap)
    if SPARK not in environ:
        # What keeps it from starting keeps the run's own from it, which says so where one looks for it.
        with suppress(OSError, ValueError):
            environment |= ready.start(session, asked.lake, JOB, environment)
    command = [airflow_home.airflow(), "dags", "test", DAG, "--conf", _conf(asked, session.folder, name or bootstrap)]
    console.line(f"Auditing {name or bootstrap or asked.topology}")
    began = time.time()
    child = session.popen(command, log=log, cwd=airflow_home.ROOT, env=environment)
    problems = _follow(child, journal.Reader(events), console)
    return _conclude(asked, child.returncode, problems, began, log, console)


def airflow_environment(
    asked: Options, environ: Mapping[str, str], folder: Path, events: Path, bootstrap: str | None
) -> dict[str, str]:
    """The Airflow child's environment: a home of its own under `folder`, the Connections, the journal."""
    home = airflow_home.private_home(folder / "airflow")
    environment = airflow_home.environment(home, environ)
    environment.pop(ready.VARIABLE, None)
    if SPARK not in environment:
        environment[SPARK] = json.dumps({"conn_type": "spark", "host": "local[*]"})
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # a session on this host is nobody else's business
    if bootstrap:
        variable = f"AIRFLOW_CONN_{CONNECTION.upper()}"
        # The user's Connection is for the user's cluster; the embedded one speaks plain text.
        given = environ.get(variable) if asked.bootstrap else None
        environment[variable] = kafka_connection(bootstrap, given)
    return {
        **environment,
        journal.VARIABLE: str(events),
        "DURABILITY_RETRIES": "0",
        "DURABILITY_LAKE": asked.lake,
        "DURABILITY_OUT": str(asked.out),
    }


def kafka_connection(bootstrap: str, given: str | None = None) -> str:
    """The Connection `kafka_bootstrap` in Airflow's JSON form.

    `given`: one from the user's environment, for clusters that want TLS or SASL; its other settings stay.

    >>> kafka_connection("a:9092")
    '{"conn_type": "kafka", "extra": {"bootstrap.servers": "a:9092"}}'
    """
    try:
        connection = json.loads(given) if given else {"conn_type": "kafka"}
        extra = connection.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        connection["extra"] = {**extra}
    except (ValueError, AttributeError, TypeError):
        # Never its text: a password is in it.
        raise Refused(
            'AIRFLOW_CONN_KAFKA_BOOTSTRAP can\'t be used: expected JSON such as {"conn_type": "kafka", "extra":'
            ' {"security.protocol": "SASL_SSL"}} (Airflow\'s URI form isn\'t read here)'
        ) from None
    return json.dumps({**connection, "extra": {**extra, "bootstrap.servers": bootstrap}})


def _conf(asked: Options, folder: Path, name: str | None) -> str:
    """The DAG run's params; no secrets, for they are seen on the command line."""
    conf = {
        "policy": str(asked.policy),
        "waivers": str(asked.waivers),
        "out": str(asked.out),
        "lake": asked.lake,
        "topology": str(asked.topology) if asked.topology else None,
    }
    if name:
        clusters = folder / "clusters.yaml"
        cluster = {"id": name, "connection": CONNECTION, "provider": "self"}
        # JSON is YAML, and quotes whatever an address may hold.
        clusters.write_text(json.dumps({"format": "durability-clusters/1", "clusters": [cluster]}))
        conf["clusters"] = str(clusters)
    return json.dumps(conf)


def _follow(child: subprocess.Popen, events: journal.Reader, console: Console) -> list[str]:
    """Show steps as they end; returns the problems, once each, when the child has ended."""
    problems: dict[str, None] = {}
    while True:
        ended = child.poll() is not None
        for event in events.new():
            if event["event"] == "problem":
                problems[event["text"]] = None
            elif event["event"] == "step" and event["state"] == "done":
                console.done(event["name"], event["seconds"], event["note"])
        if ended:
            return list(problems)
        time.sleep(POLL_SECONDS)


def _conclude(asked: Options, status: int, problems: list[str], began: float, log: Path, console: Console) -> int:
    from durability.report.files import load

    findings = asked.out / "findings.json"
    reported = findings.exists() and findings.stat().st_mtime >= began
    if reported:
        from durability.report.console import summary_text

        paths = [asked.out / r for r in REPORTS if (asked.out / r).exists()]
        console.line("")
        console.line(summary_text(load(findings), [*paths, log], colour=sys.stdout.isatty()))
    for problem in problems:
        console.error(problem)
    if status or not reported:
        if not problems:
            console.error(f"the audit stopped before its end; Airflow's and Spark's log is {log}")
        if findings.exists() and not reported:
            console.error(f"what stands in {asked.out} is an earlier run's report, not this one's")
        elif reported:
            told = any(s["status"] == "accepted" for s in load(findings)["run"]["snapshots"])
            what = "covers what could be read" if told else "says why, and nothing more"
            console.error(f"the audit is incomplete: {'' if told else 'nothing could be read; '}the report {what}")
        return outcome.INCOMPLETE
    if asked.fail_on != "never" and outcome.reached(load(findings)["findings"], asked.fail_on):
        console.error(f"FAIL_ON={asked.fail_on} is reached")
        return outcome.REACHED
    return outcome.DONE
