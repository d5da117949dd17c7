"""Step discard: removes a pulse's staged files, even if the pulse failed."""

from __future__ import annotations

from collections.abc import Sequence

from durability.plain import plural
from durability.steps.results import Collected
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary


def discard(settings: Settings, groups: Sequence[Collected], summary: StepSummary) -> int:
    """Remove the staged files of `groups` and return their number. Committed files are never removed."""
    removed = settings.open_lake().discard([a for group in groups for a in group.attempts])
    summary.text = f"{plural(removed, 'staged file')} removed"
    return removed
