"""Conditions that several readers of the lake use. pyiceberg is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def captured_within(moments: Sequence[datetime]) -> Any:
    """The condition for rows captured between the first and the last of these times. It prunes files by day."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual

    first, last = (moment.astimezone(UTC).isoformat() for moment in (min(moments), max(moments)))
    return And(GreaterThanOrEqual("captured_at", first), LessThanOrEqual("captured_at", last))


def captured_from(since: datetime, until: datetime) -> Any:
    """The condition for rows captured from `since` on and before `until`. Both are in UTC."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

    return And(GreaterThanOrEqual("captured_at", since.isoformat()), LessThan("captured_at", until.isoformat()))


def of_attempts(rows: Iterable[Mapping[str, Any]]) -> Any:
    """The condition for facts of these snapshots (attempt_id, captured_at)."""
    from pyiceberg.expressions import And, In

    rows = list(rows)
    return And(captured_within([r["captured_at"] for r in rows]), In("attempt_id", [r["attempt_id"] for r in rows]))


def of_result(plan: Any) -> Any:
    """The condition for the rows of a plan's result (run_id, result_id)."""
    from pyiceberg.expressions import And, EqualTo

    return And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
