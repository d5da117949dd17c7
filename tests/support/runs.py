"""Runs of the two DAGs without Airflow: the same steps, with Spark in the test's own session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.findings import write as word
from tests import ROOT
from tests.support import topology
from tests.support.judge import expressions, losses_of
from tests.support.lake import attach
from tests.support.topology import document

SICK = """
    topic    leader  replicas  isr    min
    healthy  1       1,2,3     1,2,3  2
    shrunk   1       1,2,3     1,2    2
    gone     -       1,2,3     1,2,3  2
"""


@pytest.fixture
def session(spark, lake):
    """Spark on the test's lake. A new session, because a session keeps its first catalog."""
    made = spark.newSession()
    attach(made, lake)
    return made


class Runs:
    """Runs the steps of the two DAGs, with Spark in the test's own session."""

    def __init__(self, folder: Path, lake, session, policy: Path = ROOT / "policies" / "policy.yaml"):
        self.folder, self.lake, self.session, self.policy, self.plans = folder, lake, session, policy, []

    def __call__(
        self, kind: str, moment: str, fail_at: str | None = None, documents: Sequence[dict] = ()
    ) -> str | None:
        """A run over documents, or over two clusters at that time. Returns the status, or None if it failed before."""
        from kafka_durability import operators as o

        from durability.steps.conclude import run_row
        from durability.steps.settings import Settings
        from durability.steps.summary import StepSummary

        documents = documents or [document(SICK, cluster=name, captured_at=moment) for name in ("eu", "us")]
        run = topology.write(self.folder / f"{kind}-{moment.replace(':', '')}", *documents)
        context = self.context(kind, moment, run)
        settings = Settings.from_params(context["params"])

        def work(step, **arguments):
            if step.__name__ == fail_at:
                raise InterruptedError(fail_at)
            made = step(task_id=step.__name__.lower(), dag=None, **arguments)
            return made.work(settings, context, StepSummary())

        collected = []
        try:
            from durability.lake import Lake

            Lake.open(settings.lake)
            planned = [[{"name": run.name, "document": str(run)}]]
            collected.append(work(o.CollectOperator, group=planned[0]))
            gated = work(o.GateOperator, planned=planned, collected=collected, kind=kind)
            published = work(o.PublishOperator, gated=gated, kind=kind)
            evaluated = self.evaluate(settings, context, published, kind)
            if kind == "pulse":
                return work(o.ConcludePulseOperator, evaluated=evaluated)
            word(self.lake, self.plans[-1])
            self.lake.commit_run(run_row(self.plans[-1], "complete", True, {}))
            return "complete"
        except InterruptedError:
            return None
        finally:
            if kind == "pulse":
                made = o.DiscardOperator(task_id="discard", collected=collected)
                made.work(settings, context, StepSummary())

    def context(self, kind: str, moment: str, run: Path) -> dict:
        params = {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers", "clusters")}
        params |= {
            "policy": str(self.policy),
            "out": str(self.folder / "out"),
            "lake": self.lake.location,
            "topology": str(run),
        }
        return {
            "params": params,
            "dag": SimpleNamespace(dag_id=f"{kind}_dag"),
            "run_id": f"scheduled__{moment}",
            "ti": SimpleNamespace(try_number=len(self.plans) + 1, map_index=0),
            "dag_run": SimpleNamespace(start_date=datetime(2026, 11, 21, tzinfo=UTC)),
        }

    def evaluate(self, settings, context, published, kind) -> dict:
        from kafka_durability.evaluate import EvaluateOperator
        from kafka_durability.step import artifacts_of

        from durability.plan import Plan
        from spark_jobs import evaluate, lake_tables

        step = EvaluateOperator(task_id="evaluate", published=published, kind=kind)
        plan = Plan.from_json(step.plan(settings, context).to_json())
        self.plans.append(plan)
        reader = lake_tables.reader(self.session, plan)
        with losses_of(plan):
            evaluate.run(self.session, plan, reader, lake_tables.append, expressions(plan.pulse))
        return {"plan": artifacts_of(settings, context).put("plan-1", plan.to_json())}


@pytest.fixture
def run(tmp_path, lake, session):
    return Runs(tmp_path, lake, session)
