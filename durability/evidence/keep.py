"""Removes the folders of old runs from OUT/evidence, the oldest first, so that those that stay are a chain."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from durability.evidence import verify
from durability.evidence.verify import RUN, Run
from durability.lake.retention import midnight, period


@dataclass
class Removed:
    """What was removed. last: the SHA-256 of the last run's manifest, for `verify --after`. problems: what stopped it."""

    runs: list[str] = field(default_factory=list)
    last: str | None = None
    problems: list[str] = field(default_factory=list)


def remove_old(
    root: Path, age: timedelta, each: str, now: datetime, unsafe: Callable[[Run], str | None] | None = None
) -> Removed:
    """Remove the runs in `root` that started more than `age` ago, in whole days (UTC).

    The newest run stays, as do runs of the week, month or quarter (`each`) of now, which isn't over. A run that isn't as its
    manifest attests stays, with those after it: someone has to look at it.

    unsafe: why a run's copy in the bucket doesn't replace its folder (None: it does), asked right before the removal; None if
    there is no bucket. A run whose copy doesn't replace it stays, with those after it.
    """
    found = Removed()
    names = sorted((p.name for p in root.iterdir() if RUN.fullmatch(p.name)), key=lambda name: int(name.split("-")[0]))
    for name in names[:-1]:
        try:
            started = datetime.strptime(name.split("-")[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            break
        if started >= midnight(now - age) or period(started, each) == period(now, each):
            break
        run = verify.check_run(root / name)
        if run.problems:
            found.problems.append(f"{root / name} is old, and stays because it isn't as attested: {run.problems[0]}")
            break
        if unsafe and (why := unsafe(run)):
            found.problems.append(
                f"{root / name} is old, and stays until its copy in the bucket is whole and safe: {why}"
            )
            break
        try:
            # A folder that is half removed has a name that no reader takes for a run. The next run removes the rest.
            going = (root / name).rename(root / f"{verify.UNFINISHED}{name}")
        except OSError as error:
            found.problems.append(f"{root / name} is old, and can't be removed: {error.strerror}")
            break
        shutil.rmtree(going, ignore_errors=True)
        found.runs.append(name)
        found.last = run.sha256
    return found
