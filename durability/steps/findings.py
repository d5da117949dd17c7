"""Step findings: verdicts and disagreements become worded findings, which every reader reads; then the results count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.errors import Refused
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, counted

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.lake.tables import Table
    from durability.plan import Plan
    from expectations.posture import Flagged


def findings(settings: Settings, plan: Plan, flagged: Flagged, summary: StepSummary) -> int:
    """How many findings the result has; see `durability.findings.write`. Run again, it leaves those that are there.

    Afterwards the run's row in `runs` is written, see `durability.steps.conclude.commit`.
    Raises Refused where these were written before another cross-check, which found something else.
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
    # `disagreements` keeps the rows of each cross-check, so the number shows that the last one found fewer.
    if disputed != _keys(lake, DISAGREEMENTS, plan) or len(disputed) != flagged.disagreements:
        raise Refused(
            f"the findings of {plan.result_id} are older than the last cross-check, which found other differences: clear "
            "`evaluate` with everything downstream"
        )
    commit(lake, plan, flagged)
    summary.text = counted(written, "verdict") + " worded"
    return written


def _keys(lake: Lake, table: Table, plan: Plan, **equal: str) -> set[tuple[str, ...]]:
    """Cluster, control and resource of the result's rows with these values."""
    from pyiceberg.expressions import And, EqualTo

    from durability.findings.disputes import KEY

    values = {"run_id": plan.run_id, "result_id": plan.result_id, **equal}
    rows = lake.scan(table, And(*(EqualTo(name, value) for name, value in values.items())), list(KEY))
    return set(zip(*(rows[name].to_pylist() for name in KEY), strict=True))
