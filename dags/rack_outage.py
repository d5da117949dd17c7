"""### A rack is lost: let writes work again, and put everything back afterwards

KIP-1290's "Rack Outage Handling". It says which topics reject acks=all writes because of the lost rack, and ends there, with
success. With `apply`, it asks for an approval, changes these topics, and restores them once the rack is back.
docs/rack-outage.md has the details.

Topics are changed only with `apply`, `cluster`, and `allow_changes: true` in the extra of the cluster's Connection. Otherwise
the task `detect` fails before it reads anything.

| task | does | when it fails |
|---|---|---|
| `detect` | reads twice, 20 seconds apart, which racks have lost all brokers; else skipped | a name is wrong: see its log |
| `assess` | takes a snapshot, one Spark job; writes what the outage costs, and what would be changed, to the log | clear it |
| `approve` | waits for an approval; after `approve_within` hours the change is rejected | clear it |
| `change` | changes the topics that still need it; each change is in the lake's table `changes` first | clear it: it goes on |
| `watch` | looks every 30 seconds whether a topic can be restored, deferred in between | clear it |
| `restore` | restores each topic once its replicas are in sync and it has no ELR, until all are | clear it |
| `conclude` | fails if `change` or `restore` did not succeed | see these tasks |

**A run was killed, or ended early**: the task `restore` of `health_pulse` and of `lake_upkeep` puts back what it changed, once it
can be. So do `watch` and `restore` if you trigger the DAG again for this cluster, with or without `apply`, also if the rack is
back and `detect` is skipped. A second run changes nothing twice.

**The Connection leads to another cluster**: nothing is put back, and the task fails. Let it lead to the former one, and clear it.
If that cluster is gone for good, an approved run for the new one gives its changes up: docs/rack-outage.md.

**What others changed meanwhile** stays. The log of `restore` names it, with the value before the outage.

Runs for several clusters may run at once. Two runs for one cluster exclude each other by a row in `changes`. Connections: `spark`
for spark-submit, and the cluster's own. Pool: `kafka_durability`, one slot while a task works.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.failures import tell_slack
from kafka_durability.outage import (
    ApproveOutageOperator,
    AssessOperator,
    ChangeOperator,
    DetectOperator,
    RestoreOutageOperator,
    WatchOperator,
)

with DAG(
    dag_id="rack_outage",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=16,  # an availability zone has racks of several clusters
    dagrun_timeout=timedelta(days=30),
    default_args=settings.DEFAULTS,
    on_failure_callback=tell_slack,
    params=settings.params() | settings.outage_params(),
    tags=["kafka", "durability"],
):
    detect = DetectOperator(task_id="detect")
    assess = AssessOperator(task_id="assess", detected=detect.output, **settings.EVALUATE)
    approve = ApproveOutageOperator(task_id="approve", shown=assess.output, params=settings.approve_outage_params())
    change = ChangeOperator(task_id="change", assessed=assess.output, approved=approve.output)
    # An earlier run may have changed topics, so these run whatever became of the tasks before.
    watch = WatchOperator(task_id="watch", approve="approve", trigger_rule="all_done")
    restore = RestoreOutageOperator(task_id="restore", approve="approve")
    conclude = EmptyOperator(task_id="conclude", trigger_rule="none_failed")
    change >> watch >> restore
    [change, restore] >> conclude
