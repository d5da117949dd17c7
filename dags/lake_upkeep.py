"""### Upkeep of the lake, every day

Removes data that is old by the policy's `retention`. It keeps evidence, data that the next run compares with, and data that a
report may name. Then it compacts past days, expires table states of more than three days ago, and removes files that no table
knows. `docs/keeping.md` says what is kept for how long, and how to restore a lost catalog.

| task | does | when it fails |
|---|---|---|
| `backup` | writes each table's metadata location to `_catalog` | nothing is removed without it; clear it |
| `upkeep` | one Spark job for all tables; its log has a line per action | clear it: it continues where it stopped |
| `evidence` | completes the copies of runs' evidence in the policy's bucket, and removes old folders in `evidence` | clear it |
| `restore` | takes back what killed runs of `remediate` and `rack_outage` left, where Connections allow changes | clear it |

**Concurrent runs**: it starts two and a half hours after `nightly_audit` and may run at the same time as it and as pulses. Data
that an unfinished run reads or has written is younger than anything that is removed. Rows are selected by their run or attempt.
Files that a table no longer refers to are kept for three days. Iceberg retries a commit that lost against another one.

**`upkeep` failed or was killed**: rows in `runs` and `snapshots` are removed before the rows that they refer to. So readers see a
complete run or none. The next upkeep removes the rest. If compaction fails, the old files stay.

**A longer retention** keeps what is still there. **A shorter retention** removes data in the next run, also if the
param `policy` names it. There is no dry run, and removed data can't be recovered.

**`give_up`**: a cluster that is gone for good, and that the clusters file doesn't list any more. What runs of `remediate` and
`rack_outage` didn't finish on it is closed.

Connection: `spark` for spark-submit. Pool: `kafka_durability`, one slot.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.failures import tell_slack
from kafka_durability.left import RestoreLeftOperator
from kafka_durability.upkeep import BackupOperator, EvidenceOperator, UpkeepOperator

with DAG(
    dag_id="lake_upkeep",
    doc_md=__doc__,
    schedule="30 4 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,  # the next upkeep does the work of a missed one
    max_active_runs=1,  # two would compact the same files, and one of the two commits would fail
    dagrun_timeout=timedelta(hours=8),
    default_args=settings.DEFAULTS,
    on_failure_callback=tell_slack,
    params=settings.params() | {"give_up": settings.GIVE_UP},
    tags=["kafka", "durability"],
):
    backup = BackupOperator(task_id="backup")
    upkeep = UpkeepOperator(task_id="upkeep", **settings.UPKEEP)
    backup >> upkeep
    EvidenceOperator(task_id="evidence")
    RestoreLeftOperator(task_id="restore")
