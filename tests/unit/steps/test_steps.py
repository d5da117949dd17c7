"""Steps of an audit without Airflow: every source is accounted for, and artifacts of tasks come back as they were."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

import durability.collect
from durability.errors import Unreachable
from durability.steps.collect import collect_group
from durability.steps.gate import LOST, lost_sources
from durability.steps.results import Collected, Failure, Gated
from durability.steps.sources import from_clusters, from_documents, partition_into_groups
from durability.steps.task_artifacts import FOLDER, TaskArtifacts
from durability.topology import validate
from expectations.gate import Verdict
from tests.support import topology


def test_a_fleet_is_partitioned_into_as_many_groups_as_run_at_once(tmp_path):
    rows = "".join(f"  - {{id: c{n}, connection: k, controllers: {{100: az1}}}}\n" for n in range(40))
    (tmp_path / "clusters.yaml").write_text(f"format: durability-clusters/1\nclusters:\n{rows}")
    groups = partition_into_groups(from_clusters(tmp_path / "clusters.yaml"))
    assert [len(g) for g in groups] == [10] * 4
    assert sorted(s["name"] for g in groups for s in g) == sorted(f"c{n}" for n in range(40))
    assert json.loads(json.dumps(groups)) == groups


def test_a_group_that_brought_nothing_is_missing_by_name():
    planned = [[{"name": "a"}, {"name": "b"}], [{"name": "c"}], [{"name": "d"}]]
    lost = lost_sources(planned, [Collected(["a", "b"])])
    assert [(f.cluster, f.reason) for f in lost] == [("c", LOST), ("d", LOST)]


@dataclass(frozen=True)
class Staged:
    cluster: str


class Recorder:
    """A lake that takes what is staged and keeps nothing."""

    def stage(self, topology, **_):
        return Staged(topology)

    def kafka_cluster_ids(self, clusters, **_):
        return {}


def test_one_cluster_that_fails_costs_the_others_nothing(monkeypatch):
    def collect(name, settings, **_):
        if name == "gone":
            raise Unreachable("cluster gone: no answer")
        if name == "odd":
            raise KeyError("endpoint_type")
        return name

    def connect(connection):
        if connection == "unknown":
            raise LookupError("no such Connection")
        return {"bootstrap.servers": "x:1", "sasl.password": "hunter2"}

    monkeypatch.setattr(durability.collect, "collect", collect)
    group = [
        {"name": name, "connection": connection, "partitions": 1, "seconds": 60}
        for name, connection in [("good", "k"), ("gone", "k"), ("odd", "k"), ("lost", "unknown")]
    ]
    got = collect_group(Recorder(), group, connect, seconds=60)
    assert got.sources == ["good", "gone", "odd", "lost"]
    assert [a.cluster for a in got.attempts] == ["good"]
    assert {f.cluster: f.reason for f in got.failures} == {
        "gone": "cluster gone: no answer",
        "odd": "defect while reading: KeyError: 'endpoint_type'",
        "lost": "defect while reading: LookupError: no such Connection",
    }
    assert "hunter2" not in repr(got)


def test_one_document_that_cannot_be_named_in_utf_8_costs_that_document_alone(lake, tmp_path):
    bad = topology.healthy()
    bad["topics"][0]["configs"]["\ud800"] = 1  # its place is in the problem
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "bad.json").write_text(json.dumps(bad))
    (folder / "good.json").write_text(json.dumps(topology.healthy(cluster="good")))
    name = os.path.join(os.fsencode(folder), b"n\xffme.json")
    with open(name, "w") as file:
        json.dump(topology.healthy(cluster="named"), file)
    source = from_documents(folder)[0] | {"partitions": 1}
    got = collect_group(lake, [source], lambda _: {}, seconds=60)
    assert [(a.cluster, a.source) for a in got.attempts] == [("good", "good.json"), ("named", "n\\udcffme.json")]
    [failure] = got.failures
    assert failure.cluster == "bad.json" and "\\ud800" in failure.text
    rows = lake.record_failures([(failure.cluster, failure.at, failure.reason)])
    assert rows[0]["reason"] == failure.reason


def test_reports_and_a_lake_among_the_documents_are_left_out(tmp_path):
    topology.write(tmp_path, topology.healthy(cluster="good"))
    for name in ("out", "lake", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "findings.json").write_text("{}")
    options = {"seconds": 60, "without": [tmp_path / "out", tmp_path / "more" / ".." / "lake", tmp_path]}
    got = collect_group(Recorder(), from_documents(tmp_path), lambda _: {}, **options)
    assert len(got.attempts) == 1
    assert [f.text.partition(",")[0] for f in got.failures] == [f"{tmp_path}/more/findings.json"]


def test_one_document_that_brings_out_a_defect_costs_that_document_alone(monkeypatch, tmp_path):
    topology.write(tmp_path, topology.healthy(cluster="good"), topology.healthy(cluster="odd"))
    recorder = Recorder()
    monkeypatch.setattr(recorder, "stage", lambda t, **_: Staged(t.cluster) if t.cluster == "good" else {}[t.cluster])
    got = collect_group(recorder, from_documents(tmp_path), lambda _: {}, seconds=60)
    assert [a.cluster for a in got.attempts] == ["good"]
    assert [(f.cluster, f.reason) for f in got.failures] == [("odd-001.json", "defect while reading: KeyError: 'odd'")]


def test_a_single_document_whose_name_is_not_utf_8_has_a_name_that_can_be_printed(tmp_path):
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"n\xffme.json"))
    with open(path, "w") as file:
        json.dump(topology.healthy(), file)
    [source] = from_documents(Path(path))
    assert source["name"] == "n\\udcffme.json" and source["document"] == path


def test_what_is_collected_and_gated_survives_json(lake):
    attempt = lake.stage(validate(topology.healthy(), "a.json"))
    failure = Failure("b", "no answer")
    collected = Collected(["a", "b"], [attempt], [failure])
    assert Collected.from_dict(as_json(asdict(collected))) == collected
    gated = Gated(
        [attempt], [Verdict("a", attempt.attempt_id, False, "2 topics twice", {"unique-topics": 2})], [failure]
    )
    assert Gated.from_dict(as_json(asdict(gated))) == gated


def as_json(value):
    return json.loads(json.dumps(value, default=str))


def test_an_artifact_comes_back_and_goes_when_it_is_old(tmp_path):
    artifacts = TaskArtifacts(str(tmp_path), "d", "manual__2026-11-21T02:00:00+00:00")
    reference = artifacts.put("gate", {"a": [1]})
    assert ".." not in reference and ":" not in reference
    assert artifacts.get(reference) == {"a": [1]}
    artifacts.prune(30)
    assert artifacts.get(reference) == {"a": [1]}
    os.utime(tmp_path / FOLDER / reference, (0, 0))
    artifacts.prune(30)
    with pytest.raises(FileNotFoundError):
        artifacts.get(reference)
