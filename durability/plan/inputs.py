"""Which file of a plan's inputs is damaged: Spark fails on it without a word that a user could act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.lake.tables import FACTS, FINDINGS, HEALTH_COUNTERS, PARTITIONS, RUNS

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan.plan import Plan


def check(lake: Lake, plan: Plan) -> None:
    """Reads one column of whatever a nightly plan has Spark read.

    Raises AuditError, naming the file, for the first that can't be read; returns if all can. A pulse's facts are staged
    files that the gate has read a moment ago.
    """
    from pyiceberg.expressions import GreaterThanOrEqual, In

    attempts = {s.attempt_id for s in plan.judged}
    before = {s.previous_attempt_id for s in plan.judged if s.previous_attempt_id}
    results = {s.previous_result_id for s in plan.snapshots if s.previous_result_id}
    earlier = {e.attempt_id for e in plan.look_back.uncounted} if plan.look_back else set()
    for table in () if plan.pulse else FACTS:
        wanted = attempts | earlier | (before if table is PARTITIONS else set())
        if wanted:
            lake.scan(table, In("attempt_id", wanted), ["cluster"])
    if results:
        lake.scan(FINDINGS, In("result_id", results), ["cluster"])
    if plan.look_back:
        for table in (HEALTH_COUNTERS, RUNS):
            lake.scan(table, GreaterThanOrEqual("captured_at", plan.look_back.since_with_offset), ["captured_at"])
