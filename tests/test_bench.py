"""The made-up fleets of `make bench SIZE=`: documents that the auditor takes, the same ones for the same seed."""

from __future__ import annotations

import json

import pytest

from bench import fleet
from durability.topology import validate


@pytest.fixture(scope="module")
def made():
    return list(fleet.topologies(20_000, seed=3))


def test_as_large_as_asked_and_valid(made):
    assert len(made) == 20 and len({t.cluster for t in made}) == 20
    for topology in made:
        checked = validate(topology.document, topology.source)
        assert checked.captured_at == topology.captured_at
    assert sum(len(topic["partitions"]) for t in made for topic in t.document["topics"]) == 20_000


def test_the_seed_decides(made):
    again = [t.document for t in fleet.topologies(20_000, seed=3)]
    assert again == [t.document for t in made]
    assert json.dumps(next(iter(fleet.topologies(20_000, seed=4))).document) != json.dumps(again[0])


def test_it_has_what_rules_are_about(made):
    """Every replication factor, brokers down, clusters without racks, partitions short of replicas, overrides."""
    documents = [t.document for t in made]
    topics = [topic for d in documents for topic in d["topics"]]
    partitions = [p for topic in topics for p in topic["partitions"]]
    assert {len(p["replicas"]) for p in partitions} == {1, 2, 3, 4, 5}
    assert any(not b["live"] for d in documents for b in d["brokers"])
    assert {len({b["rack"] for b in d["brokers"]}) for d in documents} > {2, 3}
    short = sum(len(p["isr"]) < len(p["replicas"]) for p in partitions)
    assert 0 < short < len(partitions) / 10
    assert any(t["internal"] for t in topics) and any("min.insync.replicas" in t["configs"] for t in topics)
    assert any(d["streams"] for d in documents)
