"""Step cross-check: Great Expectations computes the scalar verdicts again. Verdicts that differ become UNKNOWN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durability.plain import plural
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.posture import Flagged


def cross_check(settings: Settings, plan: Plan, summary: StepSummary) -> Flagged:
    """The result of the check (`expectations.posture.flag`). Data Docs are written to `out`/data_docs."""
    from expectations import posture

    flagged = posture.flag(settings.open_lake(), plan, settings.out)
    differences = plural(flagged.disagreements, "difference")
    summary.text = f"{plural(len(flagged.checked), 'control')} checked again, {differences}"
    return flagged
