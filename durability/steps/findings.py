"""Step findings: verdicts and disagreements become worded findings, which every reader reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, counted

if TYPE_CHECKING:
    from durability.plan import Plan


def findings(settings: Settings, plan: Plan, summary: StepSummary) -> int:
    """How many findings the result has; see `durability.findings.write`. Run again, it leaves those that are there."""
    from durability import findings

    written = findings.write(settings.open_lake(), plan)
    summary.text = counted(written, "verdict") + " worded"
    return written
