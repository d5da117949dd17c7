"""`kafka-durability restart-plan` and `restart-check`: in which waves brokers may restart, and whether a wave may go now."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from durability.cli import from_snapshot
from durability.cli.from_snapshot import Work
from durability.cli.options import Given, Options
from durability.collect import connections
from durability.errors import Refused

if TYPE_CHECKING:
    from durability.restart.plan import Limits

JOB = "restart.py"


def limits(given: Given) -> Limits:
    """The limits that the options state. Refused if one is not a number in its range."""
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


def check(options: Options, given: Given) -> int:
    """Says whether a wave may restart now; returns 0 for go, 1 for wait."""
    from durability.cli import inputs
    from durability.cli.console import Console
    from durability.cli.exit_status import DONE, REACHED
    from durability.collect import collect
    from durability.restart import check as restart_check

    if not options.bootstrap:
        raise Refused("restart-check reads a cluster as it is now: name it with --bootstrap")
    waves, of_plan = _waves(options, given)
    stated = _number(given, "margin", least=0)
    margin = of_plan if stated is None else stated
    number = _number(given, "wave", least=1)
    wave = waves[number - 1] if number else waves[0]
    connection = {**inputs.security(options, os.environ), connections.SERVERS: options.bootstrap}
    document = collect(options.cluster or options.bootstrap, connection).document
    verdict = restart_check.check(document, wave, margin, planned=frozenset().union(*waves) if number else None)
    console, nodes = Console(), ", ".join(map(str, sorted(wave)))
    for reason in verdict.reasons:
        console.line(f"wait: {reason}")
    if verdict.go:
        console.line(f"go: nodes {nodes} may stop together")
    if verdict.unavoidable:
        console.line(f"{verdict.unavoidable:,} of their partitions can spare no replica: their writes stop meanwhile")
    if verdict.below_margin:
        console.line(f"{verdict.below_margin:,} of their partitions can't keep the margin of {margin}")
    return DONE if verdict.go else REACHED


def _waves(options: Options, given: Given) -> tuple[list[frozenset[int]], int]:
    """The nodes of --brokers as one wave and no margin, or all waves of the plan in OUT and its margin."""
    if (named := given.text("brokers")) and given.text("wave"):
        raise Refused("--wave and --brokers were both given; name a wave of the plan, or brokers")
    if named:
        ids = [part.strip() for part in named.split(",")]
        if not all(part.isdecimal() and len(part) <= 10 for part in ids):
            raise Refused(f"{given.named('brokers')}: expected ids separated by commas, for instance 7,8")
        return [frozenset(map(int, ids))], 0
    number = _number(given, "wave", least=1)
    if number is None:
        raise Refused("name the wave to check with --wave, or brokers with --brokers")
    plan = options.out / "restart.json"
    try:
        content = json.loads(plan.read_text(encoding="utf-8"))
        waves, margin = [frozenset(map(int, wave)) for wave in content["waves"]], int(content["limits"]["margin"])
    except OSError as error:
        raise Refused(f"{plan}: {error.strerror}; make a plan with kafka-durability restart-plan") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{plan}: not a restart plan; make one with kafka-durability restart-plan") from error
    if number > len(waves):
        raise Refused(f"{given.named('wave')}: the plan has {len(waves)} waves")
    return waves, margin
