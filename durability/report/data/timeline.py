"""Partitions at min ISR or worse over time, per cluster (KIP-427): the counts of every run and pulse in the look-back.

The counts of a moment apply until the next one, unless they are further apart than the rule tolerates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from durability.plan.plan import Plan
from durability.report.data import moments

OUTCOMES = {"PASS": "passes", "UNKNOWN": "unknown", "EXEMPT": "exempt", "NOT_APPLICABLE": "too few snapshots to tell"}
POINTS = 240
"""The most points of a timeline."""


class Point(NamedTuple):
    """One or more moments, with the counts of the worst: most offline, else most under min ISR, else most at min ISR.

    unread: no partition was found in such a state, but not all could be read.
    """

    first: datetime
    last: datetime
    offline: int
    under: int
    at: int
    unread: bool = False

    @property
    def total(self) -> int:
        return self.offline + self.under + self.at


@dataclass(frozen=True)
class Timeline:
    """A cluster's points in order.

    gap: see `moments.gaps`.
    reading: the rule's.
    windows: maintenance windows as (from, to, reason), `to` exclusive.
    """

    cluster: str
    points: Sequence[Point]
    gap: timedelta
    reading: str = ""
    windows: Sequence[tuple[datetime, datetime, str]] = ()

    @property
    def peak(self) -> int:
        return max(p.total for p in self.points)


def read(lake: Any, plan: Plan, readings: pa.Table) -> list[Timeline]:
    """The evaluated clusters' timelines, worst first. lake: an object with `scan(table, where, columns)`."""
    if not plan.look_back:
        return []
    from pyiceberg.expressions import GreaterThanOrEqual

    recent = GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset)
    return timelines(moments.read(lake, plan, recent, moments.COLUMNS), readings, plan)


def timelines(counters: pa.Table, readings: pa.Table, plan: Plan) -> list[Timeline]:
    """The same from rows of `moments.concluded` and of `moments.readings`."""
    gaps = moments.gaps(readings)
    counts, texts = defaultdict(list), defaultdict(list)
    for row in counters.to_pylist():
        counts[row["cluster"]].append(row)
    for reading in readings.to_pylist():
        texts[reading["cluster"]].append(reading["category"] or OUTCOMES[reading["outcome"]])
    found = []
    for part in plan.judged:
        since = part.moment - timedelta(seconds=plan.policy.readings["look_back"])
        points = _points([row for row in counts[part.cluster] if since <= row["captured_at"] <= part.moment])
        if len(points) > 1 and part.cluster in gaps:
            text, windows = " and ".join(sorted(texts[part.cluster])), plan.policy.windows(part.cluster)
            found.append(Timeline(part.cluster, points, gaps[part.cluster], text, windows))
    return sorted(found, key=lambda t: (-t.peak, t.cluster))


def _points(rows: list[dict[str, Any]]) -> list[Point]:
    """At most POINTS points, from rows sorted by time."""
    points: dict[int, Point] = {}
    for row in rows:
        first, at = rows[0]["captured_at"], row["captured_at"]
        width = max((rows[-1]["captured_at"] - first) / POINTS, timedelta(microseconds=1))
        counts = _counts(row)
        number = min(int((at - first) / width), POINTS - 1)
        before = points.get(number)
        points[number] = Point(before.first, at, *max(before[2:], counts)) if before else Point(at, at, *counts)
    return list(points.values())


def _counts(row: dict[str, Any]) -> tuple[int, int, int, bool]:
    """Partitions offline, under and at min ISR, without those that are so by configuration; and `Point.unread`."""
    under = row["under_min_isr"] - (row["under_min_isr_by_configuration"] or 0)
    counts = row["offline"], under, row["at_min_isr"] - (row["at_min_isr_by_configuration"] or 0)
    return *counts, bool(row["unknown"]) and not any(counts)
