"""A run of rack_outage that was killed between its change and its restore: the values come back, and only those that it set."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from durability.apply import outage_run
from durability.apply.cluster import Replicas, Resource, ResourceType, TopicPartition
from durability.apply.record import Approval
from durability.errors import Refused
from durability.lake.change_table import CHANGES
from durability.steps import left, outage
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests.support.fake_cluster import FakeCluster
from tests.support.lake import publish
from tests.support.topology import document

MIN = "min.insync.replicas"
STATED, INHERITS, OTHERS = ("outage.stated", "outage.inherits", "outage.others")
BROKERS = "1:az1 2:az2! 3:az2! 4:az3"


@pytest.fixture
def world(lake, tmp_path, monkeypatch):
    """Settings, and a cluster whose rack az2 is lost: each topic has a replica in az1 and two in az2."""
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text(
        json.dumps({"format": "durability-clusters/1", "clusters": [{"id": "eu", "connection": "kafka_eu"}]})
    )
    doc = document("topic leader replicas isr min\nt 1 1,2,3 1 2", brokers=BROKERS, cluster="eu")
    publish(lake, doc | {"cluster": doc["cluster"] | {"features": {"eligible.leader.replicas.version": 0}}})
    partitions = {TopicPartition(t, 0): Replicas((1, 2, 3), (1,), 1, ()) for t in (STATED, INHERITS, OTHERS)}
    own = {Resource(ResourceType.TOPIC, t): {} if t == INHERITS else {MIN: "2"} for t in (STATED, INHERITS, OTHERS)}
    kafka = FakeCluster(partitions, own, frozenset({1, 4}))
    monkeypatch.setattr(outage, "opened", lambda *_: nullcontext(kafka))
    monkeypatch.setattr("durability.apply.outage_back.PAUSE", 0)
    return Settings(clusters, clusters, clusters, tmp_path / "out", lake.location, None), kafka


def minimums(kafka) -> list[str | None]:
    return [kafka.settings[Resource(ResourceType.TOPIC, t)].get(MIN) for t in (STATED, INHERITS, OTHERS)]


def test_a_killed_outage_is_restored_once_the_rack_is_back(world, lake, monkeypatch):
    settings, kafka = world
    work = outage.Work(settings, "eu", "killed", None, Approval("ann", datetime(2026, 11, 21, 12, tzinfo=UTC)))
    entries = {
        t: [{"setting": MIN, "step": "lower", "now": 2, "now_source": "broker" if t == INHERITS else "topic"}]
        for t in (STATED, INHERITS, OTHERS)
    }
    changes = work.changes()
    with changes.claimed():
        outage_run.change(kafka, changes, entries, work.known(), False)
    assert minimums(kafka) == ["1", "1", "1"]

    def restored(name="pulse") -> StepSummary:
        summary = StepSummary()
        left.restore(settings, name, lambda name: {}, lambda name: True, summary)
        return summary

    assert restored().text == ""  # its run may go on
    monkeypatch.setattr(left, "IDLE", timedelta())
    before = lake.scan(CHANGES).num_rows
    assert restored().text == "1 application" and minimums(kafka) == ["1", "1", "1"]  # the rack isn't back
    assert lake.scan(CHANGES).num_rows == before

    kafka.live |= {2, 3}
    kafka.partitions = {name: replace(now, isr=(1, 2, 3)) for name, now in kafka.partitions.items()}
    kafka.settings[Resource(ResourceType.TOPIC, OTHERS)][MIN] = "3"
    kafka.cluster_id = "rebuilt"
    [problem] = restored().problems
    assert "this is another cluster: its Kafka cluster id is rebuilt, and plan rack-outage changed kafka" in problem
    for look in (outage.is_ready, outage.restore):
        with pytest.raises(Refused, match="this is another cluster"):
            look(work, lambda name: {}, lambda name: True, StepSummary())
    assert minimums(kafka) == ["1", "1", "3"] and lake.scan(CHANGES).num_rows == before

    kafka.cluster_id = "kafka"
    summary = restored()
    assert minimums(kafka) == ["2", None, "3"]
    assert summary.problems == [
        f"eu, plan rack-outage: topic {OTHERS}: {MIN} 3 was set by others and stays; before the outage it was 2"
    ]
    assert {row["approved_by"] for row in lake.scan(CHANGES).to_pylist()} == {"ann"}
    assert restored().text == "" and not outage.is_open(work)
    # Now that all is as before, the Connection may lead to the rebuilt cluster.
    kafka.cluster_id, kafka.live = "rebuilt", frozenset({1, 4})
    kafka.partitions = {name: replace(now, isr=(1,)) for name, now in kafka.partitions.items()}
    changes = work.changes()
    with work.reached(changes, lambda name: {}, lambda name: True), changes.claimed():
        outage_run.change(kafka, changes, {STATED: entries[STATED]}, work.known(), False)
    assert minimums(kafka) == ["1", None, "3"]
