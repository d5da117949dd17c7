"""The made-up fleets of `make bench SIZE=`: documents that the auditor takes, the same ones for the same seed."""

from __future__ import annotations

import importlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import beside, collect, fleet
from durability.errors import AuditError
from durability.lake import alike
from durability.local_kafka.tools import Described
from durability.run.plan import Plan
from durability.topology import validate
from tests.support.judge import Judge


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


def test_duckdb_and_polars_judge_as_spark_does(spark, tmp_path, monkeypatch):
    """Three programs, one of them the rules: the same health, counters, posture and topics' findings, row by row.

    Of a fleet with a rack of several brokers down, eligible leader replicas, racks to be acknowledged for which replicas
    have to move, a cluster without racks: whoever says one word otherwise fails.
    """
    monkeypatch.setattr(alike, "FROM", 100)
    monkeypatch.setattr(Plan, "small", False)
    judge = Judge(spark)
    judge.run([t.document for t in fleet.topologies(15_000, seed=2075)])
    held = judge.facts | {name: judge.latest[name] for name in beside.TABLES.values()}
    for name, table in held.items():
        folder = tmp_path / "lake" / "audit" / name / "data"
        folder.mkdir(parents=True)
        # As the lake has them: a map's keys are never NULL.
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), folder / "rows.parquet")
    files = {n: [str(tmp_path / "lake" / "audit" / n / "data" / "rows.parquet")] for n in judge.facts}
    inputs = files | {
        "resolved": files["resolved_policy"],
        "tiers": judge.plan.policy.tiers,
        "last_tier": judge.plan.policy.last_tier,
    }
    for name in beside.OPPONENTS:
        (tmp_path / name).mkdir()
        importlib.import_module(f"bench.in_{name}").run(inputs, tmp_path / name)
        assert beside.differences(tmp_path / "lake", judge.plan.result_id, tmp_path / name) == []
        for file, table in beside.TABLES.items():
            columns = set(pq.read_schema(tmp_path / name / f"{file}.parquet").names)
            assert columns == set(judge.latest[table].column_names) - {"run_id", "result_id"}
    assert judge.latest["partition_health"].num_rows > 500


def test_a_difference_is_told(tmp_path):
    rows = pa.table({"cluster": ["eu"] * 2, "partition": [0, 1], "result_id": ["r"] * 2})
    for name in beside.TABLES.values():
        folder = tmp_path / "lake" / "audit" / name / "data"
        folder.mkdir(parents=True)
        kept = rows.append_column("resource_type", [["topic"] * 2]) if name == "findings" else rows
        pq.write_table(kept, folder / "rows.parquet")
    theirs = tmp_path / "duckdb"
    theirs.mkdir()
    for name in beside.TABLES:
        pq.write_table(
            rows.select(["cluster", "partition"]).slice(0, 1 if name == "posture" else 2), theirs / f"{name}.parquet"
        )
    (told,) = beside.differences(tmp_path / "lake", "r", theirs)
    assert told == "posture: 1 rows of evaluate alone, such as {'cluster': 'eu', 'partition': 1}"


@pytest.mark.cluster
def test_collecting_is_held_against_kafka_topics_on_the_same_partitions(kafka):
    collect.fill(kafka, 45, prefix="bench-collect")
    kafka.wait_for_full_isr()
    results = collect.measured(kafka, 1)
    assert results["partitions"] >= 45 and results["topics"] >= 5 and results["brokers"] == 6
    for name, (seconds,) in results["seconds"].items():
        assert results["medians"][name] == seconds > 0
    assert results["ratio"] == round(results["medians"]["collection"] / results["medians"]["kafka-topics"], 3)


def test_a_collection_that_leaves_something_out_is_no_measurement():
    partition = {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1], "adding": [], "bytes": 0}
    document = {
        "cluster": {"quorum": {"voters": [{"id": 1}]}},
        "brokers": [{"id": 1, "configs": {"log.dirs": "/d"}, "log_dirs": [{"path": "/d"}]}],
        "topics": [{"name": "t", "configs": {"retention.ms": "1"}, "partitions": [partition]}],
        "streams": [],
        "unreadable": [],
    }
    printed = {("t", 0): Described(1, [1, 2], [1], [])}
    assert collect.alike(printed, document, []) == 1
    with pytest.raises(AuditError, match=r"t-0: kafka-topics tells Described\(leader=1, .* isr=\[1, 2\]"):
        collect.alike({("t", 0): Described(1, [1, 2], [1, 2], [])}, document, [])
    with pytest.raises(AuditError, match=r"t-1: kafka-topics tells Described.* we None"):
        collect.alike(printed | {("t", 1): Described(1, [1], [1], [])}, document, [])
    with pytest.raises(AuditError, match="group orders"):
        collect.alike(printed, document, ["orders"])
    with pytest.raises(AuditError, match="t bytes"):
        collect.alike(
            printed,
            document
            | {
                "topics": [
                    {**document["topics"][0], "partitions": [{k: v for k, v in partition.items() if k != "bytes"}]}
                ]
            },
            [],
        )
