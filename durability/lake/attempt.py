"""One staged reading of a cluster: Parquet files that count for nothing until they are published."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime

FULL, PULSE = "full", "pulse"
"""Kinds of snapshots: one with all its facts, and one that leaves counters and unhealthy partitions only."""


@dataclass(frozen=True)
class Attempt:
    """What `Lake.stage` wrote for one topology.

    files: paths by fact table; a table without rows has none.
    partitions: how many partition rows were written. kind: FULL or PULSE.
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

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "captured_at": self.captured_at.isoformat()})

    @classmethod
    def from_json(cls, text: str) -> Attempt:
        stated = json.loads(text)
        return cls(**{**stated, "captured_at": datetime.fromisoformat(stated["captured_at"])})


@dataclass(frozen=True)
class SnapshotRow:
    """A row of `snapshots` as published. status: accepted, rejected or failed."""

    cluster: str
    captured_at: datetime
    snapshot_id: str
    attempt_id: str
    status: str
    reason: str | None
    sha256: str | None
    source: str | None
    published_at: datetime
    kind: str
    partitions: int | None
