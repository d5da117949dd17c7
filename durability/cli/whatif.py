"""`kafka-durability whatif`: from options to a prediction of what a loss does."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.cli import audit, exit_status, inputs
from durability.cli.console import Console
from durability.cli.inputs import Input
from durability.cli.options import Options
from durability.errors import AuditError

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.plan.lose import Item
    from durability.runtime.processes import Session
    from durability.steps.settings import Settings

JOB = "whatif.py"


def run(options: Options, lose: Sequence[Item], label: str, environ: Mapping[str, str] = os.environ) -> int:
    """Predicts one loss; returns 0 done, 2 refused or failed.

    label: the option that named `lose`, for messages. Raises AuditError for what a user can fix.
    """
    from durability.runtime import jars, out_lock, processes, run_lock
    from durability.steps.evaluate import JobFailed

    console = Console()
    jars.java_command()
    log = options.out / "logs" / "whatif.log"
    with (
        out_lock.held([options.out]),
        run_lock.held(options.lake),
        processes.Session("durability-whatif-") as session,
        session.adopting(),
    ):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        with audit.logging_to(log):
            try:
                _predict(options, lose, label, session, log, console, environ)
            except AuditError as error:
                for problem in console.problems:
                    if problem != str(error):
                        console.error(problem)
                raise
            except JobFailed as error:
                logging.getLogger("spark").error("%s", error)
                console.error(f"{error}: {log}")
                return exit_status.INCOMPLETE
    return exit_status.DONE


def _predict(
    options: Options,
    lose: Sequence[Item],
    label: str,
    session: Session,
    log: Path,
    console: Console,
    environ: Mapping[str, str],
) -> None:
    from durability.report import whatif as report
    from durability.runtime import spark
    from durability.steps import whatif
    from durability.steps.summary import report_step

    what, settings = _input(options, session, environ)
    snapshot = _snapshot(options, what, settings, console, environ)
    run_id = f"whatif:{datetime.now(UTC).isoformat()}"
    submit = partial(_submit, session, log, spark.environment(environ))
    with console.running(), report_step("predict", console) as summary:
        prediction = whatif.prepare(settings, snapshot, lose, label, run_id, f"{run_id}:1")
        files = whatif.predict(settings, prediction, submit, summary)
    console.line()
    for line in report.summary(json.loads(files["whatif.json"].read_text(encoding="utf-8")), files):
        console.line(line)


def _input(options: Options, session: Session, environ: Mapping[str, str]) -> tuple[Input | None, Settings]:
    """What is read, None for the newest snapshot in the lake, and the settings of the steps."""
    if options.source == "topology":
        what = inputs.documents_or_fleet(options)
        return what, what.settings(options)
    if options.bootstrap:
        security = inputs.security(options, environ)
        what = inputs.cluster(session.folder, options.bootstrap, options.cluster or options.bootstrap, security)
        return what, what.settings(options)
    return None, inputs.documents_or_fleet(options).settings(options)


def _snapshot(
    options: Options, what: Input | None, settings: Settings, console: Console, environ: Mapping[str, str]
) -> dict[str, Any]:
    """The snapshot to predict from: taken now, or the newest in the lake."""
    from durability.steps import audit as steps
    from durability.steps import whatif

    if what is None:
        return whatif.newest(settings, options.cluster)
    with console.running():
        rows = steps.snapshots(settings, lambda name: what.connect(name, environ), console)
    return whatif.chosen(rows, options.cluster)


def _submit(
    session: Session, log: Path, environment: Mapping[str, str], lake: Lake, plan: Plan, lose: Mapping[str, Any]
) -> None:
    stated = session.folder / "lose.json"
    stated.write_text(json.dumps(lose), encoding="utf-8")
    audit.submit(session, log, environment, lake, plan, JOB, "--lose", str(stated))
