"""The Spark job of a run: one session for the whole fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from durability.launch import ready
from kafka_durability import handover
from kafka_durability.spark_job import SparkJob
from kafka_durability.step import Settings, told

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.run import Plan


class EvaluateOperator(SparkJob):
    """Builds the run's plan and submits `spark_jobs/evaluate.py` with it, or hands it to one that waits (`ready`).

    Results are written under a `result_id` that is new with every try, so a cleared task never mixes with an earlier
    one. Returns a reference to the plan, see `durability.run.Plan`.
    """

    template_fields = (*SparkJob.template_fields, "published")

    def __init__(self, *, published: Any, kind: str, **kwargs: Any):
        super().__init__(job="evaluate.py", **kwargs)
        self.published, self.kind = published, kind
        self._waiting: ready.Waiting | None = None

    def execute(self, context: Mapping[str, Any]) -> dict[str, str]:
        with told(self.task_id) as notes:
            from durability.lake import Lake

            settings = Settings.of(context)
            lake = Lake.open(settings.lake)
            plan = self._plan(lake, settings, context)
            try:
                self._judge(lake, plan, context)
            except Exception:
                from durability.run import inputs

                # A damaged file is named; anything else is Spark's own failure, and goes on as it is.
                inputs.check(lake, plan)
                raise
            notes.text = f"{len(plan.judged)} of {len(plan.snapshots)} clusters, {plan.partitions:,} partitions"
            name = f"plan-{context['ti'].try_number}"
            return {"plan": handover.put(settings.lake, handover.run_of(context), name, plan.to_json())}

    def _judge(self, lake: Lake, plan: Plan, context: Mapping[str, Any]) -> None:
        self._waiting = ready.taken(lake.location, plan.partitions)
        if self._waiting and self._waiting.give(plan.to_json()):
            if (status := self._waiting.ended(self.log.info)) != 0:
                raise AirflowException(f"Spark's job failed, exit status {status}; its log is above")
            return
        if self._waiting:
            self._waiting.ended(self.log.warning)
            self.log.warning("the Spark session that was started beforehand has ended, see above; another is started")
            self._waiting = None
        self.submit(lake, plan.partitions, lambda folder: ["--plan", str(plan.write(folder / "plan.json"))], context)

    def on_kill(self) -> None:
        if self._waiting:
            self._waiting.stop()
        else:
            super().on_kill()

    def _plan(self, lake: Lake, settings: Settings, context: Mapping[str, Any]) -> Plan:
        from durability.policy import load_clusters, load_policy, load_waivers
        from durability.run import build_plan
        from kafka_durability.operators import attempts_of

        run_id = f"{context['dag'].dag_id}:{context['run_id']}"
        return build_plan(
            lake,
            run_id=run_id,
            result_id=f"{run_id}:{context['ti'].try_number}",
            kind=self.kind,
            policy=load_policy(settings.policy),
            waivers=load_waivers(settings.waivers),
            snapshots=handover.get(settings.lake, self.published["published"]),
            clusters=[] if settings.topology else load_clusters(settings.clusters),
            attempts=attempts_of(handover.get(settings.lake, self.published["gated"])) if self.kind == "pulse" else [],
            started_at=context["dag_run"].start_date,
        )
