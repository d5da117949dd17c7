"""Steps of `lake_upkeep`: backs up the catalog, decides what to delete, and keeps the evidence of runs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from durability.plain import plural
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


def evidence(settings: Settings, summary: StepSummary) -> list[str]:
    """Complete the copies of runs' evidence, and remove folders older than the policy's term. Returns those removed."""
    from durability.evidence import copy
    from durability.evidence.keep import remove_old
    from durability.evidence.verify import FOLDER
    from durability.policy import load_policy

    policy, root = load_policy(settings.policy), settings.out / FOLDER
    if not root.is_dir():
        summary.text = f"no evidence at {root}"
        return []
    said, unsafe = [], None
    if policy.evidence:
        copied = copy.copy(root, policy.evidence, thorough=True)
        summary.problems += copied.problems
        unsafe = partial(copy.unsafe, target=policy.evidence)
        said.append(f"{plural(len(copied.runs), 'run')} completed at {policy.evidence.address}")
    term = policy.retention.evidence_folders
    if term is None:
        summary.text = ", ".join([*said, "no folder is removed, because the policy has no term"])
        return []
    removed = remove_old(root, term, policy.retention.evidence_each, datetime.now(UTC), unsafe)
    summary.problems += removed.problems
    said.append(f"{plural(len(removed.runs), 'folder')} removed")
    if removed.runs:
        said.append(f"up to {removed.runs[-1]}, whose manifest is {removed.last}")
    summary.text = ", ".join(said)
    return removed.runs
