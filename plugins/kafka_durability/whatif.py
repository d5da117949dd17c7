"""The operator of `failure_drill`: a prediction of what a loss does, from the newest accepted snapshot in the lake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.plan import lose
from durability.steps import whatif
from durability.steps.settings import Settings
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import reported, run_of

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan

LABEL = "lose "


class PredictOperator(SparkJob):
    """Submits `spark_jobs/whatif.py` for the run's params `cluster` and `lose`, and writes whatif.json, .csv and .html.

    Returns the paths of the files by name.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(job="whatif.py", **kwargs)

    def execute(self, context: Mapping[str, Any]) -> dict[str, str]:  # type: ignore[override]  # goes to XCom
        params = context["params"]
        settings = Settings.from_params(params)
        with reported(self.task_id) as summary:
            asked = lose.parse(",".join(params["lose"]), LABEL)
            snapshot = whatif.newest(settings, params["cluster"] or None)
            run_id = run_of(context)
            prediction = whatif.prepare(
                settings, snapshot, asked, LABEL, run_id, f"{run_id}:{context['ti'].try_number}"
            )
            files = whatif.predict(settings, prediction, partial(self._submit, context), summary)
            return {name: str(path) for name, path in files.items()}

    def _submit(self, context: Mapping[str, Any], lake: Lake, plan: Plan, losses: Mapping[str, Any]) -> None:
        def arguments(folder: Path) -> list[str]:
            stated = folder / "lose.json"
            stated.write_text(json.dumps(losses), encoding="utf-8")
            return ["--plan", str(plan.write(folder / "plan.json")), "--lose", str(stated)]

        self.submit(lake, plan.partitions, arguments, context)
