"""Since when a rack is lost, from what earlier runs and pulses counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.lake.tables import RUNS
from durability.plan.plan import LookBack, PolicyPart
from durability.report.data import lost_racks, moments
from tests.support.report_cases import health_counters, plan, snapshot

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
LOST = {"eu-payments": [{"rack": "az2", "brokers": [2]}]}
GAPS = {"eu-payments": timedelta(hours=2)}
# The racks that were lost at each hour before now, the newest first; x: nothing was counted, ?: by a run that was broken off.
CASES = [  # history, hours without a gap, hours whatever the gaps, may it be older than the rows
    ("az2", 0, 0, True),
    ("az2 -", 0, 0, False),
    ("az2 az2 -", 1, 1, False),
    ("az2 az2,az1 az2 az1 az2", 2, 2, False),
    ("az2 x az2 -", 2, 2, False),
    ("az2 ? az2 -", 2, 2, False),
    ("az2 az2 az2 ?", 2, 2, True),
    ("az2 az2 x x az2 az2 -", 1, 5, False),
    ("az2 x x az2 az2", 0, 4, True),
    ("az2 x x -", 0, 0, False),
]


def counted(history: str) -> tuple[pa.Table, pa.Table]:
    hours = [(NOW - timedelta(hours=h), said) for h, said in enumerate(history.split()) if said != "x"]
    rows = [
        {
            "cluster": "eu-payments",
            "captured_at": at,
            "result_id": "broken off" if said == "?" else "pulse",
            "lost_racks": [{"rack": r, "brokers": [2]} for r in said.split(",") if r.startswith("az")],
        }
        for at, said in hours
    ]
    return health_counters(rows), pa.Table.from_pylist([{"result_id": "pulse", "finished_at": NOW}], RUNS.arrow)


def planned(look_back: LookBack | None):
    policy = PolicyPart("p", "0" * 64, {}, None, readings={"look_back": 24 * 3600}, maintenance=[])
    return plan(snapshots=[snapshot("eu-payments")], policy=policy, look_back=look_back)


def lost(hours, perhaps):
    return {("eu-payments", "az2"): (NOW - timedelta(hours=hours), NOW - timedelta(hours=perhaps))}


@pytest.mark.parametrize("history, hours, perhaps, older", CASES)
def test_lost_without_a_break_since(history, hours, perhaps, older):
    rows = moments.concluded(*counted(history), planned(None))
    found, throughout = lost_racks.first_lost(rows, GAPS, planned(None), LOST)
    assert found == lost(hours, perhaps)
    assert throughout == ({"eu-payments"} if older else set())


def test_an_outage_older_than_the_look_back_is_followed_to_its_start():
    counters, runs = counted("az2 az2 az2 az2 -")
    scans = []

    def scan(table, where, columns):
        scans.append(str(where))
        return runs if table is RUNS else counters.slice(0, 2 if "captured_at" in str(where) else None)

    made = planned(LookBack("2026-11-21T00:30:00Z", {}))
    found = lost_racks.since(SimpleNamespace(scan=scan), made, LOST, GAPS)
    assert found == lost(3, 3)
    assert len(scans) == 4
    # And where the look-back shows the start, nothing more is read.
    counters, runs = counted("az2 -")
    assert lost_racks.since(SimpleNamespace(scan=scan), made, LOST, GAPS) == lost(0, 0)
    assert len(scans) == 6


def test_without_a_past_it_is_this_snapshot():
    assert lost_racks.since(None, planned(None), LOST, {}) == lost(0, 0)
    assert lost_racks.since(None, planned(None), {}, {}) == {}
