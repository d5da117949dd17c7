"""The made-up fleets of `make bench SIZE=`: documents that the auditor takes, the same ones for the same seed."""

from __future__ import annotations

import doctest
import importlib
import itertools
import json
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import collect, failures, fleet, placements, scale
from bench.clock import Clock, Peak
from bench.peers import compare, losses, program
from durability.embedded_kafka.tools import Described
from durability.errors import AuditError
from durability.lake import partition_groups
from durability.plan.plan import Plan
from durability.topology import validate
from tests.support.judge import Judge


@pytest.fixture(scope="module")
def made():
    return list(fleet.topologies(20_000, seed=3))


@pytest.fixture(scope="module")
def placed_by_kafka():
    return list(fleet.topologies(20_000, seed=3, placement="kafka"))


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


def test_both_fleets_differ_in_their_placements_alone(made, placed_by_kafka):
    """Equal clusters, brokers, topics, settings, sizes and replication factors; replicas on other brokers."""

    def without_brokers(document: dict) -> dict:
        topics = [
            topic | {"partitions": [(p["partition"], len(p["replicas"]), p["bytes"]) for p in topic["partitions"]]}
            for topic in document["topics"]
        ]
        return document | {"topics": topics}

    def placements(fleet_) -> set:
        of = ((t.cluster, topic) for t in fleet_ for topic in t.document["topics"])
        return {(cluster, tuple(p["replicas"])) for cluster, topic in of for p in topic["partitions"]}

    for topology, same in zip(made, placed_by_kafka, strict=True):
        assert without_brokers(topology.document) == without_brokers(same.document)
    assert len(placements(placed_by_kafka)) > 2 * len(placements(made))


def test_a_fleet_placed_by_kafka_is_valid_and_the_seed_decides(placed_by_kafka):
    for topology in placed_by_kafka:
        validate(topology.document, topology.source)
        brokers = {b["id"] for b in topology.document["brokers"]}
        for topic in topology.document["topics"]:
            for p in topic["partitions"]:
                assert len(set(p["replicas"])) == len(p["replicas"]) and brokers.issuperset(p["replicas"])
    again = fleet.topologies(20_000, seed=3, placement="kafka")
    assert [t.document for t in again] == [t.document for t in placed_by_kafka]


# The examples of Kafka's own documentation of the assignor: five brokers; six in three racks.
WITHOUT_RACKS = ["012", "123", "234", "340", "401", "023", "134", "240", "301", "412"]
WITH_RACKS = ["031", "315", "154", "542", "420", "203", "042", "320", "103", "531", "415", "254"]


@pytest.mark.parametrize(
    ("expected", "racks"), [(WITHOUT_RACKS, None), (WITH_RACKS, [0, 2, 2, 1, 1, 0])], ids=["no racks", "racks"]
)
def test_the_assignor_gives_the_examples_of_kafkas_documentation(expected, racks):
    of = None if racks is None else np.array(racks)
    order = np.arange(5) if racks is None else placements.alternating(of)
    none = np.zeros(len(expected), int)
    found = placements.assigned(np.arange(len(expected)), none + 3, none, none, order, of)
    assert ["".join(map(str, row)) for row in found[:, :3]] == expected


def one_by_one(order: list[int], racks: dict[int, int] | None, start: int, shift: int, partitions: int, factor: int):
    """The assignor as a person would do it, partition by partition."""
    moved = shift
    for partition in range(partitions):
        if partition and partition % len(order) == 0:
            moved += 1
        leader = (start + partition) % len(order)
        others = order[leader + 1 :] + order[:leader]
        begin = moved if racks is None else moved * len({*racks.values()})
        replicas, candidates = [order[leader]], itertools.cycle(others)
        for _ in range(begin):
            next(candidates)
        while len(replicas) < factor:
            broker = next(candidates)
            if racks is not None:
                without = {*racks.values()} - {racks[b] for b in replicas}
                if broker in replicas or (without and racks[broker] not in without):
                    continue
            replicas.append(broker)
        yield replicas


