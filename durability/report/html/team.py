"""A team's page, with the findings on its topics and clusters alone, and the list of all teams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from durability.report.data.causes import Causes
from durability.report.data.headline import is_first
from durability.report.html import page
from durability.report.html.facets import STATES, Facets
from durability.report.html.rows import QUOTAS, FindingRows
from durability.report.news import worsened
from durability.report.words import is_resolved, state

FRESH, MISSING = 12, 50
"""The most new failures, and the most clusters that could not be evaluated, that are named."""
PART, ROWS, FEWEST = 0.5, 15_000, 20
"""How many failures a page lists: at most this part of the report's, on all pages together, and even then."""
HOME = "../report.html"
"""The report, seen from a team's page."""
MARK = "kafka-durability team page"
"""What team pages state as their generator, so that files of an earlier run can be told from others."""


def quotas(teams: int) -> dict[str, tuple[int, float]]:
    """`rows.QUOTAS` of one of so many pages. So memory and time don't grow with the number of teams.

    >>> quotas(1)["FAIL"], quotas(1_000)["FAIL"][0]
    ((350, 0.7), 20)
    """
    share = max(min(PART, ROWS / max(teams, 1) / QUOTAS["FAIL"][0]), FEWEST / QUOTAS["FAIL"][0])
    return {kind: (ceil(rows * share), mebibytes * share) for kind, (rows, mebibytes) in QUOTAS.items()}


@dataclass
class TeamFindings:
    """Collects a team's findings, worst first, one at a time.

    states: their number by state. resolved: by reason. new: those that were not there in the last run. worse: failures that were
    unknown, less severe or accepted in it.
    """

    team: str
    rows: FindingRows
    causes: Causes = field(default_factory=Causes)
    facets: Facets = field(default_factory=Facets)
    states: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    new: int = 0
    worse: int = 0

    def add(self, finding: Mapping[str, Any]) -> None:
        for reader in (self.causes, self.rows, self.facets):
            reader.add(finding)
        if is_resolved(finding):
            self.resolved[finding["why"] or "no reason recorded"] += 1
        else:
            self.states[state(finding["outcome"], finding["severity"])] += 1
            self.new += finding["change"] == "new"
            self.worse += worsened(finding)


def render(run: Mapping[str, Any], found: TeamFindings, snapshots: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page in pieces. run: as in findings.json. snapshots: those of `run` that may have the team's topics."""
    missing = [snapshot for snapshot in snapshots if not page.accepted(snapshot)]
    shown = found.rows.shown
    for kind in ("FAIL", "UNKNOWN", "EXEMPT"):
        found.facets.mark(shown[kind])
    yield from _generate(
        "team.html.j2",
        run=run,
        team=found.team,
        states=[(name, found.states[name]) for name in STATES],
        missing=page.first(missing, MISSING),
        evaluated=len(missing) < len(snapshots),
        causes=page.cause_rows(found.causes, "FAIL"),
        rows=shown,
        facets=found.facets,
        left_out={kind: found.rows.left_out(kind) for kind in QUOTAS},
        fresh=[row for row in shown["FAIL"] if row["change"] == "new"][:FRESH],
        first_run=is_first(run),
        worse=[row for row in shown["FAIL"] if worsened(row)][:FRESH],
        worsened_total=found.worse,
        new=found.new,
        resolved=sum(found.resolved.values()),
        resolved_why=sorted(found.resolved.items(), key=lambda item: (-item[1], item[0])),
    )


def render_index(run: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The list of teams. rows: of `Facets.teams`."""
    yield from _generate("team_index.html.j2", run=run, rows=rows)


def _generate(template: str, **context: Any) -> Iterator[str]:
    home = {"home": HOME, "generator": MARK}
    yield from page.environment().get_template(template).generate(**page.style_and_script(), **home, **context)
