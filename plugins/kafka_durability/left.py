"""Takes back what killed runs of `remediate` and `rack_outage` left, from DAGs that run often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from kafka_durability.hook import KafkaHook
from kafka_durability.step import Step, run_of


def connect(connection: str) -> dict[str, Any]:
    """Settings for a cluster; see `KafkaHook.settings`."""
    return KafkaHook(connection).settings()


def allows(connection: str) -> bool:
    """Does the Connection allow changes? Refused if it doesn't exist."""
    return KafkaHook(connection).allows_changes()


class RestoreLeftOperator(Step):
    """Takes back what killed runs changed, on clusters whose Connections allow changes. Returns of how many plans.

    With the param `give_up`, it first closes what is unfinished on that cluster.
    """

    def work(self, settings: Settings, context: Mapping[str, Any], summary: StepSummary) -> int:
        from durability.steps import left

        if cluster := context["params"].get("give_up"):
            left.give_up(settings, run_of(context), str(cluster), summary)
        return left.restore(settings, run_of(context), connect, allows, summary)
