"""A loss that happens on a cluster of one's own: when it can be seen, and what is said while it doesn't happen."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from durability.errors import Refused, Unreachable
from durability.lake import Lake
from durability.lake.tables import DRILLS
from durability.report import whatif
from durability.steps import drill, evaluate
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

STATED = {
    "cluster": "eu",
    "lose": {"asked": ["rack:az1"], "brokers": [1, 4], "controllers": [101], "down_already": []},
    "quorum": {"voters": 3, "left": 2, "needed": 2, "kept": True},
}


@pytest.fixture
def settings(tmp_path) -> Settings:
    clusters = [{"id": "eu", "connection": "kafka_eu", "provider": "self"}]
    path = tmp_path / "clusters.yaml"
    path.write_text(json.dumps({"format": "durability-clusters/1", "clusters": clusters}))
    return Settings(path, path, path, tmp_path / "out", str(tmp_path / "lake"), None)


def test_a_cluster_is_read_again_through_its_connection(settings):
    assert drill.source(settings, "eu")["connection"] == "kafka_eu"
    with pytest.raises(Refused, match=r"doesn't list cluster us.*: add it there. It lists: eu"):
        drill.source(settings, "us")


def test_a_loss_that_metadata_cannot_show_is_not_waited_for():
    drill.comparable(STATED)
    drill.comparable(STATED | {"quorum": None})
    with pytest.raises(Refused, match="names no broker"):
        drill.comparable(STATED | {"lose": STATED["lose"] | {"brokers": []}})
    with pytest.raises(Refused, match="takes the controllers' majority"):
        drill.comparable(STATED | {"quorum": STATED["quorum"] | {"kept": False}})


def test_brokers_that_are_still_live_are_named():
    many = frozenset(range(1, 41))
    assert str(drill.late(many, frozenset({7, 99}), 5)).startswith(
        "the loss didn't happen within 5 minutes: broker 7 is"
    )
    assert "19, 20 and 20 more are still live" in str(drill.late(many, many, 5))
    silent = str(drill.late(many, None, 5, "cluster eu can't be reached"))
    assert silent == "the loss could not be seen within 5 minutes: cluster eu can't be reached. Nothing was compared"


def test_a_prediction_whose_file_is_gone_is_refused(tmp_path):
    with pytest.raises(Refused, match="the prediction can't be read"):
        drill.Predicted("r", "r:1", tmp_path / "whatif.json").stated()


def test_the_new_snapshot_is_judged_with_nothing_lost_and_compared(settings, tmp_path, monkeypatch):
    """Spark and the cluster are stood in for: their answers are compared in tests/unit/report/test_drill.py."""
    row = {"topic": "orders", "partitions": [0, 1], "before": "NONE", "leader_before": 2}
    rows = {
        "r:1": [{**row, "now": "NONE", "leader_after": 2}],
        "seen:1": [{**row, "partitions": [0], "now": "NONE"}, {**row, "partitions": [1], "leader_before": 3}],
    }
    snapshot = {"cluster": "eu", "snapshot_id": "s2", "captured_at": datetime(2026, 11, 21, 3, tzinfo=UTC)}
    file, submitted, summary = tmp_path / "whatif.json", [], StepSummary()
    file.write_text(json.dumps({**STATED, "snapshot_id": "s", "captured_at": "2026-11-21T02:00:00Z"}))
    monkeypatch.setattr(drill, "read_again", lambda *arguments: snapshot)
    monkeypatch.setattr(evaluate, "plan_evaluation", lambda *a: SimpleNamespace(run_id=a[2], result_id=a[3]))
    monkeypatch.setattr(whatif, "rows", lambda lake, result: rows[result.result_id])
    path = drill.compare(
        *(settings, drill.Predicted("r", "r:1", file), dict, "seen", "seen:1"),
        *(lambda lake, plan, losses: submitted.append((plan.result_id, losses)), summary, "anna"),
    )
    found = json.loads(path.read_text())
    assert submitted == [("seen:1", {"eu": {"brokers": [], "controllers": []}})]
    assert (found["seen_at"], found["compared"], found["agreed"]) == ("2026-11-21T03:00:00Z", 2, 1)
    assert summary.text == "1 of 2 partitions agree"
    assert summary.problems == ["orders-1: leader predicted 2, seen 3"]
    (kept,) = Lake.open(settings.lake).scan(DRILLS).to_pylist()
    assert kept.pop("recorded_at") and {name: str(kept.pop(name)) for name in ("captured_at", "predicted_at")} == {
        "captured_at": "2026-11-21 03:00:00+00:00",
        "predicted_at": "2026-11-21 02:00:00+00:00",
    }
    assert kept == {
        **{"cluster": "eu", "snapshot_id": "s2", "run_id": "seen", "result_id": "seen:1", "kind": "drill"},
        **{"predicted_from": "s", "asked": ["rack:az1"], "brokers": [1, 4], "controllers": [101]},
        **{"compared": 2, "agreed": 1, "started_by": "anna"},
    }


def test_a_cluster_that_cannot_be_read_again_may_be_tried_again(settings, monkeypatch):
    from durability.steps import collect, gate, publish

    failed = {"cluster": "eu", "status": "failed", "reason": "no answer"}
    monkeypatch.setattr(collect, "collect", lambda *arguments, **options: None)
    monkeypatch.setattr(gate, "gate", lambda *arguments, **options: None)
    monkeypatch.setattr(publish, "publish", lambda *arguments: [failed])
    with pytest.raises(Unreachable, match="eu: its snapshot can't be used: no answer"):
        drill.read_again(settings, {"name": "eu"}, dict, StepSummary())
