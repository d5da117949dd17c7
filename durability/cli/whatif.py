"""`kafka-durability whatif`: from options to a prediction of what a loss does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durability.cli import from_snapshot
from durability.cli.from_snapshot import Work
from durability.cli.options import Options

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.plan.lose import Item

JOB = "whatif.py"


def run(options: Options, lose: Sequence[Item], label: str) -> int:
    """Predicts one loss; returns the exit status. label: the option that named `lose`, for messages."""
    return from_snapshot.run(options, "whatif", lambda work: _predict(work, lose, label))


def _predict(work: Work, lose: Sequence[Item], label: str) -> None:
    from durability.report import whatif as report
    from durability.steps import whatif
    from durability.steps.summary import report_step

    def submit(lake: Lake, plan: Plan, losses: Mapping[str, Any]) -> None:
        stated = work.folder / "lose.json"
        stated.write_text(json.dumps(losses), encoding="utf-8")
        work.submit(lake, plan, JOB, "--lose", str(stated))

    run_id = f"whatif:{datetime.now(UTC).isoformat()}"
    with work.console.running(), report_step("predict", work.console) as summary:
        prediction = whatif.prepare(work.settings, work.snapshot, lose, label, run_id, f"{run_id}:1")
        files = whatif.predict(work.settings, prediction, submit, summary)
    work.console.line()
    for line in report.summary(json.loads(files["whatif.json"].read_text(encoding="utf-8")), files):
        work.console.line(line)
