"""Describes the fleet's state in sentences, from counts of the findings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from durability.catalogue import CONTROLS
from durability.plain import plural
from durability.report.data.causes import Causes
from durability.report.news import worsened_total
from durability.report.words import CHANGES, cause_title, is_resolved, joined

WAITING = "waiting"
"""A topic at min ISR, or under-replicated, whose leaders wait for a broker that is down. Only then it is critical."""
ACTIVE = {
    "offline": "with offline partitions now",
    "under-min-isr": "accepting no acks=all writes now",
    WAITING: "whose acks=all writes time out now",
}
"""Categories of partition-health that need action now, and WAITING."""
ONE_COPY = "one-copy"
STATES = ("critical", "warning", "UNKNOWN", "EXEMPT", ONE_COPY, *ACTIVE)
NO_QUORUM = ("controller-quorum", "majority-lost")
"""Control and category of a cluster whose controllers elect no leader."""
NAMED = 3
"""The most clusters that a sentence names."""
_DOWN = re.compile(r"(?:^|(?<=, ))((?:broker:\d+|rack:[^,]+?)) down(?=,|$)")
"""A broker or rack in a cause."""


@dataclass(frozen=True)
class Headline:
    """The fleet's state.

    sentence: the first sentence.
    details: further sentences.
    tone: critical, warning, unknown or good.
    waived: failures of the last run that a waiver now exempts.
    """

    sentence: str
    tone: str
    details: list[str] = field(default_factory=list)
    waived: int = 0


def is_first(run: Mapping[str, Any]) -> bool:
    """Whether a run (findings.json's `run`) had no earlier run to compare with. False if the file doesn't state it."""
    return bool(run["snapshots"]) and all(s.get("compared") is False for s in run["snapshots"])


def changes_text(summary: Mapping[str, Any], waived: int) -> str:
    """The changes since the last run, from a findings.json's `summary`, where waived findings count as resolved.

    >>> summary = {"changes": {"new": 1, "persisting": 4, "resolved": 11}, "worsened_failures": {"critical": 2}}
    >>> changes_text(summary, 1)
    '1 new, 4 persisting (2 of them worse), 10 resolved, 1 waived'
    """
    changes, worse = summary["changes"], worsened_total(summary)
    counts = {**changes, "resolved": changes["resolved"] - waived}
    named = {name: f"{counts[name]:,} {name}" for name in CHANGES}
    if worse:
        named["persisting"] += f" ({worse:,} of them worse)"
    return ", ".join([*named.values(), *[f"{waived:,} waived"] * (waived > 0)])


class StatusCounter:
    """Counts which topics are in which of STATES, one finding at a time.

    others: findings on other resources, by state.
    resolved: resolved findings, by reason.
    leaderless: clusters without a controller quorum.
    down: by cluster, brokers and racks that are down.
    """

    def __init__(self) -> None:
        self.leaderless: set[str] = set()
        self.down: defaultdict[str, set[str]] = defaultdict(set)
        self.topics: dict[str, set[tuple[str, str]]] = {name: set() for name in STATES}
        self.others: Counter[str | None] = Counter()
        self.resolved: Counter[str] = Counter()
        self.waived = 0

    def add(self, finding: Mapping[str, Any]) -> None:
        if is_resolved(finding):
            self.resolved[finding["why"] or "no reason recorded"] += 1
            return
        self.waived += finding["change"] == "resolved"
        self.down[finding["cluster"]].update(_DOWN.findall(finding["cause"] or ""))
        failed, control, category = finding["outcome"] == "FAIL", finding["control"], finding["category"]
        state = finding["severity"] if failed else finding["outcome"]
        if finding["resource_type"] != "topic":
            self.others[state] += 1
            if failed and (control, category) == NO_QUORUM:
                self.leaderless.add(finding["cluster"])
            return
        topic = (finding["cluster"], finding["resource"])
        if state in self.topics:
            self.topics[state].add(topic)
        if failed and control == "partition-health" and (category in ACTIVE or state == "critical"):
            self.topics[category if category in ACTIVE else WAITING].add(topic)
        # With an effective min ISR of 1, acks=all may wait for the leader only.
        one = finding["observed"].get("effective_min_insync_replicas") == 1
        if failed and control == "min-insync-replicas" and one:
            self.topics[ONE_COPY].add(topic)

    def headline(self, summary: Mapping[str, Any], run: Mapping[str, Any]) -> Headline:
        """The sentences. summary and run: as in findings.json."""
        found = self._headline(summary, run["snapshots"])
        return replace(found, details=[*framework_note(run), *found.details])

    def _headline(self, summary: Mapping[str, Any], snapshots: Sequence[Mapping[str, Any]]) -> Headline:
        evaluated = sum(s["status"] == "accepted" for s in snapshots)
        if not snapshots:
            return Headline("Nothing was evaluated: the run has no cluster.", "unknown")
        if not evaluated:
            return Headline(_not_evaluated(snapshots), "unknown", ["Nothing is known about topics in this run."])
        if self.topics["critical"] or self.others["critical"]:
            tone = "critical"
        elif summary["severities"].get("warning"):
            tone = "warning"
        elif summary["outcomes"].get("UNKNOWN") or evaluated < len(snapshots):
            tone = "unknown"
        else:
            tone = "good"
        total = summary.get("resources", {}).get("topic", 0)
        topics, more = self._sentence(tone, total, evaluated), self._details(total, summary, snapshots)
        said = [*self._no_quorum(), *self._down(), topics] if self.leaderless else [topics, *self._down()]
        said += more
        return Headline(said[0], tone, said[1:], self.waived)

    @property
    def _warning_only(self) -> int:
        return len(self.topics["warning"] - self.topics["critical"])

    def _sentence(self, tone: str, total: int, clusters: int) -> str:
        where = f" in {clusters:,} clusters" if clusters != 1 else ""
        topics = plural(total, "topic") + where
        critical, warning = len(self.topics["critical"]), self._warning_only
        if critical:
            return f"{critical:,} of {topics} {_have(critical)} critical findings{self._consequences()}."
        if tone == "critical":
            count = plural(self.others["critical"], "critical finding concerns", "critical findings concern")
            return f"No topic has a critical finding, but {count} brokers or whole clusters."
        if tone == "warning":
            who = f"{warning:,} of {topics} {_have(warning)}" if warning else "brokers or clusters have"
            return f"Nothing is critical; {who} warnings."
        if tone == "unknown":
            return (
                "No failures in the data that could be read, but some data is missing: compliance is not established."
            )
        if not total:
            return "Nothing failed."
        who = f"The one topic{where} meets" if total == 1 else f"All {total:,} topics{where} meet"
        if self.topics["EXEMPT"]:
            return f"{who} the policy, or {'is' if total == 1 else 'are'} exempt by a waiver."
        return f"{who} the policy's requirements."

    def _no_quorum(self) -> list[str]:
        """Says that without a quorum, facts about topics may be outdated: live brokers have no newer metadata."""
        named = joined(sorted(self.leaderless), limit=NAMED)
        return [f"No controller leads {named}: no leader can be elected, and no topic can be changed."]

    def _down(self) -> list[str]:
        """For example ["Down in my-demo: broker 5 and rack az1."]."""
        down = sorted((cluster, sorted(causes, key=_by_number)) for cluster, causes in self.down.items() if causes)
        each = [
            f"in {cluster}: {joined([_lower(cause_title(cause)) for cause in causes], limit=10)}"
            for cluster, causes in down[:NAMED]
        ]
        rest = [f"in {plural(len(down) - NAMED, 'more cluster')}"] if len(down) > NAMED else []
        return [f"Down {'; '.join([*each, *rest])}."] if each else []

    def _consequences(self) -> str:
        """For example ": 2 with offline partitions now and …"."""
        texts = {**ACTIVE, ONE_COPY: "with acknowledged writes that may be on one broker only"}
        said = [f"{len(self.topics[state]):,} {text}" for state, text in texts.items() if self.topics[state]]
        return f": {joined(said)}" if said else ""

    def _details(self, total: int, summary: Mapping[str, Any], snapshots: Sequence[Mapping[str, Any]]) -> list[str]:
        said = []
        if self._warning_only and self.topics["critical"]:
            said.append(f"{plural(self._warning_only, 'more topic has', 'more topics have')} warnings only.")
        clear = total - len(self.topics["critical"] | self.topics["warning"] | self.topics["UNKNOWN"])
        if 0 < clear < total:
            said.append(f"{plural(clear, 'topic has', 'topics have')} no critical, warning or unknown finding.")
        unknown = summary["outcomes"].get("UNKNOWN", 0)
        if unknown:
            said.append(f"{plural(unknown, 'verdict is', 'verdicts are')} unknown, which is not compliant.")
        if any(s["status"] != "accepted" for s in snapshots):
            said.append(_not_evaluated(snapshots))
        return said


def framework_note(run: Mapping[str, Any]) -> list[str]:
    """A sentence that says which framework a run's reports were cut to. Empty if they have all controls.

    >>> framework_note({"framework": {"id": "soc2", "title": "SOC 2", "controls": ["log-dirs", "rack-loss"]}})
    ['This report has only the 2 of ... controls that support SOC 2.']
    """
    framework = run.get("framework")
    if not framework:
        return []
    evaluated = sum(not control.planned for control in CONTROLS.values())
    some = f"{len(framework['controls'])} of {plural(evaluated, 'control')}"
    return [f"This report has only the {some} that support {framework['title']}."]


def _by_number(cause: str) -> tuple[str, int, str]:
    """A sort key that puts racks after brokers, and broker 10 after broker 2."""
    kind, _, name = cause.partition(":")
    return kind, int(name) if name.isascii() and name.isdecimal() else 0, name


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _not_evaluated(snapshots: Sequence[Mapping[str, Any]]) -> str:
    missing = [s["cluster"] for s in snapshots if s["status"] != "accepted"]
    if len(snapshots) == 1:
        return f"The only cluster could not be evaluated: {missing[0]}."
    return f"{len(missing):,} of {len(snapshots):,} clusters could not be evaluated: {joined(missing, limit=5)}."


def missed_objectives(document: Mapping[str, Any]) -> str | None:
    """A sentence about the missed objectives of a findings.json; None if none is missed.

    >>> missed_objectives({"objectives": [{"state": "missed", "tier": "critical", "harm": "writes", "loss": "broker"}]})
    'Objective missed over 30 days: critical (writes, loss of a broker).'
    """
    missed = [entry for entry in document.get("objectives") or () if entry["state"] == "missed"]
    each = [f"{entry['tier']} ({entry['harm']}, loss of a {entry['loss']})" for entry in missed]
    return f"Objective missed over 30 days: {joined(each, limit=NAMED)}." if each else None


def overview(document: Mapping[str, Any]) -> tuple[Headline, Causes]:
    """The headline and the causes of a findings.json, in one pass over its findings."""
    causes, status = Causes(), StatusCounter()
    for finding in document["findings"]:
        causes.add(finding)
        status.add(finding)
    return status.headline(document["summary"], document["run"]), causes
