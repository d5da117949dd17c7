"""Compares the findings before a plan with those of the planned topology, judged by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OVER_TIME = ("at-min-isr-over-time",)
"""Controls that need several snapshots. A planned topology can't show that they pass."""
LATER = "It is about several snapshots: later audits show whether it is gone"
OPEN = ("FAIL", "UNKNOWN")
Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Proof:
    """mends: targeted findings that are gone. remains: those that aren't, with the reason. new: findings that refute the plan:
    those that are new or worse. harms: what steps would do on the way. offered: may the plan be offered?"""

    mends: tuple[str, ...] = ()
    remains: tuple[tuple[str, str], ...] = ()
    new: tuple[Finding, ...] = ()
    harms: tuple[str, ...] = ()
    offered: bool = False


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


def compare(
    before: Mapping[str, Finding],
    after: Mapping[str, Finding],
    targets: Sequence[str],
    why: Callable[[Finding], str],
    harms: Sequence[str] = (),
    allowed: Collection[str] | None = None,
    steps: bool = True,
) -> Proof:
    """The proof of a plan.

    before, after: open findings by id. targets: ids of those that the plan is for. why: why one of these remains.
    allowed: of a plan that takes an earlier one back, the ids that may come back; None for another plan, which must fix one of
    its targets. steps: has the plan any?
    """
    worse = [
        finding
        for id, finding in after.items()
        if gravity(finding) > gravity(before.get(id))
        and id not in (allowed or ())
        and finding["control"] not in OVER_TIME
    ]
    mends = [id for id in targets if not gravity(after.get(id)) and before[id]["control"] not in OVER_TIME]
    gone = set(mends)
    remains = [
        (id, LATER if before[id]["control"] in OVER_TIME else why(before[id])) for id in targets if id not in gone
    ]
    worse.sort(key=lambda finding: (-gravity(finding), finding["control"], finding["resource"]))
    offered = steps and not worse and not harms and (bool(mends) or allowed is not None)
    return Proof(tuple(mends), tuple(remains), tuple(worse), tuple(harms), offered)
