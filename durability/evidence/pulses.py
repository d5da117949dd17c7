"""How much of a period its pulses cover: the number per cluster, and the longest time without one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.evidence.nights import Period
from durability.lake.conditions import captured_from
from durability.lake.tables import RUNS, TIMESTAMP
from durability.plan.plan import ACCEPTED

SECOND_US = 1_000_000


def read(lake: Any, period: Period) -> list[dict[str, Any]]:
    """By cluster: `pulses`, and `longest_gap_seconds`, which may be before the first one or after the last one.

    A pulse counts if its run concluded and evaluated the cluster. Only times are in memory, eight bytes each.
    """
    found: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for cluster, moments in _moments(lake, period):
        found[cluster].append(moments)
    edges = [int(moment.timestamp()) * SECOND_US for moment in (period.since, period.until)]
    rows = []
    for cluster in sorted(found):
        moments = np.unique(np.concatenate(found[cluster]))
        gaps = np.diff(np.concatenate([edges[:1], moments, edges[1:]]))
        rows.append({"cluster": cluster, "pulses": len(moments), "longest_gap_seconds": int(gaps.max() // SECOND_US)})
    return rows


def _moments(lake: Any, period: Period) -> Iterator[tuple[str, np.ndarray]]:
    from pyiceberg.expressions import And, EqualTo

    during = captured_from(period.since, period.until)
    for part in lake.parts(RUNS, And(EqualTo("kind", "pulse"), during), ("snapshots",)):
        parts = pc.list_flatten(part["snapshots"])
        status, at = pc.struct_field(parts, "status"), pc.struct_field(parts, "captured_at")
        bounds = (pa.scalar(moment, TIMESTAMP) for moment in (period.since, period.until))
        low, high = bounds
        here = pc.and_(pc.greater_equal(at, low), pc.less(at, high))
        kept = pc.fill_null(pc.and_(pc.equal(status, ACCEPTED), here), False)
        names, at = pc.struct_field(parts, "cluster").filter(kept), at.filter(kept).cast(pa.int64()).to_numpy()
        for cluster in pc.unique(names).to_pylist():
            yield cluster, at[pc.equal(names, cluster).to_numpy(zero_copy_only=False)]
