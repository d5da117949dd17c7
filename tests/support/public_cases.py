"""Clusters from public bug reports, incident reports and support questions, and what an audit must say of each.

The cases in VARIANTS are of the same kinds with other details: releases, vendors' versions, states, applications.

`expected.json` of a case has `findings`, each met by one finding that has what it states, `absent`, what no finding may have, and
`why`. outcome and any_category: choices. observed, required: subsets. cause, message: regular expressions. `remediation`: `says`,
`runs` and `never_runs` are regular expressions on the text and on the lines that bash would run. `plans_exist`: the plan files
that it names are there. `plans_avoid`: brokers that are in none of these plans, nor in the plan of a script that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import ROOT

FOLDER = ROOT / "tests" / "data" / "public_cases"
VARIANTS = ROOT / "tests" / "data" / "variants"
CASES = sorted(path.parent for folder in (FOLDER, VARIANTS) for path in folder.glob("*/expected.json"))
KEYS = ("cluster", "control", "resource")


def differences(case: Path, findings: list[dict], out: Path) -> list[str]:
    """How the findings of an audit whose reports are in `out` differ from what the case expects."""
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    present = [finding for finding in findings if finding["change"] != "resolved"]
    found = [text for want in expected["findings"] for text in _unmet(want, present, out)]
    for unwanted in expected.get("absent", []):
        found += [f"unwanted: {_name(f)}: {f['message']}" for f in present if unwanted.items() <= f.items()]
    return found


def _name(of: Mapping[str, Any]) -> str:
    return "/".join(str(of[key]) for key in (*KEYS, "category") if of.get(key))


def _unmet(want: dict, present: list[dict], out: Path) -> list[str]:
    """Why no finding meets `want`: the differences of the nearest one, empty if one does."""
    near = [f for f in present if all(want.get(key) in (None, f[key]) for key in KEYS)]
    near = [f for f in near if f["category"] == want.get("category")] or near
    if not near:
        return [f"{_name(want)}: no finding"]
    return min((list(_faults(want, finding, out)) for finding in near), key=len)


def _faults(want: dict, finding: dict, out: Path) -> Iterator[str]:
    name = _name(want)
    outcomes = want.get("outcome", finding["outcome"])
    if finding["outcome"] not in (outcomes if isinstance(outcomes, list) else [outcomes]):
        yield f"{name}: outcome {finding['outcome']}, not {outcomes}"
    for member in ("severity", "category", "tier"):
        if member in want and finding[member] != want[member]:
            yield f"{name}: {member} {finding[member]}, not {want[member]}"
    if "any_category" in want and finding["category"] not in want["any_category"]:
        yield f"{name}: category {finding['category']}, none of {want['any_category']}"
    if "not_category" in want and finding["category"] == want["not_category"]:
        yield f"{name}: category {finding['category']}"
    if "partitions" in want and sorted(finding["partitions"] or ()) != sorted(want["partitions"]):
        yield f"{name}: partitions {finding['partitions']}, not {want['partitions']}"
    for member in ("observed", "required"):
        if not _subset(want.get(member, {}), finding[member]):
            yield f"{name}: {member} {finding[member]} lacks {want[member]}"
    for member in ("cause", "message"):
        if not re.search(want.get(member, ""), finding[member] or ""):
            yield f"{name}: {member} {finding[member]!r} isn't like /{want[member]}/"
    yield from (f"{name}: {fault}" for fault in _remedy_faults(want.get("remediation", {}), finding, out))


def _subset(wanted: Any, there: Any) -> bool:
    if isinstance(wanted, dict):
        return not wanted or (isinstance(there, dict) and all(_subset(v, there.get(k)) for k, v in wanted.items()))
    return wanted == there


def _remedy_faults(want: dict, finding: dict, out: Path) -> Iterator[str]:
    text = finding["remediation"] or ""
    run = [line.strip() for line in text.splitlines() if re.match(r"\s*kafka-[a-z-]+ ", line)]
    for pattern in want.get("says", []):
        if not re.search(pattern, text):
            yield f"the remedy doesn't say /{pattern}/: {text!r}"
    for pattern in want.get("runs", []):
        if not any(re.search(pattern, line) for line in run):
            yield f"the remedy runs nothing like /{pattern}/: {text!r}"
    for pattern in want.get("never_runs", []):
        yield from (f"the remedy runs {line!r}" for line in run if re.search(pattern, line))
    if want.get("plans_exist"):
        named = sorted(set(re.findall(r"plans/\S+\.json", text)))
        yield from (f"the remedy names {name}, which isn't there" for name in named if not (out / name).exists())
    for name in re.findall(r"plans/\S+\.(?:json|sh)", text) if want.get("plans_avoid") else ():
        plan = json.loads((out / name).with_suffix(".json").read_text(encoding="utf-8"))
        used = {broker for partition in plan["partitions"] for broker in partition["replicas"]}
        if used & set(want["plans_avoid"]):
            yield f"{name} has replicas on {sorted(used & set(want['plans_avoid']))}"
