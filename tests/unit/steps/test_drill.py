"""A loss that happens on a cluster of one's own: when it can be seen, and what is said while it doesn't happen."""

from __future__ import annotations

import json

import pytest

from durability.errors import Refused
from durability.steps import drill
from durability.steps.settings import Settings

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
    with pytest.raises(Refused, match="doesn't list us, so it can't be read again; there are: eu"):
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
