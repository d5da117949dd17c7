"""### Nightly durability audit of the Kafka fleet

Collects every cluster of `policies/clusters.yaml` (or topology documents), checks the snapshots, commits them to the lake and
evaluates them with Spark. Great Expectations checks Spark's verdicts. Then it writes findings with texts, and the reports.

| task | does | when it fails |
|---|---|---|
| `plan` | reads policy, waivers, clusters; partitions the sources into groups | a file is wrong; see its log |
| `collect` | one mapped task per group, all at once; one result per cluster; commits nothing | a worker was lost: clear it |
| `gate` | rejects snapshots that contradict themselves | the lake can't be reached; clear it |
| `publish` | commits accepted snapshots, the `snapshots` rows last | clear it; after a day, clear `collect` |
| `evaluate` | one Spark job for the fleet | its log has Spark's; a clear writes under a new result id |
| `cross_check` | Great Expectations over the posture; differences become UNKNOWN | clear it; see below |
| `findings` | writes findings with texts once, then the `runs` row | clear it; existing findings are kept |
| `report` | the files of a report (docs/findings.md) in the out folder, and their evidence | clear it |
| `notify` | digests to Slack, of the fleet and of teams, where there are Connections | never fails the audit; see its log |
| `conclude` | fails if a cluster is missing or a verdict unverified | see below |

**`conclude` failed**: the report is written and says which clusters are UNKNOWN and why. Fix the cause (address, ACLs, broker)
and trigger a new run. Clearing `collect` with everything downstream also works and reads those clusters again.

**`cross_check` again after `findings`**: if it finds other differences than before, `findings` fails and says so. Clear
`evaluate` with everything downstream: verdicts, differences and findings are written under a new result id.

**Other DAGs** can be scheduled on the Asset `kafka_durability_findings`, whose event `report` sends (docs/airflow.md).

**A whole run again**: clear `plan` with everything downstream. Until `findings` has written its row, readers see the
previous run. `notify` sends no digest twice.

Connections: one of type `kafka` per cluster, as named in `clusters.yaml`; `spark` for spark-submit; optionally one of type
`slackwebhook` for the digest and for failed runs, with the id `slackwebhook`, else `slack_default`; optionally
`kafka_durability_signing` with the key that signs the evidence, and `durability_heartbeat_nightly`, whose address
`conclude` requests (docs/alerts.md). Pool: `kafka_durability` (see
`docker-compose.yml`).
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.assets import FINDINGS
from kafka_durability.evaluate import EvaluateOperator
from kafka_durability.failures import tell_slack
from kafka_durability.operators import (
    CollectOperator,
    ConcludeOperator,
    CrossCheckOperator,
    FindingsOperator,
    GateOperator,
    NotifyOperator,
    PlanOperator,
    PublishOperator,
    ReportOperator,
)

with DAG(
    dag_id="nightly_audit",
    doc_md=__doc__,
    schedule="0 2 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,  # a past night can't be collected any more
    max_active_runs=1,  # each of two runs would take the other's results for "the previous run"
    dagrun_timeout=timedelta(hours=6),
    default_args=settings.DEFAULTS | {"alone": True},
    on_failure_callback=tell_slack,
    params=settings.params() | settings.report_params(),
    tags=["kafka", "durability"],
):
    plan = PlanOperator(task_id="plan", kind="nightly")
    collect = CollectOperator.partial(task_id="collect", keep=True, **settings.COLLECT).expand(group=plan.output)
    # all_done: after the loss of a group, its clusters are reported by name, and the others still get their report.
    gate = GateOperator(
        task_id="gate", planned=plan.output, collected=collect.output, kind="nightly", trigger_rule="all_done"
    )
    publish = PublishOperator(task_id="publish", gated=gate.output, kind="nightly", outlets=[settings.SNAPSHOTS])
    evaluate = EvaluateOperator(task_id="evaluate", published=publish.output, kind="nightly", **settings.EVALUATE)
    cross_check = CrossCheckOperator(task_id="cross_check", evaluated=evaluate.output)
    findings = FindingsOperator(task_id="findings", evaluated=evaluate.output, flagged=cross_check.output)
    report = ReportOperator(task_id="report", evaluated=evaluate.output, flagged=cross_check.output, outlets=[FINDINGS])
    # A killed teardown doesn't fail the run, and a digest must not.
    notify = NotifyOperator(task_id="notify", reported=report.output, **settings.NOTIFY).as_teardown()
    conclude = ConcludeOperator(
        task_id="conclude", evaluated=evaluate.output, flagged=cross_check.output, reported=report.output
    )
    findings >> report
