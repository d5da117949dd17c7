"""A cluster's history as documents and as pulses: counted once, read over time, and nothing of it where there is none."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from durability.lake import tables
from durability.plan import Plan, build_plan, inputs
from durability.report.data import lost_racks, moments, timeline
from tests import ROOT
from tests.support.lake import publish
from tests.support.policy import shipped
from tests.support.runs import Runs
from tests.support.topology import document

START = datetime(2026, 11, 21, 0, 0, tzinfo=UTC)
CONTROL = "at-min-isr-over-time"


def at(minutes: int) -> str:
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def seen(minutes: int, isr: str, cluster: str = "eu", live: str = "1:az1 2:az2 3:az3") -> dict:
    """A cluster in which `orders` (of two partitions) has this ISR, and `whole` has all of its replicas."""
    table = f"""
        topic   replicas  isr    min
        orders  1,2,3     {isr}  2
        orders  1,2,3     1,2,3  2
        whole   1,2       1,2    2
    """
    return document(table, cluster=cluster, captured_at=at(minutes), brokers=live)


def over_time(lake) -> dict:
    """(cluster, resource) -> outcome, or readings with since and changes, of the newest run."""
    run = max(lake.runs("nightly"), key=lambda r: r["finished_at"])
    found: dict = {}
    for f in lake.results(tables.FINDINGS, run).to_pylist():
        if f["control"] != CONTROL or f["change"] == "resolved":
            continue
        observed = json.loads(f["observed"])
        told = (observed["reading"], observed["since"], observed["changes"]) if f["outcome"] == "FAIL" else f["outcome"]
        found.setdefault((f["cluster"], f["resource"]), []).append(told)
    return found


HISTORY = [
    *(seen(m, "1,2,3") for m in (0, 5, 10)),
    *(seen(m, "1,2", live="1:az1 2:az2 3:az3!") for m in range(15, 61, 5)),
]
PROLONGED, BOUNCING = [("prolonged", at(15), 1)], [("bouncing", at(5), 3)]


@pytest.mark.slow
def test_a_folder_of_one_clusters_history_and_pulses_of_another(lake, session, tmp_path):
    """`eu` has a folder of documents, `asia` has pulses, `us` has neither."""
    policy = tmp_path / "policy.yaml"
    # Nothing here is about losses, which take a third of an evaluation.
    policy.write_text(re.sub(r"^ +survive: .*\n", "", (ROOT / "policies" / "policy.yaml").read_text(), flags=re.M))
    run = Runs(tmp_path, lake, session, policy)
    for minutes, isr in ((0, "1,2,3"), (5, "1,2"), (10, "1,2,3")):
        assert run("pulse", at(minutes), documents=[seen(minutes, isr, "asia")]) == "complete"
    night = [*HISTORY, seen(60, "1,2", "us"), seen(18, "1,2", "asia")]
    # A run that breaks off has counted nothing.
    run.lake.commit_run = _broken
    with pytest.raises(RuntimeError):
        run("nightly", at(60), documents=night)
    del run.lake.commit_run
    assert run("nightly", at(60), documents=night) == "complete"
    assert len(run.plans[-1].look_back.uncounted) == len(HISTORY) - 1
    expected = {
        ("eu", "eu"): PROLONGED,
        ("eu", "orders"): PROLONGED,
        ("eu", "whole"): ["PASS"],  # at min ISR by configuration alone
        ("us", "us"): ["NOT_APPLICABLE"],  # no history
        ("asia", "asia"): BOUNCING,
        ("asia", "orders"): BOUNCING,
        ("asia", "whole"): ["PASS"],
    }
    assert over_time(lake) == expected
    written = lake.scan(tables.HEALTH_COUNTERS, "topic is null").to_pylist()
    counted = [r for r in written if r["result_id"] == run.plans[-1].result_id]
    assert sorted(r["captured_at"] for r in counted if r["cluster"] == "eu") == [
        START + timedelta(minutes=m) for m in range(0, 61, 5)
    ]
    assert len({r["snapshot_id"] for r in counted}) == len(counted) == len(night)
    last = [r for r in counted if r["captured_at"] == START + timedelta(minutes=60) and r["cluster"] == "eu"]
    assert [r["out_of_sync"] for r in last] == [[3]]

    # The report's timeline, and the look for damaged files, read as far back.
    readings = moments.readings(lake, run.plans[-1])
    (of_eu,) = [t for t in timeline.read(lake, run.plans[-1], readings) if t.cluster == "eu"]
    # Two: the second partition's ISR names the dead broker 3.
    assert (of_eu.points[0].first, of_eu.points[-1].last, of_eu.peak) == (START, START + timedelta(minutes=60), 2)
    inputs.check(lake, run.plans[-1])
    lost = {"eu": [{"rack": "a", "brokers": [1]}]}
    assert lost_racks.since(lake, run.plans[-1], lost, moments.gaps(readings)) == {
        ("eu", "a"): (START + timedelta(minutes=60),) * 2
    }

    # And the night goes on: the newest document alone, the rest is in the lake and counted. `asia` had a day without pulses.
    night = [seen(65, "1,2,3"), seen(18 + 1500, "1,2,3", "asia")]
    assert run("nightly", at(65), documents=night) == "complete"
    assert run.plans[-1].look_back.uncounted == []
    found = over_time(lake)
    of_eu = {resource: said for (cluster, resource), said in found.items() if cluster == "eu"}
    assert of_eu == {resource: ["PASS"] for resource in ("eu", "orders", "whole")}
    newest = max(lake.runs("nightly"), key=lambda r: r["finished_at"])
    rows = [f for f in lake.results(tables.FINDINGS, newest).to_pylist() if f["control"] == CONTROL]
    # After a day without pulses nothing is claimed, and what was found isn't said to be mended.
    of_asia = [f for f in rows if f["cluster"] == "asia"]
    assert of_asia and {f["outcome"] for f in of_asia} <= {"UNKNOWN", "NOT_APPLICABLE"}
    gone = [f for f in rows if f["change"] == "resolved"]
    assert {f["cluster"] for f in gone} == {"eu"}
    assert {(f["resource"], f["category"], f["why"]) for f in gone} == {
        ("eu", "prolonged", "cause-cleared"),
        ("orders", "prolonged", "cause-cleared"),
    }


def _broken(_):
    raise RuntimeError("no more")


def plan(lake, rows, kind="nightly") -> Plan:
    return build_plan(lake, run_id="r", result_id="r:1", kind=kind, policy=shipped(), waivers=[], snapshots=rows)


def test_a_plan_without_history_looks_back_on_nothing(lake):
    (row,) = publish(lake, seen(0, "1,2,3"))
    assert plan(lake, [row]).look_back is None
    (_, of_us) = publish(lake, seen(5, "1,2,3"), seen(5, "1,2,3", "us"))
    assert plan(lake, [of_us]).look_back is None, "another cluster's history"
    (older,) = publish(lake, seen(-60 * 24 * 3, "1,2,3", "us"))
    assert plan(lake, [of_us]).look_back is None, "long before"
    assert plan(lake, [older]).look_back is None, "what came later"


def test_a_plan_with_history_names_what_nobody_has_counted(lake):
    rows = publish(lake, seen(0, "1,2,3"), seen(5, "1,2"), seen(10, "1,2"))
    lake.record_failures([("eu", START + timedelta(minutes=7), "no route")])
    back = plan(lake, [rows[-1]]).look_back
    assert [e.attempt_id for e in back.uncounted] == [r["attempt_id"] for r in rows[:2]]
    assert back.tried == {"eu": 3} and back.since == "2026-11-19T18:10:00Z"
    assert Plan.from_json(plan(lake, [rows[-1]]).to_json()).look_back == back


def test_a_year_of_pulses_costs_what_its_last_days_do(lake, session):
    """One file a day stands for its pulses; Spark opens those of the look-back alone."""
    from pyspark.sql import functions as F

    from spark_jobs.assemble import past as history
    from spark_jobs.session import table

    days = [START - timedelta(days=n) for n in range(60)]
    for day in days:
        keys = {"cluster": "eu", "captured_at": day, "snapshot_id": str(day), "result_id": f"pulse-{day}"}
        counts = dict.fromkeys(history.COUNTERS[:-1], 0)
        lake.append(tables.HEALTH_COUNTERS, _rows(tables.HEALTH_COUNTERS, keys | counts))
        lake.append(tables.RUNS, _rows(tables.RUNS, {**keys, "kind": "pulse", "finished_at": day}))
    (row,) = publish(lake, seen(60, "1,2,3"))
    lake.append(tables.SNAPSHOTS, _rows(tables.SNAPSHOTS, {**row, "kind": "pulse", "captured_at": days[1]}))
    made = plan(lake, [row])
    assert made.look_back
    captured = F.lit(at(60)).cast("timestamp")
    counted = history.counted(made, made.look_back, lambda name: session.table(table(session, name)), captured)
    assert {r.captured_at.replace(tzinfo=UTC) for r in counted.select("captured_at").collect()} == {*days[:2]}
    scans = [line for line in counted._jdf.queryExecution().toString().splitlines() if "BatchScan" in line]
    assert len(scans) == 2
    for scan in scans:
        assert "captured_at >= " in scan.partition("filters=")[2], scan


def _rows(of, row: dict):
    return pa.Table.from_pylist([{n: v for n, v in row.items() if n in of.arrow.names}], of.arrow)
