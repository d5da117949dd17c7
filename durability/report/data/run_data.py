"""Reads the data of a run's report from the lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.findings import quorum
from durability.lake.conditions import of_result
from durability.lake.tables import (
    CLUSTERS,
    FINDINGS,
    HEALTH_COUNTERS,
    PARTITION_HEALTH,
    RESOLVED_POLICY,
    TOPIC_POSTURE,
)
from durability.plan.plan import Plan
from durability.report.data import failure_costs, lost_racks, moments, objectives, placements, results, timeline, trends
from durability.report.data import outages as rack_outages
from durability.report.data.applications import COLUMNS, applications
from durability.report.data.health import DETAILS, Health
from durability.report.words import COUNTED_ONLY

UNREAD = ("cluster", "unreadable", "hidden_partitions")
"""The columns of `clusters` that are read."""


@dataclass(frozen=True)
class RunData:
    """A result's rows and what is derived from them.

    counted: every finding (columns `results.COUNTED`).
    listed: the findings that reports list, worst first.
    unread: rows of UNREAD.
    applications: entries of findings.json.
    losses: the clusters' entries of losses.json. Each is made when the iteration comes to it.
    placements: of the worst topics (`placements.read`).
    """

    counted: pa.Table
    listed: pa.Table
    health: Health
    unread: pa.Table = field(default_factory=pa.schema([CLUSTERS.arrow.field(name) for name in UNREAD]).empty_table)
    applications: Sequence[dict[str, Any]] = ()
    outages: rack_outages.Outages = field(default_factory=rack_outages.Outages)
    timelines: Sequence[timeline.Timeline] = ()
    trends: trends.Trends | None = None
    objectives: objectives.Objectives = field(default_factory=objectives.Objectives)
    losses: Iterable[dict[str, Any]] = ()
    placements: Sequence[dict[str, Any]] = ()

    def of_controls(self, controls: Collection[str]) -> RunData:
        """The same with the findings of these controls alone. What is about no control stays."""
        names = pa.array(sorted(controls), pa.string())
        counted, listed = (t.filter(pc.is_in(t["control"], names)) for t in (self.counted, self.listed))
        return replace(self, counted=counted, listed=listed)


def read(lake: Any, plan: Plan) -> RunData:
    """The data of the result (plan.run_id, plan.result_id). lake: an object with `scan(table, where, columns) -> pa.Table`."""
    from pyiceberg.expressions import And, EqualTo, In, NotIn, NotNull, Or

    result = of_result(plan)
    listed = Or(NotIn("outcome", COUNTED_ONLY), EqualTo("change", "resolved"))
    counted = lake.scan(FINDINGS, result, columns=results.COUNTED)
    counters = lake.scan(HEALTH_COUNTERS, result)
    if plan.look_back and plan.look_back.uncounted:  # this run also counted earlier snapshots, which aren't current
        evaluated = pa.array([part.snapshot_id for part in plan.judged], pa.string())
        counters = counters.filter(pc.is_in(counters["snapshot_id"], evaluated))
    health = Health(lake.scan(PARTITION_HEALTH, result, columns=DETAILS), counters)
    attempts = [part.attempt_id for part in plan.snapshots if part.attempt_id]
    readings = moments.readings(lake, plan) if plan.look_back else FINDINGS.arrow.empty_table()
    gaps, lost = moments.gaps(readings), health.lost_racks()
    of_applications = And(result, EqualTo("resource_type", "application"))
    posture = lake.scan(TOPIC_POSTURE, And(result, NotNull("rack_outage_step")), columns=rack_outages.TOPIC)
    more: dict[str, Any] = {}
    if attempts:
        more["unread"] = lake.scan(CLUSTERS, In("attempt_id", attempts), columns=UNREAD)
    if plan.applications:
        more["applications"] = applications(lake.scan(RESOLVED_POLICY, of_applications, columns=COLUMNS))
    return RunData(
        counted,
        results.worst_first(lake.scan(FINDINGS, And(result, listed))),
        health,
        outages=rack_outages.Outages(
            posture.sort_by([("cluster", "ascending"), ("topic", "ascending")]),
            lost,
            lost_racks.since(lake, plan, lost, gaps),
            plan.policy.required,
            {cluster for cluster, leads in quorum.led(lake, attempts).items() if leads is False} if attempts else (),
        ),
        timelines=timeline.read(lake, plan, readings),
        trends=trends.read(lake, plan, results.failed_by_severity(counted), gaps),
        objectives=objectives.read(lake, plan, gaps),
        losses=failure_costs.FailureCosts(lake, plan),
        placements=placements.read(lake, plan, health.worst(placements.TOPICS)),
        **more,
    )
