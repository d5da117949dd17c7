"""The step plan refuses wrong files before anything is read, and a scheduled run misses no cluster for a wrong inventory."""

from __future__ import annotations

import logging

import pytest

from durability.errors import BadInput
from durability.steps.plan import plan
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.summary import StepSummary
from tests import ROOT


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Settings of a run whose clusters file has one cluster, a right inventory and a wrong one."""
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    (tmp_path / "right.csv").write_text("id\neu\n")
    (tmp_path / "wrong.csv").write_text("id\neu\neu\n")
    (tmp_path / "clusters.yaml").write_text(
        """
format: durability-clusters/1
clusters: [{id: eu, connection: kafka_eu}]
inventory:
  - {name: first, csv: wrong.csv}
  - {name: second, csv: right.csv}
"""
    )
    files = {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers")}
    asked = files | {"clusters": str(tmp_path / "clusters.yaml"), "out": str(tmp_path / "out"), "topology": None}
    return Settings.from_params(asked | {"lake": str(tmp_path / "lake")})


def test_a_wrong_inventory_is_refused_before_the_lake_is_made(settings, tmp_path):
    with pytest.raises(BadInput, match=r'wrong.csv, line 3: cluster "eu" is there twice'):
        plan(settings, NIGHTLY, StepSummary())
    assert not (tmp_path / "lake").exists()


def test_a_wrong_inventory_costs_a_scheduled_run_that_inventory_alone(settings, caplog):
    summary = StepSummary()
    with caplog.at_level(logging.WARNING):
        [[source]] = plan(settings, NIGHTLY, summary, scheduled=True)
    assert source["name"] == "eu"
    [said] = [record.getMessage() for record in caplog.records if "inventory" in record.getMessage()]
    assert said.startswith("inventory first can't be used: ") and 'cluster "eu" is there twice' in said
    assert said in summary.text


def test_a_wrong_policy_is_refused_in_a_scheduled_run_too(settings, tmp_path):
    wrong = tmp_path / "policy.yaml"
    wrong.write_text("format: durability-policy/1\ntiers: 3\n")
    settings = Settings.from_params({**settings.__dict__, "policy": str(wrong)})
    with pytest.raises(BadInput, match=r"policy.yaml"):
        plan(settings, NIGHTLY, StepSummary(), scheduled=True)
