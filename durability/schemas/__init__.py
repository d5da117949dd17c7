"""JSON Schemas (draft 2020-12) of the public formats, generated from the code that reads and writes them.

The files in this folder are the same schemas, for editors: the shipped YAML files name them in their first line.
`python -m durability.schemas` writes them, and a test compares them with the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAMES = (
    *("topology", "policy", "waivers", "clusters", "frameworks"),
    *("findings", "plans", "whatif", "restart", "losses", "drill"),
    *("period", "sample", "evidence", "proof", "plan-of-change", "plan-before", "plan-applied"),
)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of the format of that name, one of NAMES; KeyError for another."""
    from durability.policy import formats
    from durability.schemas import change, evidence, findings, losses, results
    from durability.schemas.generate import file_schema, topology_schema

    if name == "topology":
        return topology_schema()
    roots = {
        "policy": formats.POLICY,
        "waivers": formats.WAIVERS,
        "clusters": formats.CLUSTERS,
        "frameworks": formats.FRAMEWORKS,
        "findings": findings.FINDINGS,
        "plans": results.PLANS,
        "whatif": results.WHATIF,
        "restart": results.RESTART,
        "losses": losses.LOSSES,
        "drill": results.DRILL,
        "period": evidence.PERIOD,
        "sample": evidence.SAMPLE,
        "evidence": evidence.EVIDENCE,
        "proof": evidence.PROOF,
        "plan-of-change": change.PLAN_OF_CHANGE,
        "plan-before": change.PLAN_BEFORE,
        "plan-applied": change.PLAN_APPLIED,
    }
    return file_schema(roots[name])


def file(name: str) -> Path:
    """The path of its file."""
    return Path(__file__).with_name(f"{name}.json")
