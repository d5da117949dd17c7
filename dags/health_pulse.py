"""### Partition health of the Kafka fleet, every few minutes

The same steps as `nightly_audit` up to the verdicts, for `partition-health` alone: counters and unhealthy partitions.
Its snapshots are of kind `pulse`; what they hold beside that is there for the Spark job and may be expired at any time.

| task | does | when it fails |
|---|---|---|
| `plan`, `collect`, `gate` | as in `nightly_audit` | the next pulse comes in minutes; look when several fail in a row |
| `publish` | commits, with `snapshots` rows of kind pulse | as above |
| `evaluate` | partition health, by the same Spark job and rule | as above |
| `conclude` | writes the `runs` row; fails if a cluster could not be read | the row's `snapshots` names the cluster and why |

A pulse that is late is skipped, never queued: `max_active_runs` is 1 and there is no catch-up. Nobody is notified by a
pulse; the nightly digest and whoever reads `health_counters` are.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.evaluate import EvaluateOperator
from kafka_durability.operators import (
    CollectOperator,
    ConcludePulseOperator,
    GateOperator,
    PlanOperator,
    PublishOperator,
)

with DAG(
    dag_id="health_pulse",
    doc_md=__doc__,
    schedule="*/5 * * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,  # health of five minutes ago can't be collected any more
    max_active_runs=1,  # a slow pulse isn't helped by a second one asking the same brokers
    dagrun_timeout=timedelta(minutes=20),
    default_args=settings.PULSE_DEFAULTS,
    params=settings.params(),
    tags=["kafka", "durability"],
):
    plan = PlanOperator(task_id="plan", kind="pulse")
    collect = CollectOperator.partial(task_id="collect", **settings.COLLECT_PULSE).expand(group=plan.output)
    gate = GateOperator(task_id="gate", planned=plan.output, collected=collect.output, trigger_rule="all_done")
    publish = PublishOperator(task_id="publish", gated=gate.output, kind="pulse")
    evaluate = EvaluateOperator(task_id="evaluate", published=publish.output, kind="pulse", **settings.EVALUATE_PULSE)
    conclude = ConcludePulseOperator(task_id="conclude", evaluated=evaluate.output)
