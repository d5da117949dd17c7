"""Holds the findings of two versions of this program against each other: all but their texts must be equal.

    python -m bench.same_findings BEFORE.json AFTER.json

Both are findings.json files of an audit of the same input with the same policy. Prints what differs; exit status 1 if anything
does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from durability.report.files import load

TEXTS = ("message", "remediation")
"""What a finding says, which may change."""
OF_THE_RUN = ("since",)
"""Of a first run when its input was captured: equal for documents, not for a live cluster."""
KEY = ("cluster", "control", "resource_type", "resource", "category", "id")
SHOWN = 20


def differences(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each finding that only one side has, and for each member in which both sides' finding differs.

    >>> one = dict.fromkeys(KEY) | {"control": "log-dirs", "outcome": "FAIL", "message": "off"}
    >>> differences([one], [one | {"message": "offline"}])
    []
    >>> differences([one], [one | {"outcome": "PASS"}])
    ["log-dirs: outcome: 'FAIL' -> 'PASS'"]
    """
    sides = [{tuple(f[k] for k in KEY): f for f in findings} for findings in (before, after)]
    lines = [f"{_name(key)}: only before" for key in sides[0].keys() - sides[1].keys()]
    lines += [f"{_name(key)}: only after" for key in sides[1].keys() - sides[0].keys()]
    for key in sides[0].keys() & sides[1].keys():
        old, new = sides[0][key], sides[1][key]
        names = [n for n in old.keys() | new.keys() if n not in (*TEXTS, *OF_THE_RUN) and old.get(n) != new.get(n)]
        lines += [f"{_name(key)}: {n}: {old.get(n)!r} -> {new.get(n)!r}" for n in sorted(names)]
    return sorted(lines)


def _name(key: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in (key[0], key[1], key[3], key[4]) if part)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    before, after = load(given.before), load(given.after)
    lines = differences(before["findings"], after["findings"])
    counts = {
        name: (before["summary"][name], after["summary"][name]) for name in ("outcomes", "severities", "resources")
    }
    lines += [f"summary {name}: {old} -> {new}" for name, (old, new) in counts.items() if old != new]
    print("\n".join(lines[:SHOWN]))
    print(f"{len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
