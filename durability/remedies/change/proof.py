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
HEALTH, AT_MIN = "partition-health", "at-min-isr"
HEALTH_ORDER = {"offline": 3, "under-min-isr": 2, "at-min-isr": 1, "under-replicated": 1}
"""Categories of partition-health, the worst first. A partition that is at its min ISR and not under-replicated has all its
replicas in sync, so it isn't better off under-replicated."""
LOSSES = ("broker-loss", "rack-loss")
"""Controls that leave out partitions that are broken already."""
Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Proof:
    """mends: targeted findings that are gone. remains: those that aren't, with the reason. new: findings that refute the plan:
    those that are new or worse, apart from what is left of worse ones. harms: what steps would do on the way. improves: all
    findings that are gone or less bad, at least for some partitions, targeted or not. cross_checked: did the cross-check
    confirm the findings before the plan? offered: may the plan be offered?"""

    mends: tuple[str, ...] = ()
    remains: tuple[tuple[str, str], ...] = ()
    new: tuple[Finding, ...] = ()
    harms: tuple[str, ...] = ()
    offered: bool = False
    improves: tuple[str, ...] = ()
    cross_checked: bool = False


def severity_rank(finding: Finding | None) -> int:
    """How bad a finding is: a known critical or warning failure, then what is unknown, then an info; 0 if it isn't open.

    >>> [severity_rank({"outcome": "FAIL", "severity": s}) for s in ("critical", "warning", "info")]
    [4, 3, 1]
    >>> [severity_rank({"outcome": o, "severity": None}) for o in ("UNKNOWN", "EXEMPT")], severity_rank(None)
    ([2, 0], 0)
    """
    if finding is None or finding["outcome"] not in OPEN:
        return 0
    if finding["outcome"] == "UNKNOWN":
        return 2
    return {"critical": 4, "warning": 3}.get(finding["severity"] or "", 1)


def _states(findings: Iterable[Finding]) -> dict[tuple[str, int], tuple[int, int]]:
    """By topic and partition, the worst category of partition-health that is known, as in HEALTH_ORDER, and `severity_rank`."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for finding in filter(_of_health, findings):
        state = HEALTH_ORDER[finding["category"]], severity_rank(finding)
        for partition in finding["partitions"]:
            key = finding["resource"], partition
            known = found.get(key, state)
            found[key] = max(known[0], state[0]), max(known[1], state[1])
    return found


def _of_health(finding: Finding) -> bool:
    """Is it a failure of partition-health that names its partitions? Their list is whole."""
    of_topic = (finding["control"], finding["resource_type"], finding["outcome"]) == (HEALTH, "topic", "FAIL")
    return of_topic and finding.get("category") in HEALTH_ORDER and bool(finding["partitions"])


def _lagging(findings: Iterable[Finding]) -> set[tuple[str, int]]:
    """The partitions, by topic and number, that a finding of partition-health names as under-replicated."""
    of_lag = [one for one in findings if _of_health(one) and one["category"] == "under-replicated"]
    return {(one["resource"], partition) for one in of_lag for partition in one["partitions"]}


def _is_worse(
    finding: Finding,
    earlier: Finding | None,
    was: Mapping[tuple[str, int], tuple[int, int]],
    then: Mapping[tuple[str, int], tuple[int, int]],
    lagging: Collection[tuple[str, int]] = (),
) -> bool:
    """Is a finding after the plan new or worse, for any partition that it names?

    earlier: the finding with its id before the plan. was, then: `_states` before and after. lagging: `_lagging` after.

    partition-health has a finding per category. A partition that was under its min ISR and is at it afterwards moves from one
    finding to another, which is no new problem. A control with one finding may list only the partitions of its worst category,
    so lists of different categories can't be compared.
    """
    difference = severity_rank(finding) - severity_rank(earlier)
    listed = set() if earlier is None else {*(earlier["partitions"] or ())}
    named = {*(finding["partitions"] or ())}
    if _of_health(finding):
        keys = [(finding["resource"], partition) for partition in (named if difference > 0 else named - listed)]
        if finding["category"] == AT_MIN and earlier is not None and any(key in lagging for key in keys):
            # It is worse for those whose ISR shrank. The others have all replicas in sync: no worse than when it named them.
            keys = [key for key in keys if key in lagging or key[1] not in listed]
        return not all(key in was and then[key][0] < was[key][0] and then[key][1] < was[key][1] for key in keys)
    if difference or earlier is None:
        return difference > 0
    if finding["control"] in LOSSES:
        named -= {p for p in named if _recovers(was.get((finding["resource"], p)), then.get((finding["resource"], p)))}
    return finding.get("category") == earlier.get("category") and bool(listed) and not named <= listed


def _recovers(was: tuple[int, int] | None, then: tuple[int, int] | None) -> bool:
    """Was the partition offline or under its min ISR, and is it better off afterwards? Until then no loss is charged with it."""
    return was is not None and was[0] >= HEALTH_ORDER["under-min-isr"] and (then is None or then[0] < was[0])


def _is_better(finding: Finding, later: Finding | None) -> bool:
    """Is a finding before the plan gone, less bad, or about partitions that it doesn't name afterwards?

    later: the finding with its id after the plan. One of partition-health can be worse then, because of other partitions.
    """
    less = severity_rank(finding) - severity_rank(later)
    if later is None or less > 0 or (less < 0 and not _of_health(finding)):
        return less > 0
    named, left = ({*(one["partitions"] or ())} for one in (finding, later))
    return finding.get("category") == later.get("category") and bool(left) and not named <= left


def compare(
    before: Mapping[str, Finding],
    after: Mapping[str, Finding],
    closed: Collection[str],
    targets: Sequence[str],
    why: Callable[[Finding, Finding | None], str],
    harms: Sequence[str] = (),
    allowed: Collection[str] | None = None,
    steps: bool = True,
    disputed: Collection[str] = (),
) -> Proof:
    """The proof of a plan.

    before, after: open findings by id. closed: ids that are shown not to be open after the plan: a missing verdict fixes nothing.
    targets: ids of those that the plan is for. why: why one of these remains, by what it is before and after. allowed: of a
    plan that takes an earlier one back, the ids that may come back; None for another plan, which must fix one of its targets.
    steps: has the plan any? disputed: ids that the cross-check disputes before the plan; they are never fixed.
    """
    was, then, lagging = _states(before.values()), _states(after.values()), _lagging(after.values())
    worse = [
        finding
        for id, finding in after.items()
        if id not in (allowed or ())
        and finding["control"] not in OVER_TIME
        and _is_worse(finding, before.get(id), was, then, lagging)
    ]
    improves = [
        id
        for id, finding in before.items()
        if _is_better(finding, after.get(id))
        and (id in after or id in closed)
        and finding["control"] not in OVER_TIME
        and id not in disputed
    ]
    gone = {id for id in improves if not severity_rank(after.get(id))}
    mends = [id for id in targets if id in gone]

    def reason(id: str) -> str:
        if before[id]["control"] in OVER_TIME:
            return LATER
        return DISPUTED if id in disputed else why(before[id], after.get(id))

    remains = [(id, reason(id)) for id in targets if id not in gone]
    worse.sort(key=lambda finding: (-severity_rank(finding), finding["control"], finding["resource"]))
    offered = steps and not worse and not harms and (bool(mends) or allowed is not None)
    return Proof(tuple(mends), tuple(remains), tuple(worse), tuple(harms), offered, tuple(improves))
