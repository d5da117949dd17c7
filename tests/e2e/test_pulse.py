"""Pulses: they judge health from staged facts, leave counters, and are no evidence for the nightly audits around them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.expressions import IsNull

from durability.lake import tables
from durability.steps.task_artifacts import FOLDER, TaskArtifacts
from durability.topology import validate
from tests.support.lake import accepted, publish, stage
from tests.support.policy import shipped
from tests.support.runs import SICK
from tests.support.topology import document

COUNTED = {"clusters": 2, "partitions": 6, "unknown": 0, "offline": 2, "under_min_isr": 0, "at_min_isr": 2}
COUNTED |= {"under_replicated": 2, "at_min_isr_by_configuration": 0, "under_min_isr_by_configuration": 0}
COUNTED |= dict.fromkeys(("under_min_rack_isr", "at_min_rack_isr", "at_min_rack_isr_by_placement", "rack_unknown"), 0)
COUNTED |= dict.fromkeys(tables.ONE_FAILURE, 0) | {"one_broker_from_refusing": 4, "one_rack_from_refusing": 4}
OF_TIER = {"tier": "standard", "partitions": 3, **dict.fromkeys(tables.ONE_FAILURE, 0)}
OF_TIER |= {"one_broker_from_refusing": 2, "one_rack_from_refusing": 2}


def fact_rows(lake) -> dict[str, int]:
    return {t.name: lake.scan(t, columns=["cluster"]).num_rows for t in tables.FACTS}


def staged_files(lake) -> set[Path]:
    """Parquet files of the fact tables, committed or not."""
    folder = Path(lake.location) / "warehouse"
    return {p for t in tables.FACTS for p in folder.rglob("*.parquet") if p.parts[-3] == t.name}


@pytest.mark.slow
def test_nightlies_with_a_pulse_between_them(lake, run):
    assert run("pulse", "2026-11-20T01:55:00Z") == "complete"
    assert lake.scan(tables.PARTITIONS).num_rows == 0 and staged_files(lake) == set()
    assert run("nightly", "2026-11-20T02:00:00Z") == "complete"
    facts, files = fact_rows(lake), staged_files(lake)
    assert facts["partitions"] == 6 and files
    results = {t.name: lake.scan(t).num_rows for t in (tables.RESOLVED_POLICY, tables.FINDINGS, tables.TOPIC_POSTURE)}
    assert run("pulse", "2026-11-20T02:05:00Z") == "complete"
    assert (fact_rows(lake), staged_files(lake)) == (facts, files)
    assert {name: lake.scan(tables.TABLES[name]).num_rows for name in results} == results

    assert run("nightly", "2026-11-21T02:00:00Z") == "complete"
    assert fact_rows(lake) == {name: 2 * rows for name, rows in facts.items()}

    every = early, _, between, second = sorted(lake.runs(), key=lambda r: r["captured_at"])
    assert [r["kind"] for r in every] == ["pulse", "nightly", "pulse", "nightly"]
    assert json.loads(early["summary"]) == json.loads(between["summary"]) == COUNTED
    expected = None
    for each in every:
        sick = lake.results(tables.PARTITION_HEALTH, each).to_pylist()
        seen = sorted((p["cluster"], p["topic"], tuple(p["categories"]), p["cause"]) for p in sick)
        assert [p[:2] for p in seen] == [("eu", "gone"), ("eu", "shrunk"), ("us", "gone"), ("us", "shrunk")]
        assert seen == (expected := expected or seen)
        assert lake.results(tables.HEALTH_COUNTERS, each).num_rows == 6
        # A pulse counts by the tiers of the last night, and knows none before the first one.
        of_clusters = lake.results(tables.HEALTH_COUNTERS, each, IsNull("topic")).to_pylist()
        assert [r["tiers"] for r in of_clusters] == 2 * [None if each is early else [OF_TIER]]

    _, before, _, after = run.plans
    assert {s.cluster: s.previous_result_id for s in after.judged} == dict.fromkeys(("eu", "us"), before.result_id)
    attempts = {s.cluster: s.attempt_id for s in before.judged}
    assert {s.cluster: s.previous_attempt_id for s in after.judged} == attempts
    changes = [f["change"] for f in lake.results(tables.FINDINGS, second).to_pylist() if f["outcome"] == "FAIL"]
    assert changes and set(changes) == {"persisting"}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["GateOperator", "PublishOperator", "ConcludePulseOperator"])
def test_a_pulse_that_fails_leaves_no_staged_file_and_no_run(lake, run, step):
    assert run("pulse", "2026-11-20T02:05:00Z", fail_at=step) is None
    assert staged_files(lake) == set() and lake.runs() == []


def pulse(lake, *documents):
    """Publishes documents as a pulse does; returns the attempts and their rows."""
    attempts = [replace(lake.stage(validate(d, "x.json")), kind="pulse") for d in documents]
    return attempts, lake.publish(attempts, accepted(*attempts))


@pytest.mark.parametrize("table", tables.FACTS, ids=lambda t: t.name)
def test_spark_sees_staged_facts_as_it_sees_committed_ones(lake, session, table, monkeypatch):
    from durability.lake import partition_groups
    from durability.plan import build_plan
    from spark_jobs import lake_tables

    def rows(frame):
        return sorted((r.asDict(recursive=True) for r in frame.drop("attempt_id").collect()), key=str)

    groups = {"type": "classic", "state": "Stable", "in_transition": False, "stateful_tasks": ["0_0"]}
    clients = [{"process": "p", "tags": {"zone": "az1"}, "active": ["0_0"], "standby": []}]
    fleet = [
        document(
            SICK, cluster=name, features={"metadata.version": 27}, unreadable={"/brokers/3/configs": "dead"}, **more
        )
        for name, more in (("eu", {"streams": [{"group": "g", "clients": clients, **groups}]}), ("us", {}))
    ]
    monkeypatch.setattr(partition_groups, "FROM", 1)
    attempts, snapshots = pulse(lake, *fleet)
    publish(lake, *fleet, source="x.json")
    policy = shipped()
    keys = {"run_id": "r", "result_id": "r:1", "kind": "pulse"}
    plan = build_plan(lake, policy=policy, waivers=[], snapshots=snapshots, attempts=attempts, **keys)
    committed = rows(session.table(f"{tables.CATALOG}.{table.identifier}"))
    assert committed and rows(lake_tables.reader(session, plan)(table.name)) == committed
    assert rows(lake_tables.through_python(session, plan, table)) == committed


def test_a_pulse_of_the_same_document_does_not_hide_its_facts(lake):
    doc = document(SICK)
    (full,) = publish(lake, doc)
    _, (row,) = pulse(lake, doc)
    assert (row["kind"], row["snapshot_id"]) == ("pulse", full["snapshot_id"])
    assert lake.last_accepted("test")["attempt_id"] == full["attempt_id"]
    assert [s["kind"] for s in lake.snapshots()] == ["full", "pulse"]


def test_racks_are_carried_from_the_last_snapshot_that_has_facts(lake):
    publish(lake, document(SICK, brokers="1:az1 2:az2 3:az3", captured_at="2026-11-20T02:00:00Z"))
    pulse(lake, document(SICK, brokers="1:az1 2:az2 3:moved", captured_at="2026-11-20T02:05:00Z"))
    down = document(SICK, brokers="1:az1 2:az2 3:!", unreadable={"/brokers/3/rack": "dead"})
    brokers = lake.read_staged(stage(lake, down), tables.BROKERS).to_pylist()
    assert [(b["rack"], b["rack_state"]) for b in brokers if b["broker"] == 3] == [("az3", "carried")]


def test_a_cluster_that_cant_be_read_is_recorded_as_of_a_pulse_and_names_the_pulse_before(lake):
    from durability.plan import build_plan

    publish(lake, document(SICK, cluster="eu", captured_at="2026-11-20T02:00:00Z"))
    _, (last,) = pulse(lake, document(SICK, cluster="eu", captured_at="2026-11-20T02:05:00Z"))
    rows = lake.record_failures([("eu", datetime(2026, 11, 20, 2, 10, tzinfo=UTC), "no route")], "pulse")
    assert [r["kind"] for r in rows] == ["pulse"]
    plan = build_plan(
        lake,
        run_id="r",
        result_id="r:1",
        kind="pulse",
        policy=shipped(),
        waivers=[],
        snapshots=rows,
    )
    assert plan.snapshots[0].stale_snapshot.snapshot_id == last["snapshot_id"]
    assert plan.staged == {} and lake.scan(tables.RESOLVED_POLICY).num_rows == 0


def test_what_is_committed_is_never_discarded(lake):
    committed, loose = (stage(lake, document(SICK, cluster=name)) for name in ("kept", "loose"))
    lake.publish([committed], accepted(committed))
    assert lake.discard([committed, loose]) == sum(map(len, loose.files.values()))
    assert lake.read_staged(committed, tables.PARTITIONS).num_rows == 3
    assert lake.discard([committed, loose]) == 0


def test_orphans_go_when_they_are_a_day_old(lake):
    publish(lake, document(SICK, cluster="kept"))
    old, young = (stage(lake, document(SICK, cluster=name)) for name in ("old", "young"))
    paths = {p.removeprefix("file://") for files in old.files.values() for p in files}
    long_ago = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    for path in {str(p) for p in staged_files(lake)} - {
        p.removeprefix("file://") for files in young.files.values() for p in files
    }:
        os.utime(path, (long_ago, long_ago))
    assert lake.discard_orphans() == len(paths)
    assert not any(Path(p).exists() for p in paths)
    assert lake.read_staged(young, tables.PARTITIONS).num_rows == 3
    assert lake.facts(tables.PARTITIONS, lake.last_accepted("kept")).num_rows == 3


def test_two_dags_due_at_the_same_minute_keep_their_artifacts_apart(tmp_path):
    run_id = "scheduled__2026-11-21T02:00:00+00:00"
    nightly, pulse = (TaskArtifacts(str(tmp_path), dag, run_id) for dag in ("nightly_audit", "health_pulse"))
    references = [artifacts.put("gate", number) for number, artifacts in enumerate((nightly, pulse))]
    assert [nightly.get(reference) for reference in references] == [0, 1]
    for reference in references:
        os.utime(tmp_path / FOLDER / reference, (0, 0))
    pulse.prune(1)
    assert nightly.get(references[0]) == 0
    assert not (tmp_path / FOLDER / references[1]).parent.exists()
