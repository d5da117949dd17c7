"""What a drill refuses before it starts anything, and what its exit status says."""

from __future__ import annotations

import json
from datetime import date

import pytest
from typer.testing import CliRunner

from durability.cli import drill
from durability.cli.app import app
from durability.cli.options import Given
from durability.evidence import drills
from durability.evidence.nights import Period
from durability.lake import Lake
from tests.support.topology import document

TABLE = """
    topic   leader replicas isr   min
    orders  1      1,2,3    1,2,3 2
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("eu", "us"):
        (tmp_path / f"{name}.json").write_text(
            json.dumps(document(TABLE, cluster=name, brokers="1:az1 2:az2 3 4:az2!"))
        )
    return tmp_path


def given(folder, **values) -> Given:
    return Given({"topology": str(folder / "eu.json"), "lose": "rack:az2", "out": str(folder / "out"), **values})


@pytest.mark.parametrize(
    "values, said",
    [
        (
            {"lose": ""},
            "--lose is empty: name what to lose; there are broker:1, broker:2, broker:3, broker:4, rack:az1",
        ),
        ({"lose": " "}, "controller:101, controller:102, controller:103"),
        ({"lose": "broker:9"}, "--lose broker:9: the cluster has no such broker; there are 1, 2, 3, 4"),
        ({"lose": "rack:az9"}, "there are az1, az2, az3"),
        ({"lose": "broker:x"}, "expected a broker's id"),
        ({"lose": "broker:1,,"}, "an item between two commas is empty"),
        ({"version": "4.0.0"}, "--version 4.0.0: expected one of 4.3.1, 3.6.2"),
        ({"elr": "yes"}, "--elr yes: expected on or off"),
        ({"version": "3.6.2", "elr": "on"}, "has no eligible leader replicas"),
        ({"topology": "none.json"}, "--topology none.json: no such file or folder"),
        ({"cluster": "asia"}, "has no document of asia; there are eu"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_and_nothing_is_written(folder, values, said):
    shell = {"COLUMNS": "400", "NO_COLOR": "1"}
    options = given(folder, **values).values
    done = CliRunner().invoke(app, ["drill", *(x for k, v in options.items() for x in (f"--{k}", v))], env=shell)
    assert done.exit_code == 2 and said in done.output, done.output
    assert not (folder / "out").exists()


def test_of_several_clusters_one_has_to_be_named(folder):
    with pytest.raises(drill.Refused, match="has several clusters; name one with --cluster: eu, us"):
        drill.request(given(folder, topology=str(folder)))
    assert drill.request(given(folder, topology=str(folder), cluster="us")).topology.cluster == "us"


def test_the_shipped_example_is_rehearsed_without_a_document(folder):
    asked = drill.request(given(folder, topology=None, lose="broker:1"))
    assert asked.topology.cluster == "eu-payments" and asked.miniature.down == (3,)


def test_nodes_that_may_stand_in_a_lost_rack_are_said_to_be_kept(folder):
    built = drill.request(given(folder)).miniature
    assert 3 not in built.lost
    assert built.not_rebuilt == ("nodes without a known rack, which may be in the lost one, are kept: 3",)


@pytest.mark.parametrize(
    "changed, status",
    [({}, 0), ({"agreement": 0.9999}, 1), ({"compared": 0, "agreement": None}, 1), ({"ledger": {"whole": False}}, 1)],
)
def test_the_status_is_0_only_if_all_of_it_was_as_predicted(folder, monkeypatch, changed, status):
    ledger = {"acknowledged": 2, "found": 2, "missing_as_predicted": 0, "missing": [], "unread": 0, "whole": True}
    found = {
        **{"cluster": "eu", "lose": {"asked": ["rack:az2"]}, "compared": 1, "agreed": 1, "agreement": 1.0},
        **{"differs": [], "not_compared": [], "miniature": None},
        **changed,
        "ledger": ledger | changed.get("ledger", {}),
    }
    monkeypatch.setattr(drill._Rehearsal, "run", lambda self: found)
    monkeypatch.setattr("durability.runtime.jars.is_fetched", lambda name: True)
    assert drill.run(drill.request(given(folder))) == status
    assert json.loads((folder / "out" / "drill.json").read_text()) == found


def test_a_lake_keeps_a_rehearsal_as_one(folder, monkeypatch):
    lost = {"asked": ["rack:az2"], "brokers": [2], "controllers": []}
    found = {
        **{"cluster": "eu", "lose": lost, "compared": 4, "agreed": 4, "agreement": 1.0, "snapshot_id": "document"},
        **{"captured_at": "2026-11-20T02:00:00Z", "seen_at": "2026-11-21T02:00:00Z", "differs": [], "not_compared": []},
        **{"miniature": None, "ledger": None},
    }
    monkeypatch.setattr(drill._Rehearsal, "run", lambda self: found)
    monkeypatch.setattr("durability.runtime.jars.is_fetched", lambda name: True)
    place = folder / "lake"
    for _ in range(2):  # each is a drill of its own
        assert drill.run(drill.request(given(folder, lake=str(place)))) == 0
    kept = drills.read(Lake.open(str(place)), Period(date(2026, 11, 21), date(2026, 11, 22)))["found"]
    assert [(one["kind"], one["compared"], one["seen_in"], one["asked"]) for one in kept] == [
        ("rehearsal", 4, None, ["rack:az2"])
    ] * 2
