"""The Streams applications of the judged snapshots: the policy's line for each, and the judgement on its placement.

One row of `resolved_policy` a group. Groups are few beside topics, and a judgement is small, so this stays in Python: it
searches placements, see `durability.streams.placement`.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from durability.policy.model import Policy
from durability.streams.judgement import judge

GROUPS = (
    *("attempt_id", "cluster", "group", "type", "state", "in_transition", "stateful_tasks", "clients"),
    *("protocol_type", "protocol", "internal_topics", "unread"),
)
"""Columns of `groups` that are needed."""
CONSUMERS = (None, "", "consumer", "streams")


def applications(groups: pa.Table, policy: Policy) -> pa.Table:
    """attempt_id, resource (group id), tier, placement (JSON; NULL: no Streams application).

    groups: rows of that table with at least the columns above; among them are groups of which nothing is known but that
    they could not be read.
    """
    rows = groups.select(GROUPS).to_pylist()
    return pa.table(
        {
            "attempt_id": pa.array([r["attempt_id"] for r in rows], pa.string()),
            "resource": pa.array([r["group"] for r in rows], pa.string()),
            **_judged(rows, policy),
        }
    )


def _judged(rows: list[dict[str, Any]], policy: Policy) -> dict[str, pa.Array]:
    tiers, placements = [], []
    for row in rows:
        line = policy.application_of(row["cluster"], row["group"])
        other = row.get("protocol_type") not in CONSUMERS  # Connect's workers form groups as well
        tiers.append(line.tier if line else None)
        judged = None if other else judge(row, line)
        placements.append(None if judged is None else json.dumps(judged, separators=(",", ":")))
    return {"tier": pa.array(tiers, pa.string()), "placement": pa.array(placements, pa.string())}
