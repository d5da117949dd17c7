"""The steps of `lake_upkeep`: a backup of the catalog, what goes, and the Spark job that removes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Notes, Settings, Step, told


class BackupOperator(Step):
    """Writes where each table's metadata is beside the tables. Returns the address of what it wrote."""

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> str:
        from durability.lake import Lake

        lake = Lake.open(settings.lake)
        lake.ensure()
        address = lake.backup(datetime.now(UTC))
        notes.text = address
        return address


class UpkeepOperator(SparkJob):
    """Decides what goes by the policy's `retention` and submits `spark_jobs/upkeep.py` with it."""

    def __init__(self, **kwargs: Any):
        super().__init__(job="upkeep.py", **kwargs)

    def execute(self, context: Mapping[str, Any]) -> None:
        with told(self.task_id) as notes:
            from durability.lake import Lake
            from durability.policy import load_policy

            settings = Settings.of(context)
            policy = load_policy(settings.policy)
            lake = Lake.open(settings.lake)
            decision = lake.decide(policy.retention, policy.readings.look_back, datetime.now(UTC))
            notes.text = (
                f"{len(decision.attempts)} snapshots and {len(decision.runs)} nightly runs go, "
                f"{len(decision.evidence)} runs are evidence"
            )
            self.log.info("Evidence: %s", ", ".join(decision.evidence) or "none yet")
            largest = max((row["partitions"] or 0 for row in lake.snapshots(kind="full", status="accepted")), default=0)
            self.submit(
                lake, largest, lambda folder: ["--decision", str(decision.write(folder / "decision.json"))], context
            )
