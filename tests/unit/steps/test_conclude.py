"""The rows of `runs`: sums of a pulse, and what a nightly run records of its policy."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from durability.lake import tables
from durability.plan.plan import PolicyPart
from durability.steps.conclude import commit, conclude_pulse
from durability.steps.summary import StepSummary
from tests.support.report_cases import NIGHT, SHA, flagged, health_counters, plan, snapshot

RESULT = {"topic": None, "captured_at": NIGHT, "run_id": "run-1", "result_id": "result-1"}
NEAR = dict.fromkeys(tables.ONE_FAILURE, 2)


class Settings:
    def __init__(self, lake):
        self.open_lake = lambda: lake


@pytest.mark.parametrize(("other", "near"), [(NEAR, 4), ({}, None)])
def test_a_sum_of_some_clusters_is_not_the_sum_of_all(lake, other, near):
    parts = [snapshot(c, captured_at=NIGHT.isoformat()) for c in ("eu", "us")]
    rows = [{**RESULT, "cluster": "eu", "offline": 1, **NEAR}, {**RESULT, "cluster": "us", "offline": 2, **other}]
    of_topic = {**RESULT, "cluster": "eu", "topic": "orders", "offline": 1, **NEAR}
    lake.append(tables.HEALTH_COUNTERS, health_counters([*rows, of_topic]))
    summary = StepSummary()
    made = plan(kind="pulse", snapshots=parts, started_at=(NIGHT - timedelta(minutes=1)).isoformat())
    assert conclude_pulse(Settings(lake), made, summary) == "complete"
    (row,) = lake.runs("pulse")
    counted = json.loads(row["summary"])
    assert (counted["clusters"], counted["offline"]) == (2, 3)
    assert {name: counted[name] for name in tables.ONE_FAILURE} == dict.fromkeys(tables.ONE_FAILURE, near)
    assert summary.text == "complete; offline 3"


def test_a_nightly_run_records_what_the_evidence_of_a_period_needs_of_its_policy(lake):
    """The lake has no policy, and objectives are no part of its fingerprint."""
    policy = PolicyPart(
        "p",
        SHA,
        {"gold": {"survive": ["rack"]}},
        "gold",
        readings={"prolonged_after": 60},
        objectives={"gold": {"writes": 99}},
    )
    commit(lake, plan(policy=policy), flagged())
    (row,) = lake.runs("nightly")
    tiers = {"gold": {"survive": ["rack"], "objective": {"writes": 99}}}
    assert json.loads(row["summary"])["objectives"] == {"tiers": tiers, "gap_seconds": 60}
