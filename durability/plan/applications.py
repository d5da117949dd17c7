"""Tier and placement of the Streams applications in the evaluated snapshots.

This runs in Python, because judging a placement is a search (`durability.streams.placement`) and groups are few.
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
"""The columns of `groups` that this module reads."""
CONSUMERS = (None, "", "consumer", "streams")


def applications(groups: pa.Table, policy: Policy) -> dict[str, pa.Array]:
    """Two columns, `tier` and `placement`, with one value per row of `groups` (GROUP_COLUMNS).

    `placement` is JSON. It is NULL for a group that is no Streams application.
    `groups` has rows for groups that could not be read.
    """
    tiers, placements = [], []
    for row in groups.select(GROUP_COLUMNS).to_pylist():
        line = policy.application_of(row["cluster"], row["group"])
        tiers.append(line.tier if line else None)
        # Kafka Connect's workers form groups, too.
        judged = judge(row, line) if row["protocol_type"] in CONSUMERS else None
        placements.append(None if judged is None else json.dumps(judged, separators=(",", ":")))
    return {"tier": pa.array(tiers, pa.string()), "placement": pa.array(placements, pa.string())}
