"""Compares the findings of two versions of this program. Everything but their texts must be equal.

    python -m bench.same_findings BEFORE.json AFTER.json

Both are findings.json files of an audit of the same input with the same policy. Exit status 1 if anything differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from durability.report.files import load

NOT_COMPARED = {"message", "remediation", "since"}
"""`since` of a first run is the time of its input, which is equal for documents, but not for a live cluster."""
KEY = ("cluster", "control", "resource_type", "resource", "category", "id")
SHOWN = 20


def differences(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each differing member of a finding. A finding that only one side has differs in all members.

    >>> one = dict.fromkeys(KEY) | {"control": "log-dirs", "outcome": "FAIL", "message": "off"}
    >>> differences([one], [one | {"message": "offline"}])
    []
    >>> differences([one], [one | {"outcome": "PASS"}])
    ["log-dirs: outcome: 'FAIL' -> 'PASS'"]
    """
    old, new = _by_key(before), _by_key(after)
    lines = []
    for key in old.keys() | new.keys():
        one, other = old.get(key, {}), new.get(key, {})
        name = " ".join(str(part) for part in (key[0], key[1], key[3], key[4]) if part)
        members = (one.keys() | other.keys()) - NOT_COMPARED
        lines += [f"{name}: {m}: {one.get(m)!r} -> {other.get(m)!r}" for m in members if one.get(m) != other.get(m)]
    return sorted(lines)


def _by_key(findings: Iterable[Mapping[str, Any]]) -> dict[tuple, Mapping[str, Any]]:
    return {tuple(finding[name] for name in KEY): finding for finding in findings}


def main(before: str, after: str) -> int:
    old, new = load(Path(before)), load(Path(after))
    lines = differences(old["findings"], new["findings"])
    for name in ("outcomes", "severities", "resources"):
        if old["summary"][name] != new["summary"][name]:
            lines.append(f"summary {name}: {old['summary'][name]} -> {new['summary'][name]}")
    print("\n".join(lines[:SHOWN]))
    print(f"{len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
