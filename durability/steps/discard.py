"""Step discard: removes what a pulse staged, whatever became of the pulse."""

from __future__ import annotations

from collections.abc import Sequence

from durability.steps.results import Collected
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary, counted


def discard(settings: Settings, groups: Sequence[Collected], summary: StepSummary) -> int:
    """Returns how many files were removed; never a committed one."""
    removed = settings.open_lake().discard([a for group in groups for a in group.attempts])
    summary.text = f"{counted(removed, 'staged file')} removed"
    return removed