def test_the_assignor_gives_what_a_loop_over_the_brokers_gives():
    rng = random.Random(57)
    for case in range(300):
        count = rng.randint(2, 12)
        names = rng.randint(1, 5)
        racks = None if case % 3 == 0 else {broker: rng.randrange(names) for broker in range(count)}
        of = racks and np.array([racks[broker] for broker in range(count)])
        order = list(range(count)) if racks is None else placements.alternating(of).tolist()
        start, shift = rng.randrange(count), rng.randrange(count)
        partitions, factor = rng.randint(1, 3 * count), rng.randint(1, min(count, placements.WIDEST))
        every = np.ones(partitions, int)
        found = placements.assigned(
            np.arange(partitions), every * factor, every * start, every * shift, np.array(order), of
        )
        expected = list(one_by_one(order, racks, start, shift, partitions, factor))
        assert found[:, :factor].tolist() == expected, (racks, start, shift, factor)


def test_topics_are_placed_with_racks_without_them_and_by_hand():
    """Of 70 % every replica is in another rack; the others do so by chance alone."""
    racks = np.arange(40) % 4
    sizes, factors = np.full(3000, 2), np.full(3000, 3)
    spans = [len({*racks[row[:3]]}) for row in placements.kafka(np.random.default_rng(1), sizes, factors, racks)]
    spread = np.array(spans).reshape(-1, 2).min(axis=1) == 3
    assert 0.75 < spread.mean() < 0.95
    hand = placements.by_hand(np.random.default_rng(1), 60_000, 3)[:, :3]
    orders, counts = np.unique(hand, axis=0, return_counts=True)
    assert len(orders) == 6 and 9_500 < counts.min() < counts.max() < 10_500


def test_examples_in_docstrings():
    assert all(doctest.testmod(module).failed == 0 for module in (fleet, placements, scale))


def document_of(seconds: float, equal: bool = True) -> dict:
    collect = {"lake_s": 4.0, "parquet_s": 2.0, "rows_s": 1.0}
    took = {"empty job": 5.0, "no losses": 5 + seconds, "evaluate": 5 + 1.5 * seconds}
    took |= {"duckdb": 1.0, "polars": 2.0, "losses": 0.5}
    steps = {name: {"wall": wall, "cpu": wall + 5 * (name == "evaluate")} for name, wall in took.items()}
    numbers = {"rows": 10, "peak_mb": 7, "total_s": 9.0, "report_html_mb": 1.0, "worded": 600, "findings_s": 3.0}
    return {"equal": equal, "collect": collect, "steps": steps, **numbers}


@pytest.mark.parametrize(("asked", "fleets"), [("", ("kafka", "neighbours")), ("kafka", ("kafka",))])
def test_every_ratio_is_reported_of_every_fleet_that_is_asked_for(asked, fleets, tmp_path, monkeypatch, capsys):
    def run(command, env):
        number = int(Path(env["RESULTS"]).stem.rpartition("-")[2])
        fleet_ = {env["PLACEMENT"]: document_of(2.0 * number if env["PLACEMENT"] == "kafka" else 7.0)}
        Path(env["RESULTS"]).write_text(json.dumps({"fleets": fleet_}))

    monkeypatch.setattr(scale.subprocess, "run", run)
    results = tmp_path / "results.json"
    asked_for = {"SIZE": "10", "ROUNDS": "3", "PLACEMENT": asked, "RESULTS": str(results)}
    assert scale.main(asked_for) == 0
    written = json.loads(results.read_text())
    assert written["equal"] is True and tuple(written["fleets"]) == fleets
    assert written["fleets"]["kafka"]["steps"]["no losses"]["wall"] == 9.0
    lines = {line[:44].strip(): line[44:].split() for line in capsys.readouterr().out.splitlines()}
    assert lines["medians of 3 rounds"] == list(fleets)
    assert lines["findings worded a second"] == ["200"] * len(fleets)
    assert lines["evaluate without losses, of duckdb"] == ["4.0", "7.0"][: len(fleets)]
    assert lines["evaluate without losses, of polars"] == ["2.0", "3.5"][: len(fleets)]
    assert lines["losses, of evaluate without them"] == ["0.5", "0.5"][: len(fleets)]
    assert lines["losses, of duckdb"] == ["4.0", "7.0"][: len(fleets)]
    assert lines["losses, of duckdb (CPU)"] == ["14.0", "17.0"][: len(fleets)]
    assert lines["evaluate without losses, of duckdb (CPU)"] == lines["evaluate without losses, of duckdb"]


