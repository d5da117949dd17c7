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
from durability.topology.unreadable import tokens

GROUPS = (
    *("attempt_id", "cluster", "group", "type", "state", "in_transition", "stateful_tasks", "clients"),
    *("protocol_type", "protocol", "internal_topics", "unread"),
)
"""Columns of `groups` that are needed."""
CLUSTERS = ("attempt_id", "cluster", "unreadable")
"""Columns of `clusters` that are needed where the policy has applications."""
CONSUMERS = (None, "", "consumer", "streams")


def applications(groups: pa.Table, clusters: pa.Table | None, policy: Policy) -> pa.Table:
    """attempt_id, resource (group id), tier, placement (JSON; NULL: no Streams application).

    groups, clusters: rows of these tables with at least the columns above. A group of which nothing is known but that it
    could not be read (an `unreadable` path of the cluster) has a row too.
    """
    unread = _unreadable(clusters) if clusters is not None else {}
    rows = groups.select(GROUPS).to_pylist()
    listed = {(row["attempt_id"], row["group"]) for row in rows}
    for (attempt, group), (cluster, reason) in unread.items():
        if (attempt, group) not in listed and not group.isdigit():  # a number may be a place in a list
            rows.append({"attempt_id": attempt, "cluster": cluster, "group": group, "unread": reason})
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


def _unreadable(clusters: pa.Table) -> dict[tuple[str, str], tuple[str, str]]:
    """(attempt_id, group) -> (cluster, reason) for what `/streams/<group>` or `/groups/<group>` says is unreadable."""
    found = {}
    for row in clusters.select(CLUSTERS).to_pylist():
        for entry in row["unreadable"] or ():
            place = tokens(entry["path"]) or ()
            if len(place) > 1 and place[0] in ("streams", "groups"):
                found.setdefault((row["attempt_id"], place[1]), (row["cluster"], entry["reason"]))
    return found
