"""Compares the findings before a plan with those of the planned topology, judged by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OVER_TIME = ("at-min-isr-over-time",)
"""Controls that need several snapshots. A planned topology can't show that they pass."""
LATER = "It is about several snapshots: later audits show whether it is gone"
DISPUTED = "Spark and the cross-check disagree about it, so a plan can't prove that it is fixed"
OPEN = ("FAIL", "UNKNOWN")
Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Proof:
    """mends: targeted findings that are gone. remains: those that aren't, with the reason. new: findings that refute the plan:
    those that are new or worse, apart from what is left of graver ones. harms: what steps would do on the way. improves: all
    findings that are gone or less bad, targeted or not. cross_checked: did the cross-check confirm the findings before the plan?
    offered: may the plan be offered?"""

    mends: tuple[str, ...] = ()
    remains: tuple[tuple[str, str], ...] = ()
    new: tuple[Finding, ...] = ()
    harms: tuple[str, ...] = ()
    offered: bool = False
    improves: tuple[str, ...] = ()
    cross_checked: bool = False


def gravity(finding: Finding | None) -> int:
    """How bad a finding is: a known critical or warning failure, then what is unknown, then an info; 0 if it isn't open.

    >>> [gravity({"outcome": "FAIL", "severity": s}) for s in ("critical", "warning", "info")]
    [4, 3, 1]
    >>> gravity({"outcome": "UNKNOWN", "severity": None}), gravity({"outcome": "EXEMPT", "severity": None}), gravity(None)
    (2, 0, 0)
    """
    if finding is None or finding["outcome"] not in OPEN:
        return 0
    if finding["outcome"] == "UNKNOWN":
        return 2
    return {"critical": 4, "warning": 3}.get(finding["severity"] or "", 1)


def _by_partition(findings: Iterable[Finding]) -> dict[tuple[Any, ...], int]:
    """By control, resource and partition, the gravity of the worst finding that names the partition."""
    found: dict[tuple[Any, ...], int] = {}
    for finding in findings:
        for partition in _partitions(finding):
            found[partition] = max(found.get(partition, 0), gravity(finding))
    return found


def _partitions(finding: Finding) -> list[tuple[Any, ...]]:
    resource = (finding["control"], finding["resource_type"], finding["resource"])
    return [(*resource, partition) for partition in finding["partitions"] or ()]


def _improvement(finding: Finding, was: Mapping[tuple[Any, ...], int], then: Mapping[tuple[Any, ...], int]) -> bool:
    """Is a finding that is new or worse only what is left of graver ones?

    Some controls have a finding per category. A partition that was under its min ISR and is at it afterwards moves from one
    finding to another. Each partition that the finding names must be better off under its control than before.
    """
    partitions = _partitions(finding)
    better = all(then[partition] < was.get(partition, 0) for partition in partitions)
    return finding["outcome"] == "FAIL" and bool(partitions) and better


def compare(
    before: Mapping[str, Finding],
    after: Mapping[str, Finding],
    closed: Collection[str],
    targets: Sequence[str],
    why: Callable[[Finding], str],
    harms: Sequence[str] = (),
    allowed: Collection[str] | None = None,
    steps: bool = True,
    disputed: Collection[str] = (),
) -> Proof:
    """The proof of a plan.

    before, after: open findings by id. closed: ids that are shown not to be open after the plan: a missing verdict fixes nothing.
    targets: ids of those that the plan is for. why: why one of these remains. allowed: of a plan that takes an earlier one back,
    the ids that may come back; None for another plan, which must fix one of its targets. steps: has the plan any?
    disputed: ids that the cross-check disputes before the plan; they are never fixed.
    """
    was, then = _by_partition(before.values()), _by_partition(after.values())
    worse = [
        finding
        for id, finding in after.items()
        if gravity(finding) > gravity(before.get(id))
        and id not in (allowed or ())
        and finding["control"] not in OVER_TIME
        and not _improvement(finding, was, then)
    ]
    improves = [
        id
        for id, finding in before.items()
        if gravity(after.get(id)) < gravity(finding)
        and (id in after or id in closed)
        and finding["control"] not in OVER_TIME
        and id not in disputed
    ]
    gone = {id for id in improves if not gravity(after.get(id))}
    mends = [id for id in targets if id in gone]

    def reason(id: str) -> str:
        if before[id]["control"] in OVER_TIME:
            return LATER
        return DISPUTED if id in disputed else why(before[id])

    remains = [(id, reason(id)) for id in targets if id not in gone]
    worse.sort(key=lambda finding: (-gravity(finding), finding["control"], finding["resource"]))
    offered = steps and not worse and not harms and (bool(mends) or allowed is not None)
    return Proof(tuple(mends), tuple(remains), tuple(worse), tuple(harms), offered, tuple(improves))
