"""### What a failure would cost

Predicts what happens to each partition of a cluster if the named brokers, racks and controllers fail at once. It stops no broker.
The prediction comes from an accepted snapshot in the lake, by default the cluster's newest one, by the same rules as the audit.

With `compare`, it then waits until you have stopped the brokers and they are fenced, reads the cluster again, and compares.

| param | meaning |
|---|---|
| `cluster` | the cluster's name; may be empty if the lake has one cluster |
| `snapshot` | a snapshot's id in the lake; may be empty for the newest accepted one |
| `lose` | what fails, one item per line: `broker:3`, `rack:az2`, `controller:101` |
| `compare` | wait for the loss, and compare it with the prediction |
| `within` | minutes to wait for the loss, after the prediction |

| task | does | when it fails |
|---|---|---|
| `predict` | one Spark job; writes whatif.json, whatif.csv and whatif.html in the out folder | a name is wrong: see its log |
| `wait` | looks every 15 seconds, deferred in between; skipped without `compare` | the log names brokers that are still live |
| `compare` | takes a snapshot, one Spark job; writes drill.json in the out folder | the cluster can't be read: clear the task |

Trigger it by hand with its form. It has no schedule. Audit the cluster right before a drill: what changed since the snapshot is a
difference, too. Connections: `spark` for spark-submit, and with `compare` the cluster's own. Pool: `kafka_durability`, one slot.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.failures import tell_slack
from kafka_durability.whatif import CompareOperator, PredictOperator, WaitForLossOperator

with DAG(
    dag_id="failure_drill",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,  # two would replace each other's files
    dagrun_timeout=timedelta(hours=8),
    default_args=settings.DEFAULTS,
    on_failure_callback=tell_slack,
    params=settings.params() | settings.loss_params(),
    tags=["kafka", "durability"],
):
    predict = PredictOperator(task_id="predict", **settings.EVALUATE)
    wait = WaitForLossOperator(task_id="wait", made=predict.output)
    compare = CompareOperator(task_id="compare", made=predict.output, **settings.EVALUATE)
    wait >> compare
