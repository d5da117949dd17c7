"""Streams applications (KIP-708): the tasks that lose their active and all standbys with one value of a tag."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

COLUMNS = ("cluster", "resource", "tier", "placement")
"""The columns of `resolved_policy` that are read."""


def applications(resolved: pa.Table) -> list[dict[str, Any]]:
    """Entries of findings.json for the applications that a line of the policy matches, most lost tasks at once first.

    resolved: their rows of `resolved_policy`.

    Members of an entry:

    - `unknown`: why it can't be evaluated, or null.
    - `standby_replicas`: of the task with the fewest.
    - `losses`: `tag`, `value`, `count` of the lost tasks, and `tasks`, some of them. `active` and `standby`:
      how many of each are on clients with the value.
    """
    found = [
        {
            "cluster": row["cluster"],
            "group": row["resource"],
            "type": placement.get("type"),
            "tier": row["tier"],
            "unknown": placement.get("unknown"),
            "clients": placement.get("clients"),
            "stateful_tasks": placement.get("tasks"),
            "standby_replicas": placement.get("standbys"),
            "rack_aware_tags": placement["rack_aware_tags"],
            "losses": placement.get("losses", []),
        }
        for row in resolved.to_pylist()
        if (placement := json.loads(row["placement"] or "{}")).get("rack_aware_tags") is not None
    ]
    return sorted(found, key=lambda a: (-max((x["count"] for x in a["losses"]), default=0), a["cluster"], a["group"]))
