"""summary.md: a run on one page of Markdown, for the summary of a CI job (GitHub, GitLab) or a comment.

Names and messages come from clusters. Names are code, other text is escaped, so that neither is markup, a link or a mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from durability.plain import plural
from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import Headline, changes_text, is_first, missed_objectives
from durability.report.words import (
    OUTCOMES,
    cause_title,
    clipped,
    clipped_script,
    is_script,
    joined,
    numbers,
    readable,
    visible,
    waived,
)

FILE = "summary.md"
LIMIT, RESERVED = 60_000, 2_000
"""The most bytes of the page, and those kept for its last part. A comment on GitHub has at most 65,536 characters."""
CLUSTERS, FAILURES, UNKNOWN, EXEMPT = 20, 15, 15, 10
"""The most rows and entries of each part."""
NAME, TEXT, DETAILS, FIX, NAMED = 120, 600, 2_000, 1_500, 5
"""The most characters of a name, a text and a fix, and the most names in a sentence."""
JOINER = "\u2060"
"""An invisible character. After @ or #, it keeps CI servers from making a mention or a reference of what follows."""
_MARKUP = re.compile(r"[&<>*_`\[\]()\\|~#@!$]|(?<=:)//|(?<=www)\.|^[-+=]|^\d(?=\d*[.)])", re.IGNORECASE)
"""What is markup, becomes a link, or begins a list."""
_REFERENCE = re.compile(r"([@#!~%$&])(?=[\w\"])")


