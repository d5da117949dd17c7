"""Step cross-check: Great Expectations decides the scalar verdicts a second time; where it differs they become UNKNOWN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, counted

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.posture import Flagged


def cross_check(settings: Settings, plan: Plan, summary: StepSummary) -> Flagged:
    """What the check found; see `expectations.posture.flag`. Data Docs go to `out`/data_docs."""
    from expectations import posture

    flagged = posture.flag(settings.open_lake(), plan, settings.out)
    differences = counted(flagged.disagreements, "difference")
    summary.text = f"{counted(len(flagged.checked), 'control')} checked again, {differences}"
    return flagged
