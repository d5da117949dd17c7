"""Finds the damaged file among a plan's inputs. Spark's error doesn't help a user to find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.lake.tables import FACTS, FINDINGS, HEALTH_COUNTERS, PARTITIONS, RESOLVED_POLICY, RUNS

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan.plan import Plan


def check(lake: Lake, plan: Plan) -> None:
    """Read one column of every table that Spark reads for a plan.

    A pulse's facts are staged files, which the gate has just read. It reads the tiers that nightly runs resolved.
    Raises AuditError with the file's name for the first file that can't be read.
    """
    from pyiceberg.expressions import GreaterThanOrEqual, In

    attempts = set(plan.attempts)
    before = {s.previous_attempt_id for s in plan.judged if s.previous_attempt_id}
    results = {s.previous_result_id for s in plan.snapshots if s.previous_result_id}
    tiers = {s.resolved_result_id for s in plan.judged if s.resolved_result_id}
    earlier = {e.attempt_id for e in plan.look_back.uncounted} if plan.look_back else set()
    for table in () if plan.pulse else FACTS:
        wanted = attempts | earlier | (before if table is PARTITIONS else set())
        if wanted:
            lake.scan(table, In("attempt_id", wanted), ["cluster"])
    if results:
        lake.scan(FINDINGS, In("result_id", results), ["cluster"])
    if tiers:
        lake.scan(RESOLVED_POLICY, In("result_id", tiers), ["cluster"])
    if plan.look_back:
        for table in (HEALTH_COUNTERS, RUNS):
            lake.scan(table, GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset), ["captured_at"])
