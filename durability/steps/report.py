"""Step report: writes the report files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.posture import Flagged


def report(settings: Settings, plan: Plan, flagged: Flagged, summary: StepSummary) -> dict[str, Path]:
    """Write the reports; return their paths by name, for example findings.json. See `durability.report.build.build`."""
    from durability.report.build import build

    return build(settings.open_lake(), plan, flagged, settings.out, settings.framework)
