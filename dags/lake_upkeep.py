"""### Upkeep of the lake, every day

Removes what the policy's `retention` says is old, never what is evidence, what the next run compares with or what a report
may name; then compacts the days that are over, forgets the tables' states of more than three days ago, and removes files
that no table knows. `docs/keeping.md` says what is kept how long, and how a lost catalog is restored.

| task | does | when it fails |
|---|---|---|
| `backup` | writes to `_catalog`, beside the tables, where each one's metadata is | nothing is removed without one; clear it |
| `upkeep` | one Spark job for all tables; its log says what became of each | clear it: it goes on where it stopped |

**Beside other runs**: it starts two and a half hours after `nightly_audit` and may also run beside it and beside pulses.
Whatever a run that isn't over reads or has written is younger than anything that goes, rows are named by their run or
attempt, files that a table no longer shows stay for three days, and staged files are younger than the orphans that go. A
commit that another was quicker than is tried again by Iceberg.

**`upkeep` failed or was killed**: rows in `runs` and `snapshots` go before what they point at, so readers see a run as a whole or
not at all; what is left over goes with the next upkeep. Compaction that failed leaves the files that were there.

**A policy that keeps longer** keeps what is still there; what is gone is gone. Try a shorter one on a copy of the policy with
the param `policy`.

Connection: `spark` for spark-submit. Pool: `kafka_durability`, one slot.
"""

from __future__ import annotations

from datetime import timedelta

import pendulum
from airflow.sdk import DAG
from kafka_durability import settings
from kafka_durability.upkeep import BackupOperator, UpkeepOperator

with DAG(
    dag_id="lake_upkeep",
    doc_md=__doc__,
    schedule="30 4 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,  # what a missed one would have done the next one does
    max_active_runs=1,  # two would compact the same files, and one of them for nothing
    dagrun_timeout=timedelta(hours=8),
    default_args=settings.DEFAULTS,
    params=settings.params(),
    tags=["kafka", "durability"],
):
    backup = BackupOperator(task_id="backup")
    upkeep = UpkeepOperator(task_id="upkeep", **settings.UPKEEP)
    backup >> upkeep
