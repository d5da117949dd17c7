"""Findings with one cause are one thing to do: groups of them, worst first, with the command that mends the gravest.

One pass over findings.json's entries, in any order and number; what is kept grows with resources, not with findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from durability.catalogue import CONTROLS
from durability.report.words import SEVERITIES, past, plural

# FAIL is to be mended, UNKNOWN to be found out, EXEMPT was accepted by somebody.
RANK = {"FAIL": 0, "UNKNOWN": 1, "EXEMPT": 2}
# A mask is as long as its highest id: a stated id of two thousand million would take 250 MB.
MASKED = 1 << 17
NOW = {(control.id, category) for control in CONTROLS.values() for category in control.active}
"""What is happening now, whatever else may happen: control and category."""


def priority(finding: dict) -> str:
    """What a finding weighs when one is put before another: "now", a severity, or "proposed" for what no broker enforces.

    >>> priority({"control": "partition-health", "category": "offline", "severity": "critical", "outcome": "FAIL"})
    'now'
    """
    if finding["outcome"] == "FAIL" and ((finding["control"], finding["category"]) in NOW or _loses_now(finding)):
        return "now"
    known = CONTROLS.get(finding["control"])
    return "proposed" if known and known.proposal else finding["severity"] or "none"


def _loses_now(finding: dict) -> bool:
    """Is losing one broker or rack enough, as things are now, to lose acknowledged data?"""
    observed = finding["observed"]
    return finding["control"] in ("broker-loss", "rack-loss") and (observed.get("breaks"), observed.get("when")) == (
        "data",
        "now",
    )


GRAVITIES = ("now", *SEVERITIES, "proposed", "none")


def _weights(priorities: Counter) -> tuple[int, ...]:
    """Ascending is gravest first."""
    return tuple(-priorities[g] for g in GRAVITIES)


@dataclass
class Cause:
    """What one cause brought about in one cluster, among findings of one outcome (EXEMPT: and of one waiver).

    `severities`: findings by severity; `priorities`: by `priority`; `controls`: by control id; `commands`: priorities of the
    findings that a remediation mends, by its text;
    `messages`: findings by message; `gravest`: place among GRAVITIES and message of the first of its gravest findings;
    `resources`: (type, name) to the partitions concerned, as a bit mask; `beyond`:
    partitions whose ids are too large for one.
    """

    cluster: str
    cause: str | None
    outcome: str
    waiver: dict | None = None
    findings: int = 0
    severities: Counter = field(default_factory=Counter)
    controls: Counter = field(default_factory=Counter)
    priorities: Counter = field(default_factory=Counter)
    commands: dict[str, Counter] = field(default_factory=dict)
    messages: Counter = field(default_factory=Counter)
    gravest: tuple[int, str] | None = None
    changes: Counter = field(default_factory=Counter)
    resources: dict[tuple[str, str], int] = field(default_factory=dict)
    beyond: set[tuple[str, int]] = field(default_factory=set)
    since: str | None = None

    def add(self, finding: dict) -> None:
        self.findings += 1
        weight = priority(finding)
        self.severities[finding["severity"]] += 1
        self.priorities[weight] += 1
        self.controls[finding["control"]] += 1
        self.changes[finding["change"]] += 1
        if finding["remediation"]:
            self.commands.setdefault(finding["remediation"], Counter())[weight] += 1
        if finding["message"] and (len(self.messages) < 50 or finding["message"] in self.messages):
            self.messages[finding["message"]] += 1
        if finding["message"] and (self.gravest is None or GRAVITIES.index(weight) < self.gravest[0]):
            self.gravest = (GRAVITIES.index(weight), finding["message"])
        if finding["since"] and (self.since is None or finding["since"] < self.since):
            self.since = finding["since"]
        mask = 0
        for partition in finding["partitions"]:
            if 0 <= partition < MASKED:
                mask |= 1 << partition
            else:
                self.beyond.add((finding["resource"], partition))
        key = (finding["resource_type"], finding["resource"])
        self.resources[key] = self.resources.get(key, 0) | mask

    @property
    def severity(self) -> str | None:
        """The worst one present."""
        return next((s for s in SEVERITIES if self.severities[s]), None)

    @property
    def topics(self) -> int:
        return sum(kind == "topic" for kind, _ in self.resources)

    @property
    def partitions(self) -> int:
        """Distinct partitions, whichever findings name them."""
        return sum(mask.bit_count() for mask in self.resources.values()) + len(self.beyond)

    @property
    def extent(self) -> str:
        """How far it reaches: "12 findings on 3 topics, 14 partitions"."""
        others = len(self.resources) - self.topics
        on = [plural(self.topics, "topic")] if self.topics else []
        on += [plural(others, "other resource" if self.topics else "resource")] if others else []
        text = f"{plural(self.findings, 'finding')} on {' and '.join(on)}"
        return f"{text}, {plural(self.partitions, 'partition')}" if self.partitions else text

    @property
    def weight(self) -> str:
        """Its findings by severity: "4 critical, 1 warning"; '' where none has one."""
        return ", ".join(f"{self.severities[s]:,} {s}" for s in SEVERITIES if self.severities[s])

    def names(self, limit: int) -> list[str]:
        """The first resources by name, topics as they are, others with their type."""
        return [name if kind == "topic" else f"{kind} {name}" for kind, name in sorted(self.resources)[:limit]]

    def first_commands(self, limit: int) -> list[tuple[str, int]]:
        """Remediations with the number of findings each mends; first the one that mends the gravest, then most."""
        order = sorted(self.commands.items(), key=lambda item: (_weights(item[1]), item[0]))
        return [(text, mends.total()) for text, mends in order[:limit]]

    def first_messages(self, limit: int) -> list[tuple[str, int]]:
        return sorted(self.messages.items(), key=lambda item: (-item[1], item[0]))[:limit]

    @property
    def order(self) -> tuple:
        """Ascending is worst first: outcome, what is happening now, then how many findings of each severity."""
        return (RANK[self.outcome], _weights(self.priorities), -self.findings, self.cluster, self.cause or "")


class Causes:
    """Groups by outcome, cluster and cause, filled one finding at a time."""

    def __init__(self, findings: Iterable[dict] = ()):
        self.groups: dict[tuple, Cause] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: dict) -> None:
        """Counts a finding; those of the past, and outcomes that are only counted, have no cause to show."""
        outcome = finding["outcome"]
        if outcome not in RANK or past(finding):
            return
        waiver = finding["waiver"] if outcome == "EXEMPT" else None
        key = (outcome, finding["cluster"], finding["cause"], waiver["index"] if waiver else None)
        if key not in self.groups:
            self.groups[key] = Cause(finding["cluster"], finding["cause"], outcome, waiver)
        self.groups[key].add(finding)

    def ranked(self, *outcomes: str) -> list[Cause]:
        """Worst first, of these outcomes (all if none is named)."""
        wanted = outcomes or tuple(RANK)
        return sorted((c for c in self.groups.values() if c.outcome in wanted), key=lambda c: c.order)
