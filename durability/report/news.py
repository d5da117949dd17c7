"""What a finding was in the last run, and whether it is worse now.

`change` of a finding that was listed before is persisting, even if it was UNKNOWN, a warning or an accepted risk. Reports treat
one that got worse as news.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORSENED = "worsened"
"""What `change_of` returns for a persisting finding that is worse now. findings.json has no such value."""
_RANKS = {("FAIL", "critical"): 4, ("FAIL", "warning"): 3, ("FAIL", "info"): 2, ("UNKNOWN", None): 1}
"""By outcome and severity: higher is worse. What isn't in it, for example EXEMPT, is 0."""


def rank(outcome: str | None, severity: str | None) -> int:
    """How bad a finding is. Higher is worse.

    >>> rank("FAIL", "critical") > rank("FAIL", "info") > rank("UNKNOWN", None) > rank("EXEMPT", "critical")
    True
    """
    return _RANKS.get((outcome or "", severity if outcome == "FAIL" else None), 0)


def worsened(finding: Mapping[str, Any]) -> bool:
    """Is it a failure that the last run listed as UNKNOWN, as less severe or as accepted?

    False if the run before didn't list it (it is new then), and for files and lakes without `previous_outcome`.

    >>> now = {"outcome": "FAIL", "severity": "critical", "change": "persisting"}
    >>> worsened({**now, "previous_outcome": "UNKNOWN", "previous_severity": None})
    True
    >>> worsened({**now, "previous_outcome": "FAIL", "previous_severity": "critical"}), worsened(now)
    (False, False)
    """
    before = finding.get("previous_outcome")
    if finding["outcome"] != "FAIL" or finding["change"] != "persisting" or before is None:
        return False
    return rank("FAIL", finding["severity"]) > rank(before, finding.get("previous_severity"))


def change_of(finding: Mapping[str, Any]) -> str | None:
    """`change`, or WORSENED."""
    return WORSENED if worsened(finding) else finding["change"]


def previous(finding: Mapping[str, Any]) -> str:
    """What a finding was in the last run, in a word.

    >>> previous({"previous_outcome": "FAIL", "previous_severity": "warning"})
    'warning'
    >>> previous({"previous_outcome": "UNKNOWN", "previous_severity": None}), previous({"previous_outcome": "EXEMPT"})
    ('unknown', 'accepted')
    """
    outcome = finding.get("previous_outcome")
    if outcome == "FAIL":
        return finding["previous_severity"] or "warning"
    return "accepted" if outcome == "EXEMPT" else "unknown"


def worsened_total(summary: Mapping[str, Any]) -> int:
    """The number of failures that got worse, from a findings.json's `summary`. 0 if an earlier version wrote it."""
    return sum(summary.get("worsened_failures", {}).values())
