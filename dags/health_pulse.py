"""### Partition health of the Kafka fleet, every few minutes

The same steps as `nightly_audit` up to the verdicts, with the same rule, but for partition health only. The lake keeps these
rows of a pulse: `snapshots` (kind `pulse`), `health_counters`, `partition_health` (unhealthy partitions only) and `runs`. The
facts are staged for the Spark job, never committed, and removed at the end of the pulse.

| task | does | when it fails |
|---|---|---|
| `plan`, `collect`, `gate` | as in `nightly_audit` | the next pulse comes in minutes; look when several fail in a row |
| `publish` | writes the `snapshots` rows: accepted, rejected or failed, and why | as above |
| `evaluate` | counters and unhealthy partitions, by the same Spark job | as above |
| `conclude` | writes the `runs` row; fails if a cluster could not be read | the row's `snapshots` names the cluster and why |
| `alert` | pages for tiers with `page_after`, also if a cluster is unreadable; all-clear | the lake can't be reached; see below |
| `discard` | removes the staged facts, even after failures | never fails the pulse; see below |
| `restore` | takes back what killed runs of `remediate` and `rack_outage` left | the next pulse tries again |

The `plan` of `nightly_audit` removes staged files that are a day old: those that `discard` could not remove, and those of killed
runs. A pulse that has ended can't be continued by clearing a task in its middle, because its facts are gone. Trigger a new one,
or clear `collect` with everything downstream.

A pulse that is late is skipped, never queued: `max_active_runs` is 1 and there is no catch-up. The nightly digest covers pulses:
`nightly_audit` reads their counters over time, for the control `at-min-isr-over-time` and a timeline per cluster in its report.

`alert` (docs/alerts.md) also runs if `evaluate` failed. Then it decides nothing. It sends what earlier pulses could not send, and
sends open alerts to Alertmanager again. If a receiver can't be reached, the task succeeds and the next pulse tries again.

Optional Connections: `slackwebhook`, `durability_pagerduty`, `durability_alertmanager`, and `durability_heartbeat_pulse`, whose
address `conclude` requests. If a run fails, Slack gets a message, at most once per hour.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.evaluate import EvaluateOperator
from kafka_durability.failures import tell_slack
from kafka_durability.left import RestoreLeftOperator
from kafka_durability.operators import (
    AlertOperator,
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
    catchup=False,  # past health can't be collected any more
    max_active_runs=1,  # a second pulse would ask the same brokers and make a slow pulse slower
    dagrun_timeout=timedelta(minutes=20),
    default_args=settings.PULSE_DEFAULTS,
    on_failure_callback=tell_slack,
    params=settings.params(),
    tags=["kafka", "durability"],
):
    plan = PlanOperator(task_id="plan", kind="pulse")
    collect = CollectOperator.partial(task_id="collect", **settings.COLLECT_PULSE).expand(group=plan.output)
    gate = GateOperator(
        task_id="gate", planned=plan.output, collected=collect.output, kind="pulse", trigger_rule="all_done"
    )
    publish = PublishOperator(task_id="publish", gated=gate.output, kind="pulse")
    evaluate = EvaluateOperator(task_id="evaluate", published=publish.output, kind="pulse", **settings.EVALUATE_PULSE)
    conclude = ConcludePulseOperator(task_id="conclude", evaluated=evaluate.output)
    # none_skipped: it runs after failures too, but not for a fleet without a cluster.
    alert = AlertOperator(task_id="alert", evaluated=evaluate.output, trigger_rule="none_skipped")
    # A teardown also runs after failures. `conclude` decides whether the pulse succeeded.
    discard = DiscardOperator(task_id="discard", collected=collect.output).as_teardown()
    [conclude, alert] >> discard
    RestoreLeftOperator(task_id="restore")
