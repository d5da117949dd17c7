"""`kafka-durability audit`, from options to exit status, in this process or through Airflow."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from durability import resources
from durability.cli import exit_status, inputs
from durability.cli.console import Console
from durability.cli.inputs import Input
from durability.cli.options import Options
from durability.plain import plain_lines

if TYPE_CHECKING:
    from durability.evidence.keys import SigningKey
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.runtime.processes import Session

REPORTS = (
    *("report.html", "report.pdf", "findings.json", "findings.csv", "rack_outages.csv", "losses.json"),
    "data_docs/index.html",
)
JOB = "evaluate.py"
Run = Callable[[Options, Input, "Session", Path, Console], bool]
"""Runs an audit with a session for its processes and a log file. Returns whether it is complete."""


def run(options: Options, environ: Mapping[str, str] = os.environ, *, airflow: bool = False) -> int:
    """Run one audit. Returns 0 if done, 1 if --fail-on is reached, 2 if incomplete or refused.

    Raises AuditError for a user's error before anything is started.
    """
    from durability.runtime import jars, out_lock, processes, run_lock

    console = Console()
    jars.java_command()
    if airflow:
        from durability.cli import airflow_home, airflow_run

        airflow_home.require()
        audit, log = partial(airflow_run.audit, environ=environ), options.out / "logs" / "airflow.log"
    else:
        audit, log = partial(_in_process, environ=environ), options.out / "logs" / "audit.log"
    if not jars.is_fetched("spark"):
        console.line(f"Fetching Spark's jars into {resources.cache_folder()}, once")
    from durability.steps.crash import full_disk_refused

    with (
        full_disk_refused(),
        out_lock.held([options.out]),
        run_lock.held(options.lake),
        processes.Session("durability-audit-") as session,
        session.adopting(),
        _input(options, environ, session, console) as what,
    ):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        began = time.time()
        console.line(f"Auditing {what.name}")
        with console.running():
            complete = audit(options, what, session, log, console)
        return _conclude(options, complete, began, log, console)


@contextmanager
def _input(options: Options, environ: Mapping[str, str], session: Session, console: Console) -> Iterator[Input]:
    """The input that the options name. Without one, the embedded cluster runs during the block."""
    if options.source in ("topology", "clusters"):
        yield inputs.documents_or_fleet(options)
    elif options.bootstrap:
        security = inputs.security(options, environ)
        yield inputs.cluster(session.folder, options.bootstrap, options.cluster or options.bootstrap, security)
    else:
        from durability.embedded_kafka import demo

        began = time.monotonic()
        console.line("Starting the embedded cluster: 3 racks, 6 brokers, deliberate mistakes")
        with demo.running() as cluster:
            console.done("cluster", time.monotonic() - began, cluster.bootstrap)
            # The user's Connection is for another cluster. The embedded one uses plain text.
            yield inputs.cluster(session.folder, cluster.bootstrap, "demo")


def _in_process(
    options: Options, what: Input, session: Session, log: Path, console: Console, environ: Mapping[str, str]
) -> bool:
    """Run the steps in this process. The Spark job is a child process that starts while clusters are read."""
    from durability.errors import AuditError
    from durability.runtime import prestarted, spark
    from durability.steps import audit, conclude, notify
    from durability.steps.evaluate import JobFailed, SparkEvaluation

    with logging_to(log):
        job = resources.spark_job(JOB)
        environment = spark.environment(environ)
        os.environ.pop(prestarted.VARIABLE, None)
        # If it can't be prestarted, evaluate submits the job itself and reports the cause.
        with suppress(OSError, ValueError):
            os.environ.update(prestarted.start(session, options.lake, job, environment))
        services = audit.Services(
            connect=lambda name: what.connect(name, environ),
            evaluation=SparkEvaluation(partial(submit, session, log, environment), logging.getLogger("spark").info),
            webhook=lambda team: notify.webhook_from_environment(environ, team),
            reporter=console,
            signing_key=lambda: _signing_key(options, environ),
        )
        try:
            return audit.run(what.settings(options), services).status == conclude.COMPLETE
        except AuditError:
            return False  # reported already
        except JobFailed as error:
            logging.getLogger("spark").error("%s", error)
            return False
        except Exception:
            logging.getLogger("durability").exception("the audit stopped before its end")
            return False  # reported by its step; the traceback is in the log


def _signing_key(options: Options, environ: Mapping[str, str]) -> SigningKey | None:
    """The key of --signing-key, else that of the Connection in the environment; None if there is none."""
    from durability.evidence import keys
    from durability.steps import evidence

    return keys.from_file(options.signing_key) if options.signing_key else evidence.key_from_environment(environ)


def submit(
    session: Session, log: Path, environment: Mapping[str, str], lake: Lake, plan: Plan, job: str = JOB, *arguments: str
) -> None:
    """Runs a Spark job over a plan in a session of its own. Raises JobFailed with the last lines of its log."""
    from durability.runtime import spark
    from durability.steps.evaluate import TAIL, job_failed

    properties = {**spark.settings(plan.partitions), **lake.spark_conf()}
    place = session.folder / "spark.properties"
    place.unlink(missing_ok=True)  # of an earlier job
    file = spark.write_properties(place, properties)
    stated = plan.write(session.folder / "plan.json")
    command = (str(resources.spark_job(job)), "--plan", str(stated), *arguments)
    child = session.popen(spark.submit(file, *command, lake=lake.location), log=log, env=environment)
    if status := child.wait():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
        raise job_failed(status, lines, lake.location)


class _PlainFormatter(logging.Formatter):
    """Log records without control characters. Further lines of a record are indented."""

    def format(self, record: logging.LogRecord) -> str:
        return plain_lines(super().format(record))


@contextmanager
def logging_to(log: Path) -> Iterator[None]:
    """Python's logging and warnings go to the file, and to no terminal."""
    handler = logging.FileHandler(log, encoding="utf-8")
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # the failing step reports a full disk
    handler.setFormatter(_PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


def _conclude(options: Options, complete: bool, began: float, log: Path, console: Console) -> int:
    """Print summary and problems, and return the exit status."""
    from durability.report.files import load
    from durability.steps.crash import STOPPED

    findings = options.out / "findings.json"
    reported = findings.exists() and findings.stat().st_mtime >= began
    if reported:
        from durability.cli.fleet_table import fleet_table
        from durability.report.text.console import summary_text

        paths = [options.out / r for r in REPORTS if (options.out / r).exists()]
        document = load(findings)
        console.line()
        if table := fleet_table(document):
            console.draw(table)
        text = summary_text(document, [*paths, log], colour=console.colour, width=console.width)
        console.coloured(text)
    for problem in console.problems:
        console.error(problem)
    if not complete or not reported:
        stopped = any(STOPPED in problem for problem in console.problems)
        if not console.problems or stopped:
            console.error(f"the audit stopped before its end; its log and Spark's is {log}")
        if findings.exists() and not reported:
            console.error(f"what {options.out} holds is an earlier run's report, not this one's")
        elif reported:
            judged = any(s["status"] == "accepted" for s in load(findings)["run"]["snapshots"])
            covers = "the report covers what could be read" if judged else "nothing could be read; the report says why"
            console.error(f"the audit is incomplete: {covers}")
        return exit_status.INCOMPLETE
    if exit_status.reached(load(findings)["findings"], options.fail_on, options.known):
        console.error(f"--fail-on {options.fail_on} is reached")
        return exit_status.REACHED
    return exit_status.DONE
