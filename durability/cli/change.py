"""`kafka-durability plan`: a proven plan of change for one cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from durability.cli import from_snapshot
from durability.cli.audit import JOB
from durability.cli.from_snapshot import Work
from durability.cli.options import Given, Options
from durability.errors import Refused

if TYPE_CHECKING:
    from durability.steps.change import Request

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]?B)?", re.IGNORECASE)


def request(given: Given) -> Request:
    """What the options ask for. Refused for a value that is none."""
    from durability.plan.chosen import Chosen, check, names
    from durability.plan.lose import parse
    from durability.remedies.change.model import Limits
    from durability.steps.change import Request

    undo = given.text("undo")
    picked = [name for name in ("findings", "control", "topic", "avoid") if given.text(name)]
    if undo and picked:
        raise Refused(f"{given.named(picked[0])}: a plan that takes another one back has no choice of findings")
    if undo and not Path(undo).is_dir():
        raise Refused(f"{given.named('undo')}: no such folder; name the folder of a plan")
    standard = Limits()
    chosen = Chosen(
        findings=names(given.text("findings")),
        controls=names(given.text("control")),
        topic=given.text("topic") or None,
        avoid=parse(given.text("avoid"), given.label("avoid")) if given.text("avoid") else (),
        labels={name: given.label(name) for name in ("findings", "control", "topic", "avoid")},
    )
    check(chosen)
    return Request(
        chosen,
        Limits(_number(given, "batch", standard.partitions, 1), _size(given, standard.bytes)),
        _number(given, "margin_disk", 20, 0, 100) / 100,
        Path(undo).absolute() if undo else None,
    )


def _number(given: Given, name: str, otherwise: int, least: int, most: int = 999_999) -> int:
    text = given.text(name)
    if not text:
        return otherwise
    if not text.isdecimal() or len(text) > 6 or not least <= int(text) <= most:
        raise Refused(f"{given.named(name)}: expected a number from {least} to {most:,}")
    return int(text)


def _size(given: Given, otherwise: int) -> int:
    text = given.text("batch_bytes")
    if not text:
        return otherwise
    matched = SIZE.fullmatch(text)
    if not matched or not int(matched[1]):
        raise Refused(f"{given.named('batch_bytes')}: expected a number of bytes, for instance 500GB")
    return int(matched[1]) * UNITS[(matched[2] or "").upper()]


def run(options: Options, asked: Request) -> int:
    """Makes the plan; returns the exit status: 1 if there is something to do and no plan is offered."""
    return from_snapshot.run(options, "plan", lambda work: _plan(work, asked))


def _plan(work: Work, asked: Request) -> int:
    from durability.cli import exit_status
    from durability.report import change as report
    from durability.steps import change

    with work.console.running():
        place = change.plan_change(
            work.settings,
            work.snapshot,
            asked,
            lambda lake, plan: work.submit(lake, plan, JOB),
            work.console,
            work.session.folder / "proof",
        )
    work.console.line()
    made = json.loads((place / report.PLAN).read_text(encoding="utf-8"))
    for line in report.summary(made, place):
        work.console.line(line)
    wanted = made["targets"] or made["undoes"] is not None
    return exit_status.REACHED if wanted and not made["proof"]["offered"] else exit_status.DONE
