"""The content of a Slack digest, of a fleet or of one team.

It has what is new, what persists, what was resolved and why, what is unknown, and which waivers end soon. Findings with the same
cause in the same cluster are one line with one fix.

Slack's limits are 50 blocks per message, 3000 characters per section and 150 per header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from durability.plain import plural
from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import Headline, StatusCounter, framework_note, is_first, missed_objectives
from durability.report.data.teams import FOLDER, file_name
from durability.report.news import WORSENED, change_of, previous
from durability.report.text.slack import HEADER, SECTION, code, escaped
from durability.report.words import SEVERITIES, cause_title, is_command, is_resolved, joined, readable

LINES, WAIVERS = 5, 5
"""The most causes and waivers that a section names."""
LINE, FIX = 420, 240
"""The most characters of a line and of a command in it."""
NEWS = ("new", WORSENED, "resolved")
SOON = timedelta(days=7)
"""A waiver that ends within this time is news."""
MARKS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:", "unknown": ":grey_question:"}


class Found:
    """Counts findings for a digest, one at a time.

    changes: findings by `news.change_of`. before: findings that got worse, by what they were in the last run.
    resolved: findings by the reason why they are resolved. waivers: by index, those that exempt something, with their findings.
    """

    def __init__(self) -> None:
        self.causes = Causes()
        self.changes: Counter[str | None] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.severities: Counter[str | None] = Counter()
        self.before: Counter[str] = Counter()
        self.resolved: Counter[str] = Counter()
        self.waivers: dict[int, tuple[Mapping[str, Any], int]] = {}

    def add(self, finding: Mapping[str, Any]) -> None:
        change = change_of(finding)
        self.changes[change] += 1
        if change == WORSENED:
            self.before[previous(finding)] += 1
        if finding["change"] == "resolved":
            self.resolved[finding["why"] or "no reason recorded"] += 1
        if is_resolved(finding):
            return
        self.causes.add(finding)
        self.outcomes[finding["outcome"]] += 1
        if finding["outcome"] == "FAIL":
            self.severities[finding["severity"]] += 1
        if finding["outcome"] == "EXEMPT" and (waiver := finding["waiver"]):
            # In each tier it may end on another day. The first one counts.
            known, exempted = self.waivers.get(waiver["index"], (waiver, 0))
            first = min(known, waiver, key=lambda one: one["expires"])
            self.waivers[waiver["index"]] = (first, exempted + 1)

    @property
    def counts(self) -> str:
        """For example "2 critical, 1 warning, 3 unknown"; "nothing fails" if there is nothing."""
        named = [f"{self.severities[name]:,} {name}" for name in SEVERITIES if self.severities[name]]
        named += [f"{self.outcomes['UNKNOWN']:,} unknown"] if self.outcomes["UNKNOWN"] else []
        return ", ".join(named) or "nothing fails"

    def ending(self, today: date) -> list[tuple[Mapping[str, Any], int]]:
        """Waivers that end within SOON, the first one first."""
        ends = [pair for pair in self.waivers.values() if date.fromisoformat(pair[0]["expires"]) - today <= SOON]
        return sorted(ends, key=lambda pair: (pair[0]["expires"], pair[0]["index"]))


@dataclass(frozen=True)
class Digests:
    """What a run's digests are made of.

    teams: by team, the findings of its resources. clusters: by team, the clusters that it owns.
    """

    run: Mapping[str, Any]
    headline: Headline
    missed: str | None
    fleet: Found
    teams: Mapping[str, Found]
    clusters: Mapping[str, Collection[str]]

    @property
    def today(self) -> date:
        return date.fromisoformat(self.run["started_at"][:10])

    def missing(self, team: str | None = None) -> list[str]:
        """Clusters that were not evaluated: of the fleet, or of a team."""
        all_ = [s["cluster"] for s in self.run["snapshots"] if s["status"] != "accepted"]
        return [name for name in all_ if name in self.clusters.get(team, ())] if team else all_

    def found(self, team: str | None) -> Found:
        return self.teams.get(team, Found()) if team else self.fleet

    def has_news(self, team: str | None = None) -> bool:
        """Is there something that yesterday's digest didn't have, or that must not be forgotten?

        A cluster that was not evaluated and a run that isn't verified are news each time.
        """
        found = self.found(team)
        changed = any(found.changes[change] for change in NEWS) or bool(found.ending(self.today))
        return changed or bool(self.missing(team)) or (not team and (is_first(self.run) or not self.run["verified"]))


def read(document: Mapping[str, Any], clusters: Mapping[str, Collection[str]] | None = None) -> Digests:
    """What a findings.json has for digests, in one pass over its findings. clusters: by team, those that it owns."""
    status, fleet, teams = StatusCounter(), Found(), dict[str, Found]()
    for finding in document["findings"]:
        status.add(finding)
        fleet.add(finding)
        if team := finding.get("team"):
            teams.setdefault(team, Found()).add(finding)
    headline = status.headline(document["summary"], document["run"])
    return Digests(document["run"], headline, missed_objectives(document), fleet, teams, clusters or {})


def payload(
    digests: Digests, team: str | None = None, paths: Sequence[Path | str] = (), url: str | None = None
) -> dict:
    """The message, in Block Kit. paths: files to name. url: of the folder with the reports, to link them."""
    run, found = digests.run, digests.found(team)
    whose = "".join(c for c in team or "" if c.isprintable())[:80]
    title = f"Kafka durability{f', {whose}' if whose else ''}, {readable(run['started_at'])}"
    first = f"*{escaped(team, 80)}: {found.counts}*" if team else _headline(digests)
    sections = [[first, *([escaped(digests.missed, LINE)] if digests.missed and not team else [])]]
    sections += [_new(run, found), _worse(found), _persisting(found), _resolved(found)]
    sections += [_unknown(found, digests.missing(team)), _waivers(found, digests.today)]
    blocks: list[dict[str, Any]] = [{"type": "header", "text": {"type": "plain_text", "text": title[:HEADER]}}]
    blocks += [{"type": "section", "text": {"type": "mrkdwn", "text": _fitting(lines)}} for lines in sections if lines]
    foot = _foot(run, team, paths, url)
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": foot}]})
    summary = f"{found.counts}" if team else digests.headline.sentence
    return {"text": escaped(f"{title}: {summary}", SECTION), "blocks": blocks}


def after_a_failure(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of `payload` that also says that an earlier one could not be sent."""
    said = "A digest before this one could not be sent. Failures that were new in it and still exist are listed here."
    header, *rest = message["blocks"]
    return {**message, "blocks": [header, {"type": "section", "text": {"type": "mrkdwn", "text": said}}, *rest]}


