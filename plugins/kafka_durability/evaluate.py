"""The Spark job of a run: one session for the whole fleet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from durability.steps.evaluate import SparkEvaluation, plan_evaluation
from durability.steps.results import Gated
from durability.steps.settings import PULSE, Settings
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import artifacts_of, holding, reported, run_of

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan


class EvaluateJob(SparkJob):
    """Submits `spark_jobs/evaluate.py` for a plan of an evaluation."""

    def __init__(self, **kwargs: Any):
        super().__init__(job="evaluate.py", **kwargs)

    def evaluate(self, context: Mapping[str, Any], lake: Lake, plan: Plan, *, here: bool = False) -> None:
        self.submit(
            lake,
            plan.partitions,
            lambda folder: ["--plan", str(plan.write(folder / "plan.json"))],
            context,
            here=here,
        )


class EvaluateOperator(EvaluateJob):
    """Builds the run's plan and submits the job with it, or passes it to a prestarted session.

    Each try writes results under a new `result_id`, so results of a cleared task aren't mixed with earlier ones. Returns a
    reference to the plan (`durability.plan.Plan`).
    """

    template_fields = (*SparkJob.template_fields, "published")

    def __init__(self, *, published: Any, kind: str, alone: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.published, self.kind, self.alone = published, kind, alone
        self._evaluation: SparkEvaluation | None = None

    def execute(self, context: Mapping[str, Any]) -> dict[str, str]:  # type: ignore[override]  # goes to XCom
        settings = Settings.from_params(context["params"])
        with reported(self.task_id) as summary, ExitStack() as stack:
            if self.alone:
                stack.enter_context(holding(settings.lake, context))
            plan = self.plan(settings, context)
            self._evaluation = SparkEvaluation(partial(self.evaluate, context), self.log.info)
            self._evaluation.run(settings.open_lake(), plan, summary)
            name = f"plan-{context['ti'].try_number}"
            return {"plan": artifacts_of(settings, context).put(name, plan.to_json())}

    def on_kill(self) -> None:
        if self._evaluation is None or not self._evaluation.stop():
            super().on_kill()

    def plan(self, settings: Settings, context: Mapping[str, Any]) -> Plan:
        """The plan of this try."""
        artifacts = artifacts_of(settings, context)
        run_id = run_of(context)
        attempts = []
        if self.kind == PULSE:
            attempts = Gated.from_dict(artifacts.get(self.published["gated"])).attempts
        return plan_evaluation(
            settings,
            self.kind,
            run_id=run_id,
            result_id=f"{run_id}:{context['ti'].try_number}",
            published=artifacts.get(self.published["published"]),
            attempts=attempts,
            started_at=context["dag_run"].start_date,
            inventories=True,
        )