class Page:
    """Blocks of Markdown that together have at most LIMIT bytes."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.room = LIMIT - RESERVED
        self.left_out: list[str] = []

    def add(self, block: str) -> bool:
        """Add a block if there is room. Otherwise returns False."""
        size = len(block.encode()) + 2
        if size > self.room:
            return False
        self.blocks.append(block)
        self.room -= size
        return True

    def part(self, title: str, blocks: Sequence[str], most: int, noun: str, many: str | None = None) -> None:
        """Add a heading and the first blocks. The others are counted as left out."""
        if not blocks:
            return
        self.add(f"## {title}")
        shown = 0
        while shown < min(len(blocks), most) and self.add(blocks[shown]):
            shown += 1
        if shown < len(blocks):
            self.left_out.append(plural(len(blocks) - shown, noun, many))


def write(file: TextIO, head: Mapping[str, Any], headline: Headline, causes: Causes) -> None:
    """Write the page. head: findings.json without its findings."""
    run, summary, page = head["run"], head["summary"], Page()
    page.add("# Kafka durability audit")
    page.add(f"**{escaped(headline.sentence)}**")
    details = " ".join([*headline.details, *filter(None, [missed_objectives(head)])])
    if details:
        page.add(escaped(details, DETAILS))
    page.add(_run(run))
    page.add(_counts(summary))
    changed = changes_text(summary, headline.waived)
    page.add("First run: no earlier run to compare with." if is_first(run) else f"Since the last run: {changed}.")
    _clusters(page, summary["clusters"], run["snapshots"])
    failing, unknown = causes.ranked("FAIL"), causes.ranked("UNKNOWN")
    page.part(
        "Fix first",
        [_failure(*each) for each in enumerate(failing, 1)],
        FAILURES,
        "cause of failures",
        "causes of failures",
    )
    page.part("Unknown", [*_unread(run["snapshots"]), *map(_gap, unknown)], UNKNOWN, "unknown cause")
    page.part("Accepted risks", [_accepted(cause) for cause in causes.ranked("EXEMPT")], EXEMPT, "accepted risk")
    page.room += RESERVED
    page.add("## Left out")
    if page.left_out:
        page.add(f"This page leaves out {joined(page.left_out)}.")
    page.add(
        "It shows the first fix, one message and a few resources of each cause. report.html and findings.csv have all of them."
    )
    page.add("Verdicts that passed, or that don't apply, are counted only.")
    file.write("\n\n".join(page.blocks) + "\n")


def escaped(text: str | None, limit: int = TEXT) -> str:
    """Text on one line that Markdown shows as it is, cut to `limit` characters.

    >>> escaped("<b>*x*</b>"), escaped("- a"), escaped("snake_case")
    ('&#60;b&#62;&#42;x&#42;&#60;/b&#62;', '&#45; a', 'snake&#95;case')
    >>> escaped("http://a www.b"), escaped("@all") == "&#64;" + JOINER + "all"
    ('http:&#47;&#47;a www&#46;b', True)
    """
    line = _REFERENCE.sub(rf"\1{JOINER}", _line(text, limit))
    return _MARKUP.sub(lambda found: "".join(f"&#{ord(character)};" for character in found[0]), line)


def code(text: str | None, limit: int = NAME) -> str:
    """Text as code on one line.

    >>> code("orders"), code("a`b"), code("")
    ('`orders`', '`` a`b ``', '` `')
    """
    line = _line(text, limit) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def block(text: str, language: str) -> str:
    """Text as a block of code. Its fence is longer than any row of backticks in it."""
    shown = str(visible(text))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. A backslash before | keeps it in its cell, also in code."""
    lines = [names, ["---"] * len(names), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _line(text: str | None, limit: int) -> str:
    return " ".join(clipped(str(visible(text or "")), limit).split())


def _run(run: Mapping[str, Any]) -> str:
    policy = f"policy {code(run['policy']['name'])} {code(run['policy']['sha256'][:12])}"
    if not any(snapshot["status"] == "accepted" for snapshot in run["snapshots"]):
        state = "**nothing was evaluated**"
    else:
        state = "verified" if run["verified"] else "**not verified: Spark and expectations disagree**"
    return f"{readable(run['started_at'])}, {policy}, {state}, run {code(run['id'])}"


def _counts(summary: Mapping[str, Any]) -> str:
    counts = numbers(summary)
    return table(list(counts), [[f"{count:,}" for count in counts.values()]])


def _clusters(page: Page, clusters: Mapping[str, Mapping[str, int]], snapshots: Sequence[Mapping[str, Any]]) -> None:
    """A row per cluster, the worst first."""
    by_cluster = {snapshot["cluster"]: snapshot for snapshot in snapshots}
    worst = sorted(clusters.items(), key=lambda item: ([-item[1][outcome] for outcome in OUTCOMES], item[0]))
    rows = []
    for name, counts in worst[:CLUSTERS]:
        snapshot = by_cluster.get(name, {})
        state = readable(snapshot.get("captured_at")) if snapshot.get("status") == "accepted" else "not evaluated"
        rows.append([code(name, NAME), *(f"{counts[outcome]:,}" for outcome in OUTCOMES), state])
    names = ["cluster", *(outcome.replace("_", " ").lower() for outcome in OUTCOMES), "snapshot"]
    if rows and page.add("## Clusters"):
        while rows and not page.add(table(names, rows)):
            rows.pop()
    if len(rows) < len(clusters):
        page.left_out.append(plural(len(clusters) - len(rows), "cluster"))


def _named(cause: Cause) -> str:
    names = cause.names()
    shown = [code(name) for name in names[:NAMED]]
    return joined([*shown, *names[NAMED:]], NAMED)


def _cause(cause: Cause) -> str:
    return f"{escaped(cause_title(cause.cause), NAME)} in {code(cause.cluster)}"


def _failure(place: int, cause: Cause) -> str:
    lines = [f"### {place}. {_cause(cause)}", f"{cause.extent} ({cause.severity_counts}): {_named(cause)}"]
    if cause.example and cause.example[1]:
        lines.append(f"For example: {escaped(cause.example[1])}")
    for text, fixed in cause.first_remediations(1):
        all_of_them = "" if fixed == cause.findings else f" for {fixed:,} of {cause.findings:,} findings"
        if is_script(text):
            lines.append(f"Fix{all_of_them}:\n\n{block(clipped_script(text, FIX), 'bash')}")
        else:
            lines.append(f"Fix{all_of_them}: {escaped(text, FIX)}")
    return "\n\n".join(lines)


def _unread(snapshots: Iterable[Mapping[str, Any]]) -> list[str]:
    """The clusters that could not be evaluated."""
    return [
        f"- {code(s['cluster'])} could not be evaluated ({s['status']}): {escaped(s['reason'] or 'no reason recorded')}"
        for s in snapshots
        if s["status"] != "accepted"
    ]


def _gap(cause: Cause) -> str:
    message = f": {escaped(cause.example[1])}" if cause.example and cause.example[1] else ""
    return f"- {_cause(cause)}: {cause.extent}, {_named(cause)}{message}"


def _accepted(cause: Cause) -> str:
    why = escaped(waived(cause.waiver)) if cause.waiver else "accepted"
    return f"- {_cause(cause)}: {cause.extent}, {_named(cause)}. {why}"
