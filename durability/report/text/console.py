"""The summary in the terminal at the end of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from durability import resources
from durability.plain import plain, plural
from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import changes_text, is_first, missed_objectives, overview
from durability.report.words import cause_title, clipped, clipped_script, is_script, joined, numbers, readable

WIDTH = 110
"""The most characters of a line of prose. Commands and paths are never wrapped."""
FAILURES, GAPS, NAMED = 4, 3, 3
REMEDIATION = 1300  # characters: a reassignment with its verification, and the step before it
BOLD, DIM = "1", "2"
TONES = {"critical": "31;1", "warning": "33;1", "unknown": "35;1", "good": "32;1"}
COLOURS = {"critical": "31", "warning": "33", "info": "34", "unknown": "35"}


class Paint:
    """Adds ANSI colours if `wanted`."""

    def __init__(self, wanted: bool):
        self.wanted = wanted

    def __call__(self, text: str, code: str | None) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.wanted and code else text


def summary_text(
    document: Mapping[str, Any], paths: Iterable[Path | str], *, colour: bool = False, width: int | None = None
) -> str:
    """The summary of a run in about twenty lines: the headline, what to fix first, what changed, what is unknown.

    Control characters in text from clusters are replaced.

    document: a findings.json.
    paths: the written reports.
    colour: use ANSI colours.
    width: the columns of the terminal; None in a file. Prose is wrapped there, at the latest at WIDTH.
    """
    width = min(width or WIDTH, WIDTH)
    paint = Paint(colour)
    run, summary = document["run"], document["summary"]
    headline, causes = overview(document)
    lines = [f"{paint('Kafka durability audit', BOLD)}, {readable(run['started_at'])}, {_seal(run, paint)}", ""]
    lines += [paint(line, TONES[headline.tone]) for line in _wrapped(headline.sentence, width)]
    lines += _wrapped(" ".join(headline.details), width)
    lines += ["", "  ".join(_counts(summary, paint))]
    changed = "Since the last run: " + changes_text(summary, headline.waived)
    lines.append("First run: no earlier run to compare with" if is_first(run) else changed)
    if line := missed_objectives(document):
        lines += [paint(text, COLOURS["warning"]) for text in _wrapped(line, width)]
    lines += _failures(causes, paint, width)
    lines += _unknown(causes, run["snapshots"], paint)
    lines += ["", paint("Reports", BOLD), *(f"  {plain(str(path))}" for path in paths)]
    if summary["outcomes"]["FAIL"]:
        lines += ["", *_wrapped(plan_hint(), width)]
    return "\n".join(lines) + "\n"


def plan_hint() -> str:
    """How to plan the fixes. A wheel has no Makefile."""
    make = " (make plan)" if resources.checkout() else ""
    return f"To plan the changes that fix findings, run kafka-durability plan{make} with the same options."


def _seal(run: Mapping[str, Any], paint: Paint) -> str:
    if not any(s["status"] == "accepted" for s in run["snapshots"]):
        return "nothing was evaluated"
    return "verified" if run["verified"] else paint("NOT VERIFIED: Spark and expectations disagree", TONES["critical"])


def tame(text: str | None, limit: int = 160) -> str:
    """Text from clusters on one line, without control or direction characters.

    >>> tame("orders\\x1b[2J\\nx"), tame(None)
    ('orders?[2J?x', '')
    """
    return clipped(plain(text or ""), limit)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(tame(text, 2_000), width, break_long_words=False, break_on_hyphens=False)


def _counts(summary: Mapping[str, Any], paint: Paint) -> list[str]:
    return [paint(f"{n:,} {name}", COLOURS.get(name) if n else DIM) for name, n in numbers(summary).items()]


def _title(cause: Cause) -> str:
    return f"{tame(cause_title(cause.cause))} in {tame(cause.cluster)}"


def _what(cause: Cause) -> str:
    """Controls and their resources: "log-dirs of broker 5"."""
    controls = joined([name for name, _ in cause.controls.most_common(NAMED)])
    return f"{controls} of {joined([tame(name, 60) for name in cause.names()], NAMED)}"


def _failures(causes: Causes, paint: Paint, width: int) -> list[str]:
    failing = causes.ranked("FAIL")
    if not failing:
        return []
    lines = ["", paint("Fix first", BOLD)]
    for place, cause in enumerate(failing[:FAILURES], 1):
        weight = paint(cause.severity_counts, COLOURS.get(cause.severity or ""))
        lines.append(f"  {place}. {_title(cause)}: {cause.extent} ({weight})")
        for text, fixed in cause.first_remediations(1):
            lines += [paint(line, DIM) for line in _remediation(text, width)]
            if fixed < cause.findings:
                others = " The report has the other fixes." if len(cause.remediations) > 1 else ""
                lines.append(f"     This is the fix for {fixed:,} of {cause.findings:,} findings.{others}")
    if len(failing) > FAILURES:
        lines.append(f"  and {plural(len(failing) - FAILURES, 'more cause')}, in the report")
    return lines


def _remediation(text: str, width: int) -> list[str]:
    """Advice and comments are wrapped. Each command of a script stays on one line, so that it can be copied."""
    lines = []
    script = is_script(text)
    for line in clipped_script(text, REMEDIATION).splitlines() if script else [text]:
        if script and not line.startswith("#"):
            lines.append(f"     {tame(line, REMEDIATION)}")
        else:
            prefix = "     # " if script else "     "
            words = tame(line.removeprefix("#").strip() if script else line, REMEDIATION)
            lines += textwrap.wrap(
                words, width, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False
            )
    return lines


def _unknown(causes: Causes, snapshots: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    missing = [s for s in snapshots if s["status"] != "accepted"]
    clusters = {s["cluster"] for s in missing}
    unknown = [cause for cause in causes.ranked("UNKNOWN") if cause.cluster not in clusters]
    if not unknown and not missing:
        return []
    lines = ["", paint("Unknown", BOLD)]
    for snapshot in missing[:GAPS]:
        stale = snapshot.get("stale_snapshot")
        last = f"; last accepted: {readable(stale['captured_at'])}" if stale else ""
        reason = tame(snapshot["reason"]) or "no reason recorded"
        lines.append(f"  - {tame(snapshot['cluster'])} could not be evaluated ({snapshot['status']}): {reason}{last}")
    lines += [f"  - {_title(cause)}: {cause.extent}: {_what(cause)}" for cause in unknown[:GAPS]]
    rest = max(len(missing) - GAPS, 0) + max(len(unknown) - GAPS, 0)
    return [*lines, f"  and {plural(rest, 'more gap')}, in the report"] if rest else lines
