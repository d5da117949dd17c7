"""What a person reads in the terminal when a run has ended."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import compared, first, overview
from durability.report.files import load
from durability.report.words import cause_title, clipped, clipped_script, is_script, joined, plural, readable

WIDTH = 110
FAILURES, GAPS, NAMED = 4, 3, 3
COMMAND = 900  # characters of a remediation
BOLD, DIM = "1", "2"
TONES = {"critical": "31;1", "warning": "33;1", "unknown": "35;1", "good": "32;1"}
COLOURS = {"critical": "31", "warning": "33", "info": "34", "unknown": "35"}


class Paint:
    """ANSI colours when asked for; without them every text is left as it is."""

    def __init__(self, wanted: bool):
        self.wanted = wanted

    def __call__(self, text: str, code: str | None) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.wanted and code else text


def summary_text(findings_json: dict | Path, paths: Iterable[Path | str], *, colour: bool = False) -> str:
    """The end of a run in about twenty lines: how the fleet stands, what to mend first, what changed, what isn't known.

    `findings_json`: a findings.json, read or as a path. `paths`: the reports written;
    of a mapping its values. `colour`: ANSI colours. Text from clusters is stripped of what a terminal would obey.
    """
    paint = Paint(colour)
    document = load(findings_json) if isinstance(findings_json, Path) else findings_json
    run, summary = document["run"], document["summary"]
    standing, causes = overview(document)
    seal = _seal(run, paint)
    lines = [f"{paint('Kafka durability audit', BOLD)}, {readable(run['started_at'])}, {seal}", ""]
    lines += [paint(line, TONES[standing.tone]) for line in _wrapped(standing.headline)]
    lines += _wrapped(" ".join(standing.details))
    lines += ["", "  ".join(_counts(summary, paint))]
    changed = "Since the last run: " + compared(summary["changes"], standing.waived)
    lines.append("First run: nothing to compare with" if first(run) else changed)
    lines += _failures(causes, paint)
    lines += _gaps(causes, run["snapshots"], paint)
    listed = paths.values() if isinstance(paths, dict) else paths
    lines += ["", paint("Reports", BOLD), *(f"  {path}" for path in listed)]
    return "\n".join(lines) + "\n"


def _seal(run: dict, paint: Paint) -> str:
    if not any(s["status"] == "accepted" for s in run["snapshots"]):
        return "nothing was judged"
    return "verified" if run["verified"] else paint("NOT VERIFIED: Spark and expectations disagree", TONES["critical"])


def tame(text: str | None, limit: int = 160) -> str:
    """Strangers' text on one line, without control or bidirectional characters.

    >>> tame("orders\\x1b[2J\\nx"), tame(None)
    ('orders?[2J?x', '')
    """
    return clipped("".join(c if c.isprintable() else "?" for c in text or ""), limit)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(tame(text, 2_000), WIDTH, break_long_words=False, break_on_hyphens=False)


def _counts(summary: dict, paint: Paint) -> list[str]:
    outcomes = summary["outcomes"]
    numbers = {**summary["severities"], "unknown": outcomes["UNKNOWN"], "exempt": outcomes["EXEMPT"]}
    numbers |= {"passed": outcomes["PASS"], "not applicable": outcomes["NOT_APPLICABLE"]}
    return [paint(f"{n:,} {name}", COLOURS.get(name) if n else DIM) for name, n in numbers.items()]


def _title(cause: Cause) -> str:
    return f"{tame(cause_title(cause.cause))} in {tame(cause.cluster)}"


def _what(cause: Cause) -> str:
    """Controls, and of which resources: "log-dirs of broker 5"."""
    controls = joined([name for name, _ in cause.controls.most_common(NAMED)])
    names = [tame(name, 60) for name in cause.names(NAMED)]
    more = len(cause.resources) - len(names)
    return f"{controls} of {joined(names + ([f'{more:,} more'] if more else []))}"


def _failures(causes: Causes, paint: Paint) -> list[str]:
    failing = causes.ranked("FAIL")
    if not failing:
        return []
    lines = ["", paint("What to mend first", BOLD)]
    for place, cause in enumerate(failing[:FAILURES], 1):
        weight = paint(cause.weight, COLOURS.get(cause.severity or ""))
        lines.append(f"  {place}. {_title(cause)}: {cause.extent} ({weight})")
        lines += [paint(line, DIM) for text, _ in cause.first_commands(1) for line in _remedy(text)]
    if len(failing) > FAILURES:
        lines.append(f"  and {plural(len(failing) - FAILURES, 'more cause')}, in the report")
    return lines


def _remedy(text: str) -> list[str]:
    """Advice wrapped; of a script every command on a line of its own, whole, so that it can be copied."""
    if not is_script(text):
        return textwrap.wrap(tame(text, COMMAND), WIDTH, initial_indent="     ", subsequent_indent="     ")
    lines = []
    for line in clipped_script(text, COMMAND).splitlines():
        if line.startswith("#"):
            lines += textwrap.wrap(
                tame(line[1:].strip(), COMMAND), WIDTH, initial_indent="     # ", subsequent_indent="     # "
            )
        else:
            lines.append(f"     {tame(line, COMMAND)}")
    return lines


def _gaps(causes: Causes, snapshots: list[dict], paint: Paint) -> list[str]:
    missing = [s for s in snapshots if s["status"] != "accepted"]
    silent = {s["cluster"] for s in missing}
    unknown = [cause for cause in causes.ranked("UNKNOWN") if cause.cluster not in silent]
    if not unknown and not missing:
        return []
    lines = ["", paint("What isn't known", BOLD)]
    for state in missing[:GAPS]:
        stale = state.get("stale_snapshot")
        last = f"; last accepted: {readable(stale['captured_at'])}" if stale else ""
        reason = tame(state["reason"]) or "no reason recorded"
        lines.append(f"  - {tame(state['cluster'])} could not be judged ({state['status']}): {reason}{last}")
    lines += [f"  - {_title(cause)}: {cause.extent}: {_what(cause)}" for cause in unknown[:GAPS]]
    rest = max(len(missing) - GAPS, 0) + max(len(unknown) - GAPS, 0)
    return [*lines, f"  and {plural(rest, 'more gap')}, in the report"] if rest else lines
