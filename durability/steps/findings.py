"""Step findings: writes findings with text from verdicts and disagreements. All reports read these findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.errors import Refused
from durability.plain import plural
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.lake.tables import Table
    from durability.plan import Plan
    from expectations.posture import Flagged


def findings(settings: Settings, plan: Plan, flagged: Flagged, summary: StepSummary) -> int:
    """Write the findings (`durability.findings.write`) and the run's row in `runs`, and return how many were written.

    A second call keeps findings that exist.
    Raises Refused if existing findings were written before a cross-check that gave other results.
    """
    from durability import findings
    from durability.catalogue.causes import DISAGREE
    from durability.findings.faults import Faults
    from durability.lake.tables import DISAGREEMENTS, FINDINGS
    from durability.steps.conclude import commit

    lake = settings.open_lake()
    faults = Faults()
    written = findings.write(lake, plan, faults)
    summary.problems += faults
    disputed = _keys(lake, FINDINGS, plan, cause=DISAGREE)
    # `disagreements` keeps rows of every cross-check. Only the number shows that the last check found fewer.
    if disputed != _keys(lake, DISAGREEMENTS, plan) or len(disputed) != flagged.disagreements:
        raise Refused(
            f"the findings of {plan.result_id} are older than the last cross-check, which found other differences: clear "
            "`evaluate` with everything downstream"
        )
    commit(lake, plan, flagged)
    summary.text = plural(written, "verdict") + " worded"
    return written


def _keys(lake: Lake, table: Table, plan: Plan, **equal: str) -> set[tuple[str, ...]]:
    """(cluster, control, resource) of the result's rows that have the values `equal`."""
    from pyiceberg.expressions import And, EqualTo

    from durability.findings.disputes import KEY

    values = {"run_id": plan.run_id, "result_id": plan.result_id, **equal}
    rows = lake.scan(table, And(*(EqualTo(name, value) for name, value in values.items())), list(KEY))
    return set(zip(*(rows[name].to_pylist() for name in KEY), strict=True))
