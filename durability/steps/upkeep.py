"""Steps of `lake_upkeep`: backs up the catalog and decides what to delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake.retention import RetentionPlan


def backup(settings: Settings, summary: StepSummary) -> str:
    """Write the location of each table's metadata beside the tables. Returns the address of the backup."""
    lake = settings.open_lake()
    lake.ensure()
    summary.text = lake.backup(datetime.now(UTC))
    return summary.text


def decide(settings: Settings, summary: StepSummary) -> tuple[RetentionPlan, int]:
    """What the policy's `retention` deletes, and the partitions of the largest snapshot, which size the Spark job."""
    from durability.policy import load_policy

    policy = load_policy(settings.policy)
    lake = settings.open_lake()
    decision = lake.plan_retention(policy.retention, policy.readings.look_back, datetime.now(UTC))
    summary.text = (
        f"{len(decision.attempts)} snapshots and {len(decision.runs)} nightly runs go, "
        f"{len(decision.evidence)} runs are evidence"
    )
    largest = max((row["partitions"] or 0 for row in lake.snapshots(kind="full", status="accepted")), default=0)
    return decision, largest
