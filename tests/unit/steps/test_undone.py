"""A plan that is to be taken back is found by its folder, by its id, and by what the lake recorded when its folder is gone."""

from __future__ import annotations

import shutil
from datetime import timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.apply import recorded
from durability.apply.record import REASSIGN, SET_CONFIG, Changes
from durability.cli.change import request
from durability.cli.options import Given
from durability.errors import Refused
from durability.lake.change_table import REMEDIATE
from durability.report import change as report
from durability.steps import change, undone
from durability.steps.settings import Settings
from tests import ROOT
from tests.unit.remedies.test_change import FACTS
from tests.unit.report.test_change import made

CLUSTER, ID = "eu payments", "20261127T120000Z-aaaa"
MIN = "min.insync.replicas"


def applied(lake, plan=ID):
    """Rows of a plan that lowers a setting, moves and raises the setting again."""
    changes = Changes(lake, CLUSTER, REMEDIATE, plan, "run", None)
    with changes.claimed():
        changes.begin("kafka", [], ["x", "y"], {"t": "its-id"})
        for step, was, value in (("1-lower", "3", "1"), ("3-raise", "1", "2")):
            changes.intend(
                step,
                step,
                SET_CONFIG,
                ["t"],
                [{"topic": "t", "name": MIN, "value": was}],
                [{"topic": "t", "name": MIN, "value": value, "until": None}],
            )
            changes.done(step)
        moved = [{"topic": "t", "partition": 0, "replicas": [1]}]
        changes.intend(
            "2-reassign", "2-reassign", REASSIGN, ["t"], {"placements": moved, "min_isr": {}}, {"placements": []}
        )
        changes.done("2-reassign")


def test_a_plan_is_taken_back_by_folder_id_or_record(lake, tmp_path):
    path = ROOT / "policies" / "policy.yaml"
    settings = Settings(path, path, path, tmp_path / "out", lake.location, None)
    first = report.write(made(ID), FACTS, settings.out)
    by_folder = undone.find(settings, str(first), "--undo ")
    assert (by_folder.id, by_folder.cluster, by_folder.changed_at) == (ID, CLUSTER, None)
    assert undone.find(settings, ID, "--undo ") == by_folder
    report.write(made("20261127T130000Z-bbbb"), FACTS, settings.out)  # moves the first one aside
    applied(lake)
    by_id = undone.find(settings, ID, "--undo ", CLUSTER)
    assert by_id.before == by_folder.before and by_id.changed_at is not None
    [aside] = (settings.out / "plan" / report.EARLIER).glob("*/*")
    assert undone.find(settings, str(aside), "--undo ") == by_id  # so a snapshot of before the change is refused, too

    edited = next((settings.out / "plan").glob(f"earlier*/*/{ID}"))
    (edited / "README.txt").write_text("edited")
    with pytest.raises(Refused) as refused:
        undone.find(settings, ID, "--undo ")
    assert str(refused.value) == (
        f"{edited / 'README.txt'}: it was edited or removed after the plan was made; make a new plan. If it was applied, move"
        f" {edited} away: then the lake's record takes it back"
    )
    shutil.rmtree(settings.out)
    of_lake = undone.find(settings, ID, "--undo ")
    assert (of_lake.cluster, of_lake.kafka_cluster_id, of_lake.findings) == (CLUSTER, "kafka", {"x", "y"})
    assert of_lake.before == {
        "topic_ids": {"t": "its-id"},
        "placements": [{"topic": "t", "partition": 0, "replicas": [1]}],
        "settings": [{"topic": "t", "name": MIN, "value": "3"}],
    }
    assert of_lake.changed_at == by_id.changed_at

    report.write(made("20261127T130000Z-bbbb"), FACTS, settings.out)
    with pytest.raises(Refused) as refused:
        undone.find(settings, "20261127T120000Z-aaab", "UNDO=")
    assert str(refused.value) == (
        f"UNDO=20261127T120000Z-aaab: neither the folder nor the id of a plan; the newest plans in {settings.out / 'plan'}"
        f" and in the lake {lake.location}: 20261127T130000Z-bbbb, {ID}; did you mean {ID}?"
    )
    with pytest.raises(Refused, match=f"plan {ID} is for cluster eu payments, not for us"):
        undone.find(settings, ID, "--undo ", "us")
    with pytest.raises(Refused, match="--control rack-loss: a plan that takes another one back has no choice"):
        options = SimpleNamespace(**vars(settings), bootstrap=None, signing_key=None, cluster=None)
        request(Given({"undo": ID, "control": "rack-loss"}), options)


def test_a_restore_that_changes_nothing_is_no_change_of_its_plan(lake):
    applied(lake)
    before = recorded.plan(lake, ID).changed_at
    changes = Changes(lake, CLUSTER, REMEDIATE, ID, "pulse", None)
    with changes.claimed():
        changes.begin("kafka", [])
    assert recorded.plan(lake, ID).changed_at == before == changes.state()["2-reassign"].captured_at


def test_a_snapshot_of_another_cluster_or_from_before_the_last_change_takes_nothing_back(lake):
    applied(lake)
    plan = undone.find(SimpleNamespace(open_lake=lambda: lake, out=ROOT / "nowhere"), ID, "")

    def check(kafka_id, cluster, age):
        facts = SimpleNamespace(facts=lambda *args: pa.table({"kafka_cluster_id": [kafka_id]}))
        change._check_undone(facts, {"cluster": cluster, "captured_at": plan.changed_at + timedelta(seconds=age)}, plan)

    for kafka_id, cluster, age, says in (
        ("kafka", "us", 1, "is for cluster eu payments, not for us"),
        ("other", CLUSTER, 1, "Kafka's id kafka, and eu payments has other"),
        ("kafka", CLUSTER, -1, "changed eu payments after its newest snapshot"),
    ):
        with pytest.raises(Refused, match=says):
            check(kafka_id, cluster, age)
    check(None, CLUSTER, 0)
