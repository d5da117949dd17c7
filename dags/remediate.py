"""### Fix findings of a cluster by a plan that is proven first

Makes a plan for a cluster from its newest accepted snapshot in the lake, proves it, and ends there, with success. With `apply`,
it asks for an approval, applies the plan step by step, and says what became of each finding. docs/remediate.md has the details.

A plan is applied only with `apply`, `cluster`, `throttle`, and `allow_changes: true` in the extra of the cluster's Connection.
Otherwise the task `plan` fails before it reads anything.

| task | does | when it fails |
|---|---|---|
| `plan` | makes and proves a plan, or finds the one in the param `plan`; at most two Spark jobs | a param is wrong: see its log |
| `report` | writes the plan and the ACLs that it needs to the log; compares it with the cluster | see its log; clear it |
| `allowed` | ends the run, with success, unless the plan is to be applied | the plan isn't offered: see its README.txt |
| `approve` | waits for an approval; after `approve_within` hours the plan is rejected, and the rest skipped | clear it |
| `apply` | applies the plan; each change is in the lake's table `changes` first | see why it stopped; clear it after `restore` |
| `restore` | takes back throttles and moves in flight, also after a failure | clear it; `health_pulse` does it, too |
| `verify` | takes a snapshot, one Spark job; says per finding whether it is gone | its log names the findings that are left |

**`apply` stopped or was killed**: complete steps stay. Cleared, it reads the table `changes` and the cluster, and goes on. After
a stop it only takes back until `restore` has succeeded. If the cluster was changed by others since, the plan is refused as stale:
trigger a new run. To go back, trigger a run with `undo`.

**The scheduler was killed**: the task `restore` of `health_pulse` and of `lake_upkeep` takes back what was left.

Runs for several clusters may run at once, and at the same time as audits and pulses. Two runs for one cluster exclude each other
by a row in `changes`. `apply` takes no slot of the pool `kafka_durability`. Connections: `spark` for
spark-submit, and the cluster's own.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.failures import tell_slack
from kafka_durability.remediate import (
    AllowedOperator,
    ApplyOperator,
    ApproveOperator,
    MakePlanOperator,
    ReportPlanOperator,
    RestoreOperator,
    VerifyOperator,
)

with DAG(
    dag_id="remediate",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=16,  # one that waits for its approval must not keep other clusters waiting
    dagrun_timeout=timedelta(days=10),
    default_args=settings.DEFAULTS,
    on_failure_callback=tell_slack,
    params=settings.params() | settings.remediate_params(),
    tags=["kafka", "durability"],
):
    plan = MakePlanOperator(task_id="plan", **settings.EVALUATE)
    report = ReportPlanOperator(task_id="report", planned=plan.output)
    allowed = AllowedOperator(task_id="allowed", planned=plan.output)
    approve = ApproveOperator(task_id="approve", shown=report.output, params=settings.approve_params())
    apply = ApplyOperator(task_id="apply", planned=plan.output, approved=approve.output, **settings.APPLY)
    # A teardown runs after failures, too.
    restore = RestoreOperator(task_id="restore", planned=plan.output, approved=approve.output).as_teardown()
    verify = VerifyOperator(
        task_id="verify",
        planned=plan.output,
        approved=approve.output,
        applied=apply.output,
        **settings.EVALUATE,
    )
    report >> allowed >> approve >> apply >> restore >> verify