def _headline(digests: Digests) -> str:
    mark = MARKS.get(digests.headline.tone, ":large_green_circle:")
    doubt = "" if digests.run["verified"] else "*Not verified.* "
    return f"{mark} {doubt}*{escaped(digests.headline.sentence, 900)}*"


def _new(run: Mapping[str, Any], found: Found) -> list[str]:
    """The causes with new findings, each with its first fix."""
    causes = [cause for cause in found.causes.ranked("FAIL") if cause.changes["new"]]
    if not causes:
        return ["First run."] if is_first(run) else []
    number = sum(cause.changes["new"] for cause in causes)
    first = "First run: no earlier run to compare with. " if is_first(run) else ""
    return [f"{first}*New: {plural(number, 'finding')}*", *_named(causes, fixes=True)]


def _worse(found: Found) -> list[str]:
    """The causes with failures that the last run had as unknown, less severe or accepted."""
    causes = [cause for cause in found.causes.ranked("FAIL") if cause.changes[WORSENED]]
    if not causes:
        return []
    before = joined([f"{number:,} {was}" for was, number in sorted(found.before.items())])
    only = [cause for cause in causes if not cause.changes["new"]]
    return [f"*Worse: {plural(found.changes[WORSENED], 'finding')}* (before: {before})", *_named(only, fixes=True)]


