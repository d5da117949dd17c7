"""Computes the exit status from the findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from pathlib import Path
from typing import Any

from durability.errors import BadInput
from durability.report.news import rank, worsened

DONE, REACHED, INCOMPLETE = 0, 1, 2

CRITICAL = {("FAIL", "critical")}
WARNING = CRITICAL | {("FAIL", "warning")}
COUNTED: Mapping[str, AbstractSet[tuple[str, str | None]]] = {
    "never": set(),
    "critical": CRITICAL,
    "warning": WARNING,
    "unknown": WARNING | {("UNKNOWN", None)},
}


class FailOn(StrEnum):
    """Which findings make the exit status 1."""

    NEVER = "never"
    CRITICAL = "critical"
    WARNING = "warning"
    UNKNOWN = "unknown"
    NEW_CRITICAL = "new-critical"
    NEW_WARNING = "new-warning"
    NEW_UNKNOWN = "new-unknown"

    @property
    def new_only(self) -> bool:
        return self.value.startswith("new-")

    def counts(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding is open and at least this severe (critical, warning, unknown), new or not.

        Resolved findings and accepted risks (EXEMPT) don't count.
        """
        outcome = finding["outcome"]
        severity = finding["severity"] if outcome == "FAIL" else None
        counted = COUNTED[self.value.removeprefix("new-")]
        return finding.get("change") != "resolved" and (outcome, severity) in counted


def reached(findings: Iterable[Mapping[str, Any]], fail_on: FailOn, known: Mapping[str, int] | None = None) -> bool:
    """Whether at least one finding counts for `fail_on`.

    known: findings of a baseline (`known_findings`), which don't count again unless they are worse now. Without a baseline, the
        new-... levels count findings that the cluster's last run in the lake didn't have, or had as unknown, less severe or
        accepted.

    >>> failing = {"id": "a", "outcome": "FAIL", "severity": "warning", "change": "persisting"}
    >>> reached([failing], FailOn.CRITICAL), reached([failing], FailOn.UNKNOWN), reached([failing], FailOn.NEVER)
    (False, True, False)
    >>> reached([failing], FailOn.NEW_WARNING), reached([failing], FailOn.NEW_WARNING, known={})
    (False, True)
    >>> reached([{**failing, "previous_outcome": "UNKNOWN"}], FailOn.NEW_WARNING)
    True
    """
    counted = (f for f in findings if fail_on.counts(f))
    if known is not None:
        return any(rank(f["outcome"], f["severity"]) > known.get(f["id"], 0) for f in counted)
    return any(f["change"] == "new" or worsened(f) or not fail_on.new_only for f in counted)


def known_findings(baseline: Path, fail_on: FailOn) -> dict[str, int]:
    """The findings in an earlier findings.json that count for `fail_on`: by id, how bad each was (`news.rank`).

    A finding that was waived or resolved in it, or less severe than this level, isn't known. If it counts now, it is new.
    Raises BadInput if the file isn't a findings.json.
    """
    from durability.report.files import load

    try:
        return {f["id"]: rank(f["outcome"], f["severity"]) for f in load(baseline)["findings"] if fail_on.counts(f)}
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise BadInput(baseline, "/findings", "expected findings with id, outcome and severity") from None
