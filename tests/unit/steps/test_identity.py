"""A Connection that leads to another cluster than before is refused, and a person can accept it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import durability.collect
from durability.lake import tables
from durability.steps import collect
from durability.steps.settings import Settings
from durability.steps.sources import from_clusters, partition_into_groups
from durability.steps.summary import StepSummary
from durability.topology import validate
from tests.support.lake import accepted, publish
from tests.support.topology import healthy

FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


def live(kafka_cluster_id, captured_at=FIRST):
    doc = healthy(captured_at=captured_at)
    doc["cluster"] |= {"kafka_cluster_id": kafka_cluster_id, "hidden_partitions": 0}
    return validate(doc, "live")


@pytest.fixture
def read(lake, tmp_path, monkeypatch):
    """Runs step collect where a cluster of this id answers; `stated` is what the clusters file says of it."""

    def run(answers, stated=None, captured_at=SECOND):
        monkeypatch.setattr(durability.collect, "collect", lambda *_, **__: live(answers, captured_at))
        listed = {"id": "test"} | ({"kafka_cluster_id": stated} if stated else {})
        file = tmp_path / "clusters.yaml"
        file.write_text(json.dumps({"format": "durability-clusters/1", "clusters": [listed]}))
        settings = Settings(Path("p"), Path("w"), file, tmp_path / "out", lake.location, None)
        groups = json.loads(json.dumps(partition_into_groups(from_clusters(file))))
        return collect.collect(settings, groups[0], lambda _: {}, 60, StepSummary())

    return run


def publish_live(lake, *args):
    attempt = lake.stage(live(*args))
    lake.publish([attempt], accepted(attempt))


def test_the_id_is_recorded_and_unknown_in_documents_that_state_none(lake):
    publish_live(lake, "one")
    publish(lake, healthy(captured_at=SECOND))
    assert sorted(lake.scan(tables.CLUSTERS)["kafka_cluster_id"].to_pylist(), key=str) == [None, "one"]
    [(cluster, (found, moment))] = lake.kafka_cluster_ids(["test", "other"]).items()
    assert (cluster, found, moment.isoformat()) == ("test", "one", "2026-11-21T02:00:00+00:00")
    assert lake.kafka_cluster_ids(["other"]) == {}
    publish_live(lake, None, "2026-11-23T02:00:00Z")
    assert lake.kafka_cluster_ids(["test"])["test"][0] == "one", "a reading that states no id forgets none"


def test_a_first_reading_and_one_of_the_same_cluster_are_taken(lake, read):
    assert len(read("one").attempts) == 1
    publish_live(lake, "one")
    assert len(read("one").attempts) == 1
    assert len(read(None).attempts) == 1, "a broker that states no id proves nothing"


def test_another_cluster_is_refused_and_accepted_once_the_file_states_its_id(lake, read):
    publish_live(lake, "one")
    got = read("two")
    [failure] = got.failures
    assert got.attempts == []
    assert failure.reason == (
        'cluster test: another Kafka cluster answers, with the id "two". Its last full snapshot, of 2026-11-21 02:00 UTC, is of '
        '"one"; history and waivers under this name are that cluster\'s. Correct the Connection, or give the other cluster a '
        'name of its own. If it replaces the first one and continues its history, state kafka_cluster_id: "two" for it in '
        "the clusters file."
    )
    assert len(read("two", stated="two").attempts) == 1
    publish_live(lake, "two", SECOND)
    assert len(read("two", captured_at="2026-11-23T02:00:00Z").attempts) == 1, "accepted once, it is the one expected"
    assert read("one", captured_at="2026-11-23T02:00:00Z").failures


def test_the_stated_id_counts_from_the_first_reading_on(read):
    [failure] = read("two", stated="one").failures
    assert 'with the id "two". The clusters file expects "one". Correct the Connection' in failure.reason


def test_a_hostile_id_can_forge_no_line(lake, read):
    publish_live(lake, "one")
    [failure] = read("two\n\x1b[2Jerror: " + "x" * 500).failures
    assert failure.reason.isprintable() and len(failure.reason) < 700


def test_a_document_of_another_cluster_is_taken_and_named(lake, tmp_path):
    def read(kafka_cluster_id, captured_at) -> tuple[int, list[str]]:
        doc = healthy(captured_at=captured_at)
        doc["cluster"]["kafka_cluster_id"] = kafka_cluster_id
        file = tmp_path / "eu.json"
        file.write_text(json.dumps(doc))
        settings = Settings(Path("p"), Path("w"), Path("c"), tmp_path / "out", lake.location, file)
        summary = StepSummary()
        got = collect.collect(settings, [{"name": "eu.json", "document": str(file)}], lambda _: {}, 60, summary)
        lake.publish(got.attempts, accepted(*got.attempts))
        return len(got.attempts), summary.problems

    assert read("one", FIRST) == (1, [])
    assert read("one", SECOND) == read(None, SECOND) == (1, [])
    assert read("two", "2026-11-23T02:00:00Z") == (
        1,
        [
            'cluster test: eu.json is of another Kafka cluster, with the id "two". The last full snapshot under this name, of '
            '2026-11-22 02:00 UTC, is of "one". Findings are compared with that cluster\'s, and its waivers apply. If it '
            "doesn't replace that cluster, give it a name of its own as cluster.id in the document."
        ],
    )
    assert read("two", "2026-11-24T02:00:00Z") == (1, [])
