"""`kafka-durability evidence` and `sample`: what a lake has about a period, and verdicts that an auditor reperforms."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from durability.cli import exit_status
from durability.cli.console import Console
from durability.cli.options import Given, existing_lake, framework
from durability.errors import Refused

if TYPE_CHECKING:
    from durability.lake import Lake


def period(given: Given, start: str, end: str) -> int:
    """Writes the evidence of a period; returns 0. Raises AuditError for what a user can fix."""
    from durability.evidence.nights import Period
    from durability.evidence.period import summary, write
    from durability.policy import shipped_frameworks
    from durability.policy.frameworks import named

    now = datetime.now(UTC)
    asked = Period.of(start.strip(), end.strip(), now.date())
    wanted = framework(given)
    lake = _lake(given)
    out = given.folder("out", Path(given.text("out") or "out").absolute())
    folder, found = write(lake, asked, out, named(shipped_frameworks(), wanted) if wanted else None, now)
    console = Console()
    for line in summary(found, folder):
        console.line(line)
    return exit_status.DONE


def sample(given: Given, as_json: bool) -> int:
    """Prints a sample of verdicts; returns 0. Raises AuditError for what a user can fix."""
    import json

    from durability.evidence import sample as sampling

    size = _whole(given, "n", 1, sampling.MOST)
    seed = _whole(given, "seed", 0, 10**12)
    found = sampling.document(_lake(given), size, seed, given.text("cluster") or None)
    if as_json:
        json.dump(found, sys.stdout, ensure_ascii=True, indent=1)
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in sampling.lines(found))
    return exit_status.DONE


def _lake(given: Given) -> Lake:
    """The lake to read. Nothing is created: a lake that isn't there is refused."""
    from durability.lake import Lake
    from durability.lake.tables import RUNS

    location = existing_lake(given)
    lake = Lake.open(location)
    if not lake.has(RUNS):
        raise Refused(f"the lake at {location} has no runs: it was never set up; run an audit on it")
    return lake


def _whole(given: Given, name: str, least: int, most: int) -> int:
    text = given.text(name)
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)) or not least <= int(text) <= most:
        raise Refused(f"{given.named(name)}: expected a whole number from {least} to {most:,}")
    return int(text)
