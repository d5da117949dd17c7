"""The time one failure away from harm in the evidence of a period."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from durability.evidence import objectives, period
from durability.evidence.nights import Period
from durability.lake import tables
from durability.plan.inventory import Inventory
from durability.plan.plan import PolicyPart
from tests.support.html import parse
from tests.support.nights import Nights
from tests.support.report_cases import SHA, health_counters
from tests.support.schemas import unnamed

SINCE, NOW = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 27, tzinfo=UTC)
TWO_DAYS = Period(date(2026, 10, 1), date(2026, 10, 3))
EVERY = timedelta(minutes=10)
POLICY = PolicyPart(
    "p",
    SHA,
    {"gold": {"survive": ["broker"]}, "lead": {}},
    "lead",
    readings={"prolonged_after": 1800},
    objectives={"gold": {"writes": 90}},
)


def counted(at: datetime, near: int, result: str = "pulses") -> dict:
    tier = {"tier": "gold", **dict.fromkeys(tables.TIER_COUNTS, 0), "partitions": 10, "one_broker_from_refusing": near}
    return {
        "cluster": "eu",
        "captured_at": at,
        "run_id": result,
        "result_id": result,
        "snapshot_id": "s",
        "tiers": [tier],
    }


@pytest.fixture
def made(lake):
    """A count every ten minutes for two days and an hour, but none for 12 hours of the second day. Six hours
    of the first day have 5 of 10 partitions one failure away. Counts of a run that never ended don't matter.
    """
    nights = Nights(lake)
    nights.run(1, [nights.snapshot("eu", 1)])
    nights.runs[-1]["summary"] = json.dumps(
        {**json.loads(nights.runs[-1]["summary"]), "objectives": objectives.stated(POLICY)}
    )
    nights.write()
    moments = [SINCE - timedelta(minutes=15) + n * EVERY for n in range(297)]
    moments = [at for at in moments if not timedelta(hours=30) <= at - SINCE < timedelta(hours=42)]
    rows = [counted(at, 5 if timedelta(hours=6) <= at - SINCE < timedelta(hours=12) else 0) for at in moments]
    rows += [counted(at + timedelta(minutes=1), 10, "killed") for at in moments[:50]]
    lake.append(tables.HEALTH_COUNTERS, health_counters(rows))
    names = dict.fromkeys(tables.RUNS.arrow.names) | {"run_id": "pulses", "result_id": "pulses", "kind": "pulse"}
    ended = {"captured_at": SINCE + timedelta(hours=1), "finished_at": SINCE + timedelta(days=3), "status": "complete"}
    lake.append(tables.RUNS, pa.Table.from_pylist([names | ended], tables.RUNS.arrow))
    return lake


def test_partition_minutes_of_the_period_against_the_objective(made):
    found = period.document(made, TWO_DAYS, None, NOW)["objectives"]
    rows = {(row["tier"], row["harm"], row["loss"]): row for row in found["found"]}
    assert {tier for tier, _, _ in rows} == {"gold"} and found["uncounted"] == []
    row, minutes = rows["gold", "writes", "broker"], rows["gold", "writes", "broker"]["partition_minutes"]
    assert minutes["all"] == 10 * 48 * 60
    assert minutes["one_failure_away"] == pytest.approx(5 * 6 * 60)
    # Counts were more than half an hour apart from 29:55 to 42:05 alone.
    assert minutes["unknown"] == pytest.approx(10 * (12 * 60 + 10))
    assert (row["objective"], row["state"], row["worst_cluster"]) == (90, "unknown", "eu")
    assert row["budget_used"] == pytest.approx(minutes["one_failure_away"] / (0.1 * minutes["all"]))
    assert rows["gold", "data", "broker"]["objective"] is None and rows["gold", "writes", "rack"]["objective"] is None


def test_the_page_and_the_schema_have_it(made, tmp_path):
    folder, found = period.write(made, TWO_DAYS, tmp_path, None, NOW)
    assert unnamed("period", json.loads(json.dumps(found))) == []
    words, _ = parse((folder / "period.html").read_text(encoding="utf-8"))
    assert "One failure away Partition-minutes of the period" in words
    assert "gold acks=all writes stop broker 6.2 %" in words and "90 % unknown ≥ 62.5 % eu" in words


def test_a_run_that_recorded_no_tiers_makes_it_unknown(lake):
    nights = Nights(lake)
    nights.run(1, [nights.snapshot("eu", 1)])
    found = period.document(nights.write(), TWO_DAYS, None, NOW)
    assert found["objectives"] == {"found": None, "reason": objectives.NOT_RECORDED, "uncounted": [], "other_tiers": []}
    assert f"Time one failure away from harm: {objectives.NOT_RECORDED}." in found["unknown"]


def test_a_period_that_is_not_over_ends_now(made):
    found = period.document(made, TWO_DAYS, None, SINCE + timedelta(hours=12))["objectives"]
    assert {row["partition_minutes"]["all"] for row in found["found"]} == {10 * 12 * 60}


def test_a_tier_that_was_renamed_counts_under_both_names(lake):
    """In the second day, the tier is platinum. A run of documents with another policy decides nothing."""
    nights = Nights(lake)
    renamed = replace(POLICY, tiers={"platinum": {"survive": ["broker"]}}, objectives={"platinum": {"writes": 90}})
    of_document = replace(POLICY, tiers={"scratch": {}}, objectives={})
    for number, (day, policy) in enumerate(((1, POLICY), (2, renamed), (2, of_document))):
        named = {"run_id": f"night-{number}", "result_id": f"night-{number}:1"}
        nights.run(day, [nights.snapshot("eu", day)], **named)
        nights.runs[-1]["summary"] = json.dumps(
            {**json.loads(nights.runs[-1]["summary"]), "objectives": objectives.stated(policy)}
        )
        nights.runs[-1]["inventory"] = None if policy is of_document else Inventory(fleet="f").record()
    nights.write()
    moments = [SINCE - timedelta(minutes=5) + n * EVERY for n in range(291)]
    rows = [counted(at, 0) for at in moments]
    for row in rows:
        if row["captured_at"] >= SINCE + timedelta(days=1):
            row["tiers"][0]["tier"] = "platinum"
    rows[40]["tiers"].append(rows[40]["tiers"][0] | {"tier": "lost"})
    lake.append(tables.HEALTH_COUNTERS, health_counters(rows))
    names = dict.fromkeys(tables.RUNS.arrow.names) | {"run_id": "pulses", "result_id": "pulses", "kind": "pulse"}
    ended = {"captured_at": SINCE, "finished_at": SINCE + timedelta(days=3), "status": "complete"}
    lake.append(tables.RUNS, pa.Table.from_pylist([names | ended], tables.RUNS.arrow))
    document = period.document(lake, TWO_DAYS, None, NOW)
    found = {
        row["tier"]: row
        for row in document["objectives"]["found"]
        if (row["harm"], row["loss"]) == ("writes", "broker")
    }
    assert found.keys() == {"gold", "platinum"}
    assert sum(row["partition_minutes"]["all"] for row in found.values()) == pytest.approx(10 * 48 * 60, rel=0.001)
    assert {row["state"] for row in found.values()} == {"met"}
    assert document["objectives"]["other_tiers"] == ["lost"]
    assert any("no run has a record of tier lost" in said for said in document["unknown"])
