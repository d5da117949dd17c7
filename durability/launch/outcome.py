"""From what a run found to an exit status."""

from __future__ import annotations

from collections.abc import Iterable

DONE, REACHED, INCOMPLETE = 0, 1, 2


def reached(findings: Iterable[dict], fail_on: str) -> bool:
    """Whether a finding is as grave as `fail_on`, or graver: critical, then warning, then unknown.

    Resolved findings and accepted risks (EXEMPT) don't count.

    >>> reached([{"outcome": "FAIL", "severity": "warning", "change": "new"}], "critical")
    False
    >>> reached([{"outcome": "FAIL", "severity": "warning", "change": "new"}], "unknown")
    True
    >>> reached([{"outcome": "UNKNOWN", "severity": None, "change": "new"}], "never")
    False
    """
    counted = {
        "critical": {("FAIL", "critical")},
        "warning": {("FAIL", "critical"), ("FAIL", "warning")},
        "unknown": {("FAIL", "critical"), ("FAIL", "warning"), ("UNKNOWN", None)},
        "never": set(),
    }[fail_on]
    for finding in findings:
        outcome = finding["outcome"]
        severity = finding["severity"] if outcome == "FAIL" else None
        if finding.get("change") != "resolved" and (outcome, severity) in counted:
            return True
    return False
