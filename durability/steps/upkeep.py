"""Steps of `lake_upkeep`: a backup of the catalog, and the decision on what is old."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake.retention import RetentionPlan


def backup(settings: Settings, summary: StepSummary) -> str:
    """Writes where each table's metadata is, beside the tables; returns the address of what it wrote."""
    lake = settings.open_lake()
    lake.ensure()
    summary.text = lake.backup(datetime.now(UTC))
    return summary.text


def decide(settings: Settings, summary: StepSummary) -> tuple[RetentionPlan, int]:
    """What goes by the policy's `retention`, and how many partitions the largest snapshot has, which sizes the Spark job."""
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
