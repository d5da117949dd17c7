"""A staged snapshot: Parquet files of one cluster's facts, which readers don't see before they are published."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

FULL, PULSE = "full", "pulse"
"""Kinds of snapshots: with all facts, or with counters and unhealthy partitions only."""


@dataclass(frozen=True)
class Attempt:
    """The files that `Lake.stage` wrote for one topology.

    files: addresses by fact table. A table without rows has none.
    partitions: the number of partition rows.
    kind: FULL or PULSE.
    """

    cluster: str
    snapshot_id: str
    attempt_id: str
    captured_at: datetime
    sha256: str
    source: str
    files: dict[str, list[str]] = field(repr=False)
    partitions: int
    kind: str = FULL
