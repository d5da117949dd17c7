"""The operators of `failure_drill`: a prediction of what a loss does, and its comparison with a loss that happens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import timezone
from airflow.sdk.exceptions import AirflowSkipException

from durability.errors import Unreachable
from durability.plan import lose
from durability.steps import drill, whatif
from durability.steps.drill import Predicted
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from kafka_durability.left import connect
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Step, reported, run_of

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan

LABEL = "lose "
POLL = timedelta(seconds=15)
"""The pause between two looks at the live brokers. By default Kafka fences a broker after 9 seconds."""


class LossJob(SparkJob):
    """Submits `spark_jobs/whatif.py`."""

    def __init__(self, **kwargs: Any):
        super().__init__(job="whatif.py", **kwargs)

    def _submit(self, context: Mapping[str, Any], lake: Lake, plan: Plan, losses: Mapping[str, Any]) -> None:
        def arguments(folder: Path) -> list[str]:
            stated = folder / "lose.json"
            stated.write_text(json.dumps(losses), encoding="utf-8")
            return ["--plan", str(plan.write(folder / "plan.json")), "--lose", str(stated)]

        self.submit(lake, plan.partitions, arguments, context)


class PredictOperator(LossJob):
    """Predicts for the run's params `cluster` and `lose`, and writes whatif.json, .csv and .html.

    Returns the paths of the files by name, with `run_id` and `result_id` of the predicted rows in the lake,
    and `made_at`, RFC 3339.
    """

    def execute(self, context: Mapping[str, Any]) -> dict[str, str]:  # type: ignore[override]  # goes to XCom
        params = context["params"]
        settings = Settings.from_params(params)
        with reported(self.task_id) as summary:
            asked = lose.parse(",".join(params["lose"]), LABEL)
            snapshot = whatif.newest(settings, params["cluster"] or None, params["snapshot"] or None)
            run_id = run_of(context)
            result_id = f"{run_id}:{context['ti'].try_number}"
            prediction = whatif.prepare(settings, snapshot, asked, LABEL, run_id, result_id)
            files = whatif.predict(settings, prediction, partial(self._submit, context), summary)
            made = {"run_id": run_id, "result_id": result_id, "made_at": timezone.utcnow().isoformat()}
            return made | {name: str(path) for name, path in files.items()}


def predicted(made: Mapping[str, str]) -> Predicted:
    """The prediction that `PredictOperator` returned."""
    return Predicted(made["run_id"], made["result_id"], Path(made["whatif.json"]))


class WaitForLossOperator(Step):
    """Waits until all brokers of the prediction are fenced. It is skipped unless the param `compare` is true.

    Between two looks it is deferred, so that it takes no slot. The loss must happen within the param `within`, in minutes after
    the prediction, or the task fails with the brokers that are still live. It stops no broker.
    """

    template_fields = ("made",)

    def __init__(self, *, made: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.made = made

    def execute(self, context: Mapping[str, Any]) -> Any:
        if not context["params"]["compare"]:
            raise AirflowSkipException("`compare` is false: nothing is waited for")
        return self.look(context)

    def look(self, context: Mapping[str, Any], event: Any = None) -> list[int]:
        """Returns the fenced brokers, or defers until the next look. event: the timer's."""
        settings, minutes = Settings.from_params(context["params"]), context["params"]["within"]
        ended = timezone.utcnow() >= datetime.fromisoformat(self.made["made_at"]) + timedelta(minutes=minutes)
        with reported(self.task_id) as summary:
            lost = self._fenced(settings, minutes, ended, summary)
        if lost is None:
            self.defer(trigger=TimeDeltaTrigger(POLL), method_name="look")
        return sorted(lost)

    def _fenced(self, settings: Settings, minutes: int, ended: bool, summary: StepSummary) -> frozenset[int] | None:
        """The lost brokers if all of them are fenced, else None. Refused if the time is over."""
        stated = predicted(self.made).stated()
        drill.comparable(stated)
        lost = frozenset(stated["lose"]["brokers"])
        cluster = drill.source(settings, stated["cluster"])
        try:
            still = drill.live(cluster, connect) & lost
        except Unreachable as error:
            if ended:
                raise drill.late(lost, None, minutes, str(error)) from error
            self.log.warning("%s", error)
            return None
        if still and ended:
            raise drill.late(lost, still, minutes)
        summary.text = f"{len(lost - still)} of {len(lost)} brokers are fenced"
        return None if still else lost


class CompareOperator(LossJob):
    """Reads the cluster again, compares it with the prediction and writes drill.json. Returns its path."""

    template_fields: Sequence[str] = (*SparkJob.template_fields, "made")

    def __init__(self, *, made: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.made = made

    def execute(self, context: Mapping[str, Any]) -> str:  # type: ignore[override]  # goes to XCom
        settings = Settings.from_params(context["params"])
        run_id = f"{run_of(context)}:seen"
        result_id = f"{run_id}:{context['ti'].try_number}"
        with reported(self.task_id) as summary:
            submit = partial(self._submit, context)
            made = predicted(self.made)
            started_by = getattr(context["dag_run"], "triggering_user_name", None)
            path = drill.compare(settings, made, connect, run_id, result_id, submit, summary, started_by)
            return str(path)
