"""### Partition health of the Kafka fleet, every few minutes

The same steps as `nightly_audit` up to the verdicts, for partition health alone, by the same rule. What stays in the lake
of a pulse: its rows in `snapshots` (kind `pulse`), `health_counters`, `partition_health` for what isn't healthy, and its
row in `runs`. The facts it read stay staged for the Spark job, are never committed, and are removed when it ends.

| task | does | when it fails |
|---|---|---|
| `plan`, `collect`, `gate` | as in `nightly_audit` | the next pulse comes in minutes; look when several fail in a row |
| `publish` | writes the `snapshots` rows: accepted, rejected or failed, and why | as above |
| `evaluate` | counters and unhealthy partitions, by the same Spark job | as above |
| `conclude` | writes the `runs` row; fails if a cluster could not be read | the row's `snapshots` names the cluster and why |
| `discard` | removes the staged facts, whatever became of the rest | never fails the pulse; see below |

What `discard` could not remove, and what a killed run left, the `plan` of `nightly_audit` removes when it is a day old. A
pulse that has ended can't be continued by clearing a task in its middle: its facts are gone. Trigger a new one, or clear
`collect` with everything downstream.

A pulse that is late is skipped, never queued: `max_active_runs` is 1 and there is no catch-up. A pulse sends no notification; the
nightly digest does. `nightly_audit` reads the pulses' counters over time, for the control `at-min-isr-over-time` and a timeline
per cluster in its report.
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
    DiscardOperator,
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
    # A teardown runs after failures too, and whether the pulse succeeded is for `conclude` to say.
    discard = DiscardOperator(task_id="discard", collected=collect.output).as_teardown()
    conclude >> discard
