"""The operators of `lake_upkeep`: a backup of the catalog, the Spark job that removes old data, and the evidence of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.steps import upkeep
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Step, reported


class BackupOperator(Step):
    """Writes the location of each table's metadata beside the tables. Returns the address of the backup."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> str:
        return upkeep.backup(settings, summary)


class EvidenceOperator(Step):
    """Completes the copies of runs' evidence, and removes old folders in OUT/evidence. Returns the names of those."""

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> list[str]:
        return upkeep.evidence(settings, summary)


class UpkeepOperator(SparkJob):
    """Decides what to delete by the policy's `retention`, and submits `spark_jobs/upkeep.py` with it."""

    def __init__(self, **kwargs: Any):
        super().__init__(job="upkeep.py", **kwargs)

    def execute(self, context: Mapping[str, Any]) -> None:
        with reported(self.task_id) as summary:
            settings = Settings.from_params(context["params"])
            decision, largest = upkeep.decide(settings, summary)
            self.log.info("Evidence: %s", ", ".join(decision.evidence) or "none yet")
            self.submit(
                settings.open_lake(),
                largest,
                lambda folder: ["--plan", str(decision.write(folder / "retention.json"))],
                context,
            )