def _persisting(found: Found) -> list[str]:
    causes = [cause for cause in found.causes.ranked("FAIL") if cause.changes["persisting"]]
    if not causes:
        return []
    number = sum(cause.changes["persisting"] for cause in causes)
    oldest = min((cause.since for cause in causes if cause.since), default=None)
    since = f", the oldest since {readable(oldest)}" if oldest else ""
    only = [cause for cause in causes if not (cause.changes["new"] or cause.changes[WORSENED])]
    return [f"*Persisting: {plural(number, 'finding')}*{since}", *_named(only, fixes=False)]


def _named(causes: Sequence[Cause], fixes: bool) -> list[str]:
    lines = []
    for cause in causes[:LINES]:
        where = f"{escaped(cause_title(cause.cause), 120)} in {escaped(cause.cluster, 80)}"
        line = f"• {where} ({cause.severity_counts}), {cause.extent}."
        for text, _ in cause.first_remediations(1) if fixes else ():
            line += f" Fix first: {code(_first_line(text), FIX)}"
        lines.append(line)
    left = len(causes) - LINES
    return [*lines, f"… and {plural(left, 'more cause')}, in the report"] if left > 0 else lines


def _first_line(remediation: str) -> str:
    """A script's first command, or the advice."""
    return next(filter(is_command, remediation.splitlines()), remediation).removesuffix(" &&")


def _resolved(found: Found) -> list[str]:
    number = found.resolved.total()
    if not number:
        return []
    ordered = sorted(found.resolved.items(), key=lambda pair: (-pair[1], pair[0]))
    why = [f"{count:,} {escaped(reason, 60)}" for reason, count in ordered[:LINES]]
    return [f"*Resolved: {plural(number, 'finding')}*: {', '.join(why)}"]


def _unknown(found: Found, missing: Sequence[str]) -> list[str]:
    causes, number = found.causes.ranked("UNKNOWN"), found.outcomes["UNKNOWN"]
    lines = []
    if missing:
        lines.append(f"Not evaluated: {joined([escaped(name, 80) for name in missing], limit=5)}.")
    if number:
        why = [f"{escaped(cause_title(c.cause), 120)} in {escaped(c.cluster, 80)} ({c.findings:,})" for c in causes]
        lines.append(f"*Unknown: {plural(number, 'verdict')}*: {joined(why, limit=3)}")
    return lines


def _waivers(found: Found, today: date) -> list[str]:
    ending = found.ending(today)
    if not ending:
        return []
    lines = [
        f"• {waiver['expires']}: {escaped(waiver['reason'], 160)} ({escaped(waiver['owner'], 60)}),"
        f" exempts {plural(number, 'finding')}"
        for waiver, number in ending[:WAIVERS]
    ]
    left = [f"… and {plural(len(ending) - WAIVERS, 'more')}"] if len(ending) > WAIVERS else []
    return ["*Waivers whose last day is near*", *lines, *left]


def _fitting(lines: Iterable[str]) -> str:
    """As many lines as a section may have."""
    kept, room = [], SECTION - 40
    for line in lines:
        if len(line) + 1 > room:
            kept.append("…")
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(kept)


def _foot(run: Mapping[str, Any], team: str | None, paths: Sequence[Path | str], url: str | None) -> str:
    named = [code(str(path), 200) for path in paths[:4]]
    if url:
        page = f"{FOLDER}/{file_name(team)}" if team else "report.html"
        named = [f"<{escaped(url.rstrip('/'), 500)}/{page}|report>"]
    policy = f"policy {escaped(run['policy']['name'], 60)} {code(run['policy']['sha256'][:12], 20)}"
    cut = [escaped(text, 200) for text in framework_note(run)]
    return " · ".join([*cut, *named, policy, f"run {code(run['id'], 80)}"])