def test_a_step_is_reported_by_itself_and_in_the_total_and_peers_are_not():
    clock = Clock(Peak())
    steps = ("stage", "gate", "publish", "plan", "evaluate", "cross-check", "findings", "report")
    took = dict.fromkeys((*steps, *scale.NOT_OF_A_RUN), 1.0)
    for name, seconds in (
        took | {"empty job": 5.0, "evaluate": 20.0, "no losses": 18.0, "duckdb": 4.0, "findings": 3.0}
    ).items():
        clock.add(name, seconds, seconds)
    found = scale.document(10, True, 7, clock)
    assert found["findings_s"] == 3.0 and found["cross_check_s"] == 1.0
    peers = {"duckdb_s": 4.0, "polars_s": 1.0, "losses_duckdb_s": 1.0}
    assert found["evaluate"] == {"session_s": 5.0, "spark_s": 13.0, "losses_s": 2.0, **peers}
    # stage, gate, publish, plan, cross-check, report; evaluate; findings
    assert found["total_s"] == 6 + 20.0 + 3.0
    assert found["steps"]["findings"] == {"wall": 3.0, "cpu": 3.0, "peak_mb": 0}


def test_one_fleet_with_other_rows_fails_the_bench(monkeypatch):
    equal = {"kafka": True, "neighbours": False}
    monkeypatch.setattr(scale, "_in_processes", lambda *_: {n: [document_of(1.0, e)] for n, e in equal.items()})
    assert scale.main({"SIZE": "10"}) == 1


@pytest.mark.parametrize("option", [{"SIZE": "ten"}, {"SIZE": "0"}, {"PLACEMENT": "racks"}, {"ROUNDS": "0"}])
def test_options_that_make_no_sense_are_refused(option):
    with pytest.raises(SystemExit, match=next(iter(option))):
        scale.main({"SIZE": "10"} | option)


def test_duckdb_and_polars_judge_as_spark_does(spark, tmp_path, monkeypatch):
    """Three programs, one of them the rules: the same health, counters, posture and topics' verdicts, row by row.

    DuckDB computes what losses break, too.

    Each placement has a fleet, and both are judged in one job. A fleet has a rack of several brokers down, eligible leader
    replicas, topics whose replicas have to move for the racks that their tier requires, and a cluster without racks.
    """
    monkeypatch.setattr(partition_groups, "FROM", 100)
    monkeypatch.setattr(Plan, "small", False)
    judge = Judge(spark)
    documents = []
    for placement in placements.PLACEMENTS:
        for document in (t.document for t in fleet.topologies(15_000, seed=2075, placement=placement)):
            document["cluster"]["id"] = f"{placement}-{document['cluster']['id']}"
            documents.append(document)
    judge.run(documents)
    results = (*compare.TABLES.values(), *losses.TABLES.values())
    held = judge.facts | {name: judge.latest[name] for name in results}
    for name, table in held.items():
        folder = tmp_path / "lake" / "audit" / name / "data"
        folder.mkdir(parents=True)
        # As the lake has them: a map's keys are never NULL.
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), folder / "rows.parquet")
    files = {n: [str(tmp_path / "lake" / "audit" / n / "data" / "rows.parquet")] for n in judge.facts}
    tiers = compare.write_tiers(judge.plan.policy.tiers, tmp_path)
    inputs = files | {"resolved": files["resolved_policy"], "tiers": [str(tiers)]}
    for name in compare.PEERS:
        (tmp_path / name).mkdir()
        program.run(importlib.import_module(f"bench.peers.{name}.__main__").measure, inputs, tmp_path / name)
        assert compare.differences(tmp_path / "lake", judge.plan.result_id, tmp_path / name) == []
        for file, table in compare.TABLES.items():
            columns = set(pq.read_schema(tmp_path / name / f"{file}.parquet").names)
            if file == "health":
                columns = columns - {"partition"} | {"partitions"}
            own = {"run_id", "result_id", "evidence", "provider", *compare.UNCOMPARED.get(table, ())}
            assert columns == set(judge.latest[table].column_names) - own
    for placement in placements.PLACEMENTS:
        assert sum(row["cluster"].startswith(f"{placement}-") for row in judge.partition_health()) > 500
    (tmp_path / "losses").mkdir()
    losses.main(inputs, tmp_path / "losses")
    assert compare.differences(tmp_path / "lake", judge.plan.result_id, tmp_path / "losses", losses.TABLES) == []


