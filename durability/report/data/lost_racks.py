"""Finds since when a rack is lost, from the counts of every run and pulse.

Nothing is known between two counts. If they are further apart than the readings over time tolerate, the rack is lost since the
later one, and perhaps for longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import HEALTH_COUNTERS
from durability.plan.plan import Plan
from durability.report.data import moments

COLUMNS = ("cluster", "captured_at", "result_id", "lost_racks")
LostRacks = Mapping[str, list[dict[str, Any]]]
"""By cluster, its lost racks, each with `rack`."""


class Lost(NamedTuple):
    """since: all counts from then on, without a gap, have the rack as lost. perhaps: the same across gaps."""

    since: datetime
    perhaps: datetime


Since = dict[tuple[str, str], Lost]
"""By cluster and rack."""


def since(lake: Any, plan: Plan, lost: LostRacks, gaps: Mapping[str, timedelta]) -> Since:
    """Since when each rack is lost.

    The counts in the look-back are read. If a rack was lost during the whole look-back, all counts of its cluster are read.

    lake: an object with `scan(table, where, columns)`.
    gaps: see `moments.gaps`.
    """
    if not plan.look_back:
        return first_lost(HEALTH_COUNTERS.arrow.empty_table(), gaps, plan, lost)[0]
    from pyiceberg.expressions import AlwaysTrue, GreaterThanOrEqual

    found: Since = {}
    for recent in (GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset), AlwaysTrue()):
        if lost:
            of_clusters, throughout = first_lost(moments.read(lake, plan, recent, COLUMNS, lost), gaps, plan, lost)
            found |= of_clusters
            lost = {cluster: lost[cluster] for cluster in throughout}
    return found


def first_lost(
    counters: pa.Table, gaps: Mapping[str, timedelta], plan: Plan, lost: LostRacks
) -> tuple[Since, set[str]]:
    """The same from rows of `moments.concluded`, and the clusters with a rack that is lost in every row.

    Such an outage may be older than the rows.
    """
    found: Since = {}
    throughout = set()
    for part in (p for p in plan.judged if p.cluster in lost):
        rows = counters.filter(pc.equal(counters["cluster"], part.cluster)).to_pylist()
        earlier = [row for row in reversed(rows) if row["captured_at"] <= part.moment]
        for rack in (entry["rack"] for entry in lost[part.cluster]):
            outage = Lost(part.moment, part.moment)
            for row in earlier:
                if rack not in (entry["rack"] for entry in row["lost_racks"] or ()):
                    break
                at = row["captured_at"]
                gapless = outage.since == outage.perhaps and outage.since - at <= gaps.get(part.cluster, timedelta(0))
                outage = Lost(at if gapless else outage.since, at)
            else:
                throughout.add(part.cluster)
            found[part.cluster, rack] = outage
    return found, throughout
