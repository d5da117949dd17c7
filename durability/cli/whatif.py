"""`kafka-durability whatif`: from options to a prediction of what a loss does."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.cli import from_snapshot
from durability.cli.from_snapshot import Work
from durability.cli.options import Options
from durability.errors import AuditError

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.plan.lose import Item
    from durability.steps.results import Gated
    from durability.steps.settings import Settings

DAG, JOB = "failure_drill", "whatif.py"
Predict = Callable[[Work, Sequence["Item"], str], Mapping[str, Path]]
"""Predicts for items and their label; returns the written files by name."""


def run(
    options: Options,
    lose: Sequence[Item],
    label: str,
    environ: Mapping[str, str] = os.environ,
    *,
    airflow: bool = False,
) -> int:
    """Predicts one loss; returns the exit status. label: the option that named `lose`, for messages.

    airflow: through the DAG `failure_drill`.
    """
    from durability.steps import whatif

    predict: Predict = _in_process
    if airflow:
        from durability.cli import airflow_home

        airflow_home.require()
        predict = partial(_in_airflow, options, environ)
    unused: list[Path] = []

    def check(settings: Settings, gated: Gated) -> None:
        try:
            whatif.check_staged(settings, gated, options.cluster, lose, label)
        except AuditError:
            unused.extend(options.made)  # Nothing was published.
            raise

    try:
        return from_snapshot.run(options, "whatif", lambda work: _predict(work, lose, label, predict), check=check)
    finally:
        for folder in unused:
            shutil.rmtree(folder, ignore_errors=True)


def _predict(work: Work, lose: Sequence[Item], label: str, predict: Predict) -> None:
    from durability.report import whatif as report
    from durability.steps import whatif

    # Before anything starts: a name may be wrong.
    whatif.lost(work.settings, work.snapshot, lose, label)
    files = predict(work, lose, label)
    work.console.line()
    for line in report.summary(json.loads(files["whatif.json"].read_text(encoding="utf-8")), files):
        work.console.line(line)


def _in_process(work: Work, lose: Sequence[Item], label: str) -> Mapping[str, Path]:
    from durability.steps import whatif
    from durability.steps.summary import report_step

    def submit(lake: Lake, plan: Plan, losses: Mapping[str, Any]) -> None:
        stated = work.session.folder / "lose.json"
        stated.write_text(json.dumps(losses), encoding="utf-8")
        work.submit(lake, plan, JOB, "--lose", str(stated))

    run_id = f"whatif:{datetime.now(UTC).isoformat()}"
    with work.console.running(), report_step("predict", work.console) as summary:
        prediction = whatif.prepare(work.settings, work.snapshot, lose, label, run_id, f"{run_id}:1")
        return whatif.predict(work.settings, prediction, submit, summary)


def _in_airflow(
    options: Options, environ: Mapping[str, str], work: Work, lose: Sequence[Item], label: str
) -> Mapping[str, Path]:
    from durability.cli import airflow_run
    from durability.errors import Refused
    from durability.report import whatif as report

    environment = airflow_run.airflow_environment(options, None, environ, work.session.folder)
    snapshot = {"cluster": work.snapshot["cluster"], "snapshot": work.snapshot["snapshot_id"]}
    params = {**work.settings.to_params(), **snapshot, "lose": [item.stated for item in lose]}
    with work.console.running():
        done = airflow_run.run(DAG, params, work.session, work.log, work.console, environment)
    if not done:
        raise Refused(f"the prediction stopped before its end; its log and Spark's is {work.log}")
    return {name: options.out / name for name in report.FILES}
