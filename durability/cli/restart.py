"""`kafka-durability restart-plan`: in which waves the brokers of a cluster may restart."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from durability.cli import from_snapshot
from durability.cli.from_snapshot import Work
from durability.cli.options import Given, Options
from durability.errors import Refused

if TYPE_CHECKING:
    from durability.restart.plan import Limits

JOB = "restart.py"


def limits(given: Given) -> Limits:
    """The limits that the options state. Refused for what is no number in range."""
    from durability.restart.plan import Limits

    return Limits(
        margin=_number(given, "margin", least=0) or 0,
        most=_number(given, "max", least=1),
        voters=_number(given, "voters", least=1) or 1,
    )


def _number(given: Given, name: str, least: int) -> int | None:
    text = given.text(name)
    if not text:
        return None
    if not text.isdecimal() or len(text) > 6 or int(text) < least:
        raise Refused(f"{given.named(name)}: expected a number, {least} or more")
    return int(text)


def run(options: Options, limits: Limits) -> int:
    """Plans the restart; returns the exit status."""
    return from_snapshot.run(options, "restart-plan", lambda work: _plan(work, limits))


def _plan(work: Work, limits: Limits) -> None:
    from durability.report import restart as report
    from durability.steps import restart
    from durability.steps.summary import report_step

    run_id = f"restart:{datetime.now(UTC).isoformat()}"
    with work.console.running(), report_step("plan waves", work.console) as summary:
        files = restart.plan_waves(
            work.settings,
            work.snapshot,
            limits,
            run_id,
            lambda lake, plan: work.submit(lake, plan, JOB),
            summary,
        )
    work.console.line()
    for line in report.summary(json.loads(files["restart.json"].read_text(encoding="utf-8")), files):
        work.console.line(line)
