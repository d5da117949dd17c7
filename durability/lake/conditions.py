"""Conditions that readers of the lake share; the library of Iceberg's expressions is loaded on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any


def of_attempts(rows: Iterable[Mapping[str, Any]]) -> Any:
    """The condition for facts of these snapshots (attempt_id, captured_at); the days come first, to prune files."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, In, LessThanOrEqual

    rows = list(rows)
    moments = [r["captured_at"].astimezone(UTC).isoformat() for r in rows]
    return And(
        GreaterThanOrEqual("captured_at", min(moments)),
        LessThanOrEqual("captured_at", max(moments)),
        In("attempt_id", [r["attempt_id"] for r in rows]),
    )