def test_a_difference_is_reported_unless_it_is_of_a_control_that_peers_dont_know(tmp_path):
    known, later = compare.CONTROLS[0], "of-a-later-release"
    rows = pa.table({"cluster": ["eu"] * 2, "partition": [0, 1], "result_id": ["r"] * 2})
    for name in compare.TABLES.values():
        folder = tmp_path / "lake" / "audit" / name / "data"
        folder.mkdir(parents=True)
        kept = rows.to_pylist()
        if name == compare.VERDICTS:
            kept = [row | {"resource_type": "topic", "control": control} for row in kept for control in (known, later)]
        if name == "topic_posture":
            kept = [row | {"checks": [{"control": known}, {"control": later}]} for row in kept]
        if name == "partition_health":
            kept = [{"cluster": "eu", "partitions": [0, 1], "result_id": "r"}]
        pq.write_table(pa.Table.from_pylist(kept), folder / "rows.parquet")
    theirs = tmp_path / "duckdb"
    theirs.mkdir()
    for name in compare.TABLES:
        found = rows.select(["cluster", "partition"])
        if name == "posture":
            found = found.slice(0, 1).append_column("checks", [[[{"control": known}]]])
        pq.write_table(found, theirs / f"{name}.parquet")
    (line,) = compare.differences(tmp_path / "lake", "r", theirs)
    only = {"cluster": "eu", "partition": 1, "checks": [{"control": known}]}
    assert line == f"posture: 1 rows of evaluate alone, such as {only}"


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
    assert collect.compared(printed, document, []) == 1
    with pytest.raises(AuditError, match=r"t-0: kafka-topics reports Described\(leader=1, .* isr=\[1, 2\]"):
        collect.compared({("t", 0): Described(1, [1, 2], [1, 2], [])}, document, [])
    with pytest.raises(AuditError, match=r"t-1: kafka-topics reports Described.* the collection None"):
        collect.compared(printed | {("t", 1): Described(1, [1], [1], [])}, document, [])
    with pytest.raises(AuditError, match="group orders"):
        collect.compared(printed, document, ["orders"])
    with pytest.raises(AuditError, match="t bytes"):
        collect.compared(
            printed,
            document
            | {
                "topics": [
                    {**document["topics"][0], "partitions": [{k: v for k, v in partition.items() if k != "bytes"}]}
                ]
            },
            [],
        )


def test_losses_restarts_and_moves_of_one_cluster_are_measured(tmp_path, capsys):
    """Every pair of brokers whose loss stops writes is counted, no wave has one, and moves copy no more than they must."""
    results = tmp_path / "results.json"
    assert failures.main({"BROKERS": "9", "SIZE": "40", "SEED": "3", "RESULTS": str(results)}) == 0
    steps = json.loads(results.read_text())["steps"]
    replicas = failures.placed(9, 40, 3)
    pairs = {pair for ids in replicas.tolist() for pair in itertools.combinations(sorted(ids), 2)}
    assert f"2: {len(pairs)}," in steps["k up to 3"]["found"] and len(pairs) < 36
    waves, bound = map(int, re.findall(r"\d+", steps["restart plan"]["found"]))
    assert bound <= waves < 9
    of_bounds = steps["plan of moves"]["of_bounds"]
    assert of_bounds["moved replicas"] == of_bounds["moved bytes"] == 1 <= of_bounds["most bytes"]
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("option", [{"BROKERS": "many"}, {"BROKERS": "2"}, {"SIZE": "0"}])
def test_a_cluster_that_makes_no_sense_is_refused(option):
    with pytest.raises(SystemExit, match=next(iter(option))):
        failures.main(option)
