"""Upkeep of a lake: what goes is gone, what stays reads as before, and others may write meanwhile."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue

from durability.lake import Lake, partition_groups, retention, tables
from durability.policy import Retention
from spark_jobs.retention import compaction
from spark_jobs.retention.removal import Removed, Upkeep
from spark_jobs.session import table as name_of
from tests import ROOT
from tests.support.airflow import run_dag
from tests.support.history import OF_PULSES, History, age, seen

NOW = datetime(2026, 11, 22, 4, 30, tzinfo=UTC)
DAY = timedelta(days=1)
RETENTION = Retention(snapshots=10 * DAY, findings=50 * DAY, pulses=5 * DAY, counters=80 * DAY)


@pytest.fixture
def history(lake, monkeypatch):
    monkeypatch.setattr(partition_groups, "FROM", 1)  # so that topics of four partitions are grouped, too
    return History(lake, monkeypatch, NOW)


def upkeep(session, lake, tidied):
    """One upkeep as if everything in the lake had been committed when it says so; what it decided, and what it said."""
    real = datetime.now(UTC)
    decided = lake.plan_retention(RETENTION, timedelta(hours=30), NOW)
    decided = replace(
        decided, committed_before=real + DAY, expire_before=real + DAY, orphans_before=real - retention.READ
    )
    said = [r for r in Upkeep(session, decided).remove() if r.dropped or r.rewritten]
    said += [(t.name, line) for t in tidied for line in compaction.maintain(session, t, decided)]
    return decided, said


OF_EACH_KIND = (
    tables.SNAPSHOTS,
    tables.RUNS,
    tables.CLUSTERS,
    tables.PARTITIONS,
    tables.FINDINGS,
    tables.HEALTH_COUNTERS,
)
"""Tables that readers start from, of facts and of results. The test of the DAG tidies all tables."""

KEPT = {table.name: table for table in (tables.DRILLS, tables.CHANGES)}
"""Upkeep removes none of their rows, however old."""


def files(lake) -> dict[str, int]:
    return {t.name: len(lake._tables.committed(t, AlwaysTrue())) for t in tables.TABLES.values()}


def test_what_stays_reads_as_before_and_the_rest_is_gone(lake, session, history):
    history.run(95, "evidence")
    history.run(95 - 1 / 24, "the same night")
    history.run(94, "second of the month")
    history.run(60, "counted only", status="incomplete")
    history.run(20, "found")
    history.publish(history.stage(9, "eu"), sound=False)
    history.run(8, "eu alone", fleet=["eu"])
    for hour in range(2):
        history.run(6 + hour / 24, f"old pulse {hour}", "pulse")
        history.run(2 + hour / 24, f"young pulse {hour}", "pulse")
    history.run(90, "very old pulse", "pulse")
    history.run(70, "never concluded", concluded=False)
    staged = history.stage(0.1, "eu")
    history.run(0.05, "not over", concluded=False)
    for table in KEPT.values():
        lake.append(table, pa.Table.from_pylist([{"cluster": "eu", "captured_at": NOW - 95 * DAY}], table.arrow))

    attempts = {
        name: [s["attempt_id"] for s in r["snapshots"]] for name, r in ((r["result_id"], r) for r in lake.runs())
    }
    stay_in_full = {"evidence", "found", "eu alone"}
    young = {f"young pulse {hour}" for hour in range(2)}
    facts = [s["attempt_id"] for s in lake.snapshots(kind="full") if NOW - s["captured_at"] < 10 * DAY]
    facts += attempts["evidence"] + attempts["found"] + [a for name in young for a in attempts[name]]
    before, many = seen(lake, facts, stay_in_full | young), files(lake)

    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(lambda: [history.publish(history.stage(0.02, f"busy-{n}"))[0] for n in range(2)])
        decided, said = upkeep(session, lake, OF_EACH_KIND)
    meanwhile = [row["attempt_id"] for row in writing.result()]
    assert seen(lake, facts, stay_in_full | young) == before
    assert decided.evidence == ["nightly:evidence", "nightly:found"]
    # Files of which nothing stays are dropped unread; before days were compacted, only counters shared theirs.
    assert {r.table for r in said if isinstance(r, Removed) and r.rewritten} == {"health_counters"}
    assert all(r.dropped for r in said if isinstance(r, Removed) and r.table != "health_counters")
    assert {s["attempt_id"] for s in lake.snapshots()} == {*facts, *meanwhile}
    assert {r["result_id"] for r in lake.runs()} == stay_in_full | young | {"counted only"} | {
        f"old pulse {hour}" for hour in range(2)
    }
    assert {r["attempt_id"] for r in lake.scan(tables.PARTITIONS).to_pylist()} == {*facts, *meanwhile} - {
        a for name in young for a in attempts[name]
    }
    gone = {"the same night", "second of the month", "very old pulse", "never concluded"}
    left = {t.name: set(lake.scan(t)["result_id"].to_pylist()) for t in tables.RESULTS}
    assert not any(found & gone for found in left.values())
    for table in tables.RESULTS:
        pulses = young if table in OF_PULSES else set()
        known = stay_in_full | pulses | {"not over"}
        if table is not tables.HEALTH_COUNTERS:
            assert left[table.name] == known
    topics = lake.scan(tables.HEALTH_COUNTERS, "topic is not null")["result_id"].to_pylist()
    assert set(topics) == stay_in_full | young | {"not over"}
    assert left["health_counters"] == set(topics) | {"counted only"} | {f"old pulse {hour}" for hour in range(2)}
    assert lake.read_staged(staged, tables.PARTITIONS).num_rows == 8
    few = files(lake)
    assert {name for name in few if few[name] >= many[name]} == {"groups", *KEPT} and many["groups"] == 0
    assert all(lake.scan(table).num_rows == 1 for table in KEPT.values())

    again = upkeep(session, lake, OF_EACH_KIND)
    assert again[1] == [] and files(lake) == few
    assert seen(lake, facts, stay_in_full | young) == before


@pytest.mark.parametrize("lake", ["s3"], indirect=True)
def test_on_s3_too_what_stays_reads_as_before(lake, session, history):
    history.run(60, "counted only", status="incomplete")
    history.run(6, "old pulse", "pulse")
    history.run(3, "found")
    history.publish(history.stage(3 - 1 / 24, "asia"))
    staged = history.stage(3, "staged")
    facts = [s["attempt_id"] for s in lake.snapshots(kind="full") if NOW - s["captured_at"] < 10 * DAY]
    before = seen(lake, facts, {"found"})
    # One table of each kind: how the others are tidied is no matter of where the lake is.
    _, said = upkeep(session, lake, (tables.SNAPSHOTS, tables.PARTITIONS, tables.FINDINGS))
    assert seen(lake, facts, {"found"}) == before
    assert {r.table for r in said if isinstance(r, Removed) and r.dropped} >= {"snapshots", "findings", "partitions"}
    assert ("partitions", "files=3->1") in said
    assert {row["result_id"] for row in lake.scan(tables.FINDINGS).to_pylist()} == {"found"}
    assert {r["result_id"] for r in lake.runs()} == {"counted only", "old pulse", "found"}
    rows = lake.scan(tables.PARTITIONS).num_rows
    assert lake.read_staged(staged, tables.PARTITIONS).num_rows == 8
    files_left = lake._tables.committed(tables.PARTITIONS, AlwaysTrue())
    compaction.drop_files(session, name_of(session, "partitions"), sorted(files_left))
    assert lake.scan(tables.PARTITIONS).num_rows == 0
    assert lake._tables.files.footer(files_left.pop()).num_rows == rows, "the file itself stays for now"


SHORT = "snapshots: 10d, findings: 50d, pulses: 5d, counters: 80d, evidence: {each: month, for: 10d}"


@pytest.mark.slow
def test_the_dag_backs_up_removes_what_is_old_and_keeps_the_rest(lake, monkeypatch, tmp_path):
    """With real clocks, on a lake to which nothing has been committed for a week."""
    now = datetime.now(UTC)
    history = History(lake, monkeypatch, now)
    for ago in (90, 60, 20):
        history.run(ago, f"night {ago}")
    history.run(12, "pulse", "pulse")
    history.run(9, "last night")
    attempts = [s["attempt_id"] for r in lake.runs() if r["result_id"] == "last night" for s in r["snapshots"]]
    age(lake, 7)
    before = seen(lake, attempts, {"last night"})
    day = Path(min(lake._tables.committed(tables.FINDINGS, AlwaysTrue())).removeprefix("file://")).parent
    old, young = (day / f"{name}.parquet" for name in ("of-no-table", "of-no-table-yet"))
    for orphan in (old, young):
        orphan.write_bytes(b"left by a task that was killed")
    os.utime(old, 2 * ((now - 7 * DAY).timestamp(),))
    policy = tmp_path / "policy.yaml"
    shipped = (ROOT / "policies" / "policy.yaml").read_text()
    policy.write_text(re.sub(r"^retention:\n(  .*\n)+", f"retention: {{{SHORT}}}\n", shipped, flags=re.M))
    params = {"lake": lake.location, "policy": str(policy), "out": str(tmp_path / "out")}
    spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
    states = run_dag(tmp_path, "lake_upkeep", params, AIRFLOW_CONN_SPARK=spark)
    assert states == dict.fromkeys(("run", "backup", "upkeep", "evidence", "restore"), "success")
    assert list((Path(lake.location) / "warehouse" / "_catalog").glob("*.json"))
    kept = Lake.open(lake.location)
    assert seen(kept, attempts, {"last night"}) == before
    assert {r["result_id"] for r in kept.runs()} == {"last night", "night 20", "night 60", "pulse"}
    assert {row["result_id"] for row in kept.scan(tables.FINDINGS).to_pylist()} == {"last night", "night 20"}
    assert {row["attempt_id"] for row in kept.scan(tables.PARTITIONS).to_pylist()} == set(attempts)
    assert young.exists() and not old.exists()
