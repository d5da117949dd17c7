"""Groups findings by cause, worst first. Findings with the same cause need one fix, that of the most urgent finding.

Memory grows with the number of resources, not of findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from durability.catalogue import CONTROLS
from durability.plain import plural
from durability.report.news import change_of
from durability.report.words import SEVERITIES, is_resolved

GROUPED = ("FAIL", "UNKNOWN", "EXEMPT")
HIGHEST = 1 << 17
"""Higher partition ids are kept in a set. A bit mask is as long as its highest id: id 2,000,000,000 would take 250 MB."""
MESSAGES = 50
"""The most different messages that a cause keeps."""
ACTIVE = {(control.id, category) for control in CONTROLS.values() for category in control.active}
"""(control, category) of the problems that reject reads or writes now."""
PRIORITIES = ("cluster", "now", *SEVERITIES, "proposed", "none")


def priority(finding: Mapping[str, Any]) -> str:
    """One of PRIORITIES.

    They are "cluster" for a problem that stops a whole cluster now, "now" for one that stops a part of it, the severities, and
    "proposed" for settings that no broker enforces yet.

    >>> offline = {"control": "partition-health", "category": "offline", "outcome": "FAIL", "severity": "critical"}
    >>> priority({**offline, "observed": {}})
    'now'
    """
    control, observed = finding["control"], finding["observed"]
    # A partition at min ISR whose leader waits for a dead broker is critical.
    waits = control == "partition-health" and finding["severity"] == "critical"
    active = waits or (control, finding["category"]) in ACTIVE
    loses_data = control in ("broker-loss", "rack-loss") and observed.get("breaks") == "data"
    if finding["outcome"] == "FAIL" and (active or (loses_data and observed.get("when") == "now")):
        # Without a controller quorum nothing else can be fixed.
        return "cluster" if finding.get("resource_type") == "cluster" else "now"
    known = CONTROLS.get(control)
    return "proposed" if known and known.proposal else finding["severity"] or "none"


def _urgency(priorities: Counter[str]) -> tuple[int, ...]:
    """A sort key. Ascending is most urgent first."""
    return tuple(-priorities[name] for name in PRIORITIES)


@dataclass
class Cause:
    """Findings of one outcome with one cause in one cluster. Findings with EXEMPT also have the same waiver.

    severities, controls, changes (`news.change_of`), messages: the number of findings by each.
    priorities: the number of findings by `priority`.
    remediations: by its text, the priorities of the findings that it fixes.
    example: place in PRIORITIES and message of the first of the most urgent findings.
    resources: by type and name, the partitions below HIGHEST as a bit mask.
    others: type, name and id of the other partitions.
    since: the earliest one.
    """

    cluster: str
    cause: str | None
    waiver: Mapping[str, Any] | None = None
    findings: int = 0
    severities: Counter[str | None] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)
    changes: Counter[str | None] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    priorities: Counter[str] = field(default_factory=Counter)
    remediations: dict[str, Counter[str]] = field(default_factory=dict)
    example: tuple[int, str] | None = None
    resources: dict[tuple[str, str], int] = field(default_factory=dict)
    others: set[tuple[str, str, int]] = field(default_factory=set)
    since: str | None = None

    def add(self, finding: Mapping[str, Any]) -> None:
        urgency, message = priority(finding), finding["message"]
        self.findings += 1
        self.severities[finding["severity"]] += 1
        self.priorities[urgency] += 1
        self.controls[finding["control"]] += 1
        self.changes[change_of(finding)] += 1
        if finding["remediation"]:
            self.remediations.setdefault(finding["remediation"], Counter())[urgency] += 1
        if message:
            if len(self.messages) < MESSAGES or message in self.messages:
                self.messages[message] += 1
            if self.example is None or PRIORITIES.index(urgency) < self.example[0]:
                self.example = (PRIORITIES.index(urgency), message)
        if finding["since"] and (self.since is None or finding["since"] < self.since):
            self.since = finding["since"]
        mask, key = 0, (finding["resource_type"], finding["resource"])
        for partition in finding["partitions"]:
            if partition < HIGHEST:
                mask |= 1 << partition
            else:
                self.others.add((*key, partition))
        self.resources[key] = self.resources.get(key, 0) | mask

    @property
    def severity(self) -> str | None:
        """The worst severity among the findings."""
        return next((s for s in SEVERITIES if self.severities[s]), None)

    @property
    def partitions(self) -> int:
        """The number of distinct partitions."""
        return sum(mask.bit_count() for mask in self.resources.values()) + len(self.others)

    @property
    def extent(self) -> str:
        """For example "12 findings on 3 topics, 14 partitions"."""
        topics = sum(kind == "topic" for kind, _ in self.resources)
        others = len(self.resources) - topics
        on = []
        if topics:
            on.append(plural(topics, "topic"))
        if others:
            on.append(plural(others, "other resource" if topics else "resource"))
        text = f"{plural(self.findings, 'finding')} on {' and '.join(on)}"
        return f"{text}, {plural(self.partitions, 'partition')}" if self.partitions else text

    @property
    def severity_counts(self) -> str:
        """For example "4 critical, 1 warning". Empty if no finding has a severity."""
        return ", ".join(f"{self.severities[s]:,} {s}" for s in SEVERITIES if self.severities[s])

    def names(self) -> list[str]:
        """All resources, sorted. Those that aren't topics have their type."""
        return [name if kind == "topic" else f"{kind} {name}" for kind, name in sorted(self.resources)]

    def first_remediations(self, limit: int) -> list[tuple[str, int]]:
        """Remediations with the number of findings that each fixes. The one with the most urgent findings comes first."""
        order = sorted(self.remediations.items(), key=lambda item: (_urgency(item[1]), item[0]))
        return [(text, fixed.total()) for text, fixed in order[:limit]]

    def first_messages(self, limit: int) -> list[tuple[str, int]]:
        """The most frequent messages with their counts."""
        return sorted(self.messages.items(), key=lambda item: (-item[1], item[0]))[:limit]

    @property
    def stops_cluster(self) -> bool:
        """Does it stop the whole cluster now, so that nothing else can be fixed first?"""
        return self.priorities["cluster"] > 0

    @property
    def order(self) -> tuple:
        """A sort key. Ascending is worst first: active problems, then the number of findings of each severity."""
        return (_urgency(self.priorities), -self.findings, self.cluster, self.cause or "")


class Causes:
    """Groups of findings by outcome, cluster and cause.

    ends: by index of a waiver, the day on which it first ends for what it exempts. In each tier it may end on another day.
    """

    def __init__(self, findings: Iterable[Mapping[str, Any]] = ()):
        self._groups: dict[tuple, Cause] = {}
        self.ends: dict[int, str] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: Mapping[str, Any]) -> None:
        """Count a finding. Resolved ones and COUNTED_ONLY outcomes are ignored."""
        if finding["outcome"] not in GROUPED or is_resolved(finding):
            return
        waiver = finding["waiver"] if finding["outcome"] == "EXEMPT" else None
        if waiver:
            index = waiver["index"]
            self.ends[index] = min(self.ends.get(index, waiver["expires"]), waiver["expires"])
        key = (finding["outcome"], finding["cluster"], finding["cause"], waiver and waiver["index"])
        if key not in self._groups:
            self._groups[key] = Cause(finding["cluster"], finding["cause"], waiver)
        self._groups[key].add(finding)

    def ranked(self, outcome: str) -> list[Cause]:
        """The causes of findings with this outcome, worst first."""
        return sorted((c for (found, *_), c in self._groups.items() if found == outcome), key=lambda c: c.order)
