"""Since when a rack has been lost: by the counters of every run and pulse, which say what each of them saw.

Between two of them nothing is known. Where they are further apart than readings over time tolerate, the rack is lost since
the later one, and perhaps since before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import HEALTH_COUNTERS, RUNS
from durability.report.data import timeline

COLUMNS = ("cluster", "captured_at", "result_id", "lost_racks")


class Lost(NamedTuple):
    """`since`: the first moment from which on every run and pulse saw the rack lost, without a gap between them;
    `perhaps`: the same whatever the gaps."""

    since: datetime
    perhaps: datetime


Since = dict[tuple[str, str], Lost]


def since(lake, plan, lost: Mapping[str, list[dict]]) -> Since:
    """(cluster, rack) -> since when it is lost.

    `lake`: anything with `scan(table, where, columns)`; `lost`: by cluster its lost racks, each with `rack`. Read are the
    clusters' counters of the look-back, and all there are of a cluster whose rack was lost throughout.
    """
    if not lost or not plan.look_back:
        return first_seen(HEALTH_COUNTERS.arrow.empty_table(), RUNS.arrow.empty_table(), {}, plan, lost)[0]
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, IsNull

    found: Since = {}
    wanted, gaps = dict(lost), timeline.gaps(timeline.verdicts(lake, plan))
    for recent in (GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset), AlwaysTrue()):
        runs = lake.scan(RUNS, recent, columns=("result_id", "finished_at"))
        counters = lake.scan(
            HEALTH_COUNTERS, And(recent, IsNull("topic"), In("cluster", list(wanted))), columns=COLUMNS
        )
        seen, throughout = first_seen(counters, runs, gaps, plan, wanted)
        found |= seen
        wanted = {cluster: racks for cluster, racks in wanted.items() if cluster in throughout}
        if not wanted:
            break
    return found


def first_seen(
    counters: pa.Table, runs: pa.Table, gaps: Mapping[str, timedelta], plan, lost: Mapping[str, list[dict]]
) -> tuple[Since, set[str]]:
    """The same from Arrow tables, cluster rows of HEALTH_COUNTERS and rows of RUNS, and `timeline.gaps`; and the clusters
    with a rack that every row of theirs shows lost: the outage may be older than the rows."""
    finished, found, throughout = timeline.finished_of(runs, plan), {}, set()
    for part in (p for p in plan.judged if p.cluster in lost):
        now, gap = datetime.fromisoformat(part.captured_at), gaps.get(part.cluster, timedelta(0))
        mine = counters.filter(pc.equal(counters["cluster"], part.cluster))
        before = timeline.moments(mine, finished, now)[::-1]
        for rack in (entry["rack"] for entry in lost[part.cluster]):
            held = Lost(now, now)
            for row in before:
                if rack not in (entry["rack"] for entry in row["lost_racks"] or ()):
                    break
                at = row["captured_at"]
                joined = held.since == held.perhaps and held.since - at <= gap
                held = Lost(at if joined else held.since, at)
            else:
                throughout.add(part.cluster)
            found[part.cluster, rack] = held
    return found, throughout
