"""Step findings: verdicts and disagreements become worded findings, which every reader reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.errors import Refused
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, counted

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from expectations.posture import Flagged


def findings(settings: Settings, plan: Plan, flagged: Flagged, summary: StepSummary) -> int:
    """How many findings the result has; see `durability.findings.write`. Run again, it leaves those that are there.

    Raises Refused where these were written before another cross-check, which found something else.
    """
    from durability import findings

    lake = settings.open_lake()
    written = findings.write(lake, plan)
    if disputed(lake, plan) != flagged.disagreements:
        raise Refused(
            f"the findings of {plan.result_id} are older than the last cross-check, which found other differences: clear "
            "`evaluate` with everything downstream"
        )
    summary.text = counted(written, "verdict") + " worded"
    return written


def disputed(lake: Lake, plan: Plan) -> int:
    """On how many controls of topics Spark and Great Expectations disagree, by the result's findings."""
    from pyiceberg.expressions import And, EqualTo

    from durability.catalogue.causes import DISAGREE
    from durability.lake.tables import FINDINGS

    of_result = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id), EqualTo("cause", DISAGREE))
    keys = ["cluster", "control", "resource"]
    return lake.scan(FINDINGS, of_result, keys).group_by(keys).aggregate([]).num_rows
