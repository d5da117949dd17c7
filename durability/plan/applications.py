"""The Streams applications of the judged snapshots: the policy's line for each, and the judgement on its placement.

Groups are few beside topics, and a judgement is small, so this stays in Python: it searches placements, see
`durability.streams.placement`.
"""

from __future__ import annotations

import json

import pyarrow as pa

from durability.policy.model import Policy
from durability.streams.judgement import judge

GROUP_COLUMNS = (
    *("attempt_id", "cluster", "group", "type", "state", "in_transition", "stateful_tasks", "clients"),
    *("protocol_type", "protocol", "internal_topics", "unread"),
)
"""Columns of `groups` that are needed."""
CONSUMERS = (None, "", "consumer", "streams")


def applications(groups: pa.Table, policy: Policy) -> dict[str, pa.Array]:
    """Of each row of `groups` (GROUP_COLUMNS): its `tier`, and its `placement` (JSON; NULL: no Streams application).

    Among them are groups of which nothing is known but that they could not be read.
    """
    tiers, placements = [], []
    for row in groups.select(GROUP_COLUMNS).to_pylist():
        line = policy.application_of(row["cluster"], row["group"])
        tiers.append(line.tier if line else None)
        # Connect's workers form groups as well.
        judged = judge(row, line) if row["protocol_type"] in CONSUMERS else None
        placements.append(None if judged is None else json.dumps(judged, separators=(",", ":")))
    return {"tier": pa.array(tiers, pa.string()), "placement": pa.array(placements, pa.string())}
