"""losses.json, from rows of `failure_costs` and `loss_sets`, against brute force over all losses."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import combinations
from math import comb

import pyarrow as pa
import pytest

from durability import schemas
from durability.lake import tables
from durability.lake.tables import VIEWS
from durability.report.build import build
from durability.report.data import failure_costs
from durability.report.data.failure_costs import FailureCosts
from durability.report.data.loss_sets import COLUMNS
from durability.restart import plan as restart
from durability.restart.nodes import Node
from tests.support.failure_costs import KEYS, SETS, Cluster, Partition, of_brokers
from tests.support.failure_costs import tables as rows_of
from tests.support.report_cases import NIGHT, finding, findings, flagged, plan, snapshot, written
from tests.support.schemas import problems


def random_cluster(name: str, seed: int, down: tuple[int, ...] = (), brokers: int = 8, racks: int = 3) -> Cluster:
    """A cluster of random partitions with one to four replicas, some of them out of sync."""
    rng = random.Random(seed)
    ids = range(1, brokers + 1)
    partitions = []
    for number in range(30):
        replicas = tuple(rng.sample(ids, rng.choice((1, 2, 3, 3, 3, 4))))
        alive = [id for id in replicas if id not in down]
        in_sync = tuple(alive[: rng.randint(1, len(alive))]) if alive else replicas[-1:]
        partitions.append(
            Partition(f"topic-{number // 4}", replicas, in_sync, min(rng.choice((1, 2, 2)), len(replicas)))
        )
    return Cluster(name, {id: f"az{id % racks}" for id in ids}, partitions, down)


def entry_of(cluster: Cluster) -> dict:
    """The cluster's entry in losses.json."""
    costs, sets = rows_of([cluster])
    sets = sets.select(COLUMNS)
    return failure_costs.entry(snapshot(cluster.name), costs.to_pylist(), sets, of_brokers(cluster), controllers=())


@pytest.mark.parametrize("seed", range(20))
def test_the_fewest_waves_are_those_of_the_restart_plan(seed):
    """The report knows the killing sets alone, the plan knows the partitions."""
    cluster = random_cluster("eu", seed, down=(2,) if seed % 3 == 0 else ())
    limits = [
        restart.Partitions(frozenset(p.replicas), frozenset(p.replicas), p.minimum, 1, (p.topic, 0))
        for p in cluster.partitions
    ]
    nodes = [Node(id, rack, live=True, broker=True) for id, rack in cluster.brokers.items()]
    waves = len(restart.plan(limits, nodes, restart.Limits()).waves)
    assert entry_of(cluster)["restart"] == {"waves": waves, "bound": waves}
    assert waves > 1


SEEN = {"topics_known": True, "hidden_partitions": 0, "quorum_mode": "kraft"}


def test_of_restarts_nothing_is_said_where_what_was_not_seen_may_limit_waves(lake, stored):
    seen = {
        "whole": SEEN,
        "zookeeper": SEEN | {"quorum_mode": "zookeeper"},
        "hidden": SEEN | {"hidden_partitions": 3},
        "maybe-hidden": SEEN | {"hidden_partitions": None},
        "unlisted": SEEN | {"topics_known": False},
        **dict.fromkeys(("no-voters", "wide", "unread", "moving"), SEEN),
    }
    stored(*(random_cluster(name, 1) for name in seen), seen=seen)

    def add(table, rows):
        at = {"captured_at": NIGHT}
        rows = [{**row, **at, "attempt_id": f"attempt-{row['cluster']}"} for row in rows]
        lake.append(table, pa.Table.from_pylist(rows, table.arrow))

    voter = {"controller": 1, "role": "voter", "leader": True}
    add(tables.CONTROLLERS, [{"cluster": name, **voter} for name in seen if name not in ("no-voters", "zookeeper")])
    topics = [(name, 9 if name == "wide" else 3, name != "unread") for name in seen]
    add(
        tables.TOPICS,
        [{"cluster": n, "topic": "t", "replication_factor": rf, "partitions_known": k} for n, rf, k in topics],
    )
    made = plan(snapshots=[snapshot(name, attempt_id=f"attempt-{name}") for name in seen])
    moves = [(name, json.dumps({"reassigning": int(name == "moving")})) for name in seen]
    of_moves = {"control": "reassignment-leftovers", "result_id": made.result_id, "run_id": made.run_id}
    add(tables.FINDINGS, [{"cluster": name, "observed": observed, **of_moves} for name, observed in moves])
    entries = FailureCosts(lake, made)
    assert {e["cluster"] for e in entries if e["restart"]} == {"whole", "zookeeper"}


def test_of_restarts_nothing_is_said_where_a_fact_or_a_set_is_missing():
    cluster = random_cluster("eu", 1)
    costs, sets = rows_of([cluster])
    told = (snapshot("eu"), costs.to_pylist(), sets.select(COLUMNS), of_brokers(cluster))
    assert failure_costs.entry(*told)["restart"] is None
    assert entry_of(replace(cluster, unknown=1))["restart"] is None


def test_waves_need_no_racks():
    """A broker without a rack may be in any, so what a rack's loss breaks is unknown."""
    cluster = random_cluster("eu", 1)
    costs, sets = rows_of([cluster])
    unsure = [row | {"unknown": 3} if row["kind"] == "rack" else row for row in costs.to_pylist()]
    told = failure_costs.entry(snapshot("eu"), unsure, sets.select(COLUMNS), of_brokers(cluster), controllers=())
    assert told["unknown"] == 3
    assert told["restart"] == entry_of(cluster)["restart"] is not None


@pytest.fixture
def stored(lake):
    """Writes clusters into a lake."""

    def store(*clusters: Cluster, seen=None):
        """seen: columns of `clusters` by name."""
        costs, sets = rows_of(clusters)
        lake.append(tables.FAILURE_COSTS, costs)
        lake.append(tables.LOSS_SETS, sets)
        at = {"captured_at": NIGHT}
        facts = [{**row, **at, "attempt_id": f"attempt-{of.name}"} for of in clusters for row in of_brokers(of)]
        lake.append(tables.BROKERS, pa.Table.from_pylist(facts, tables.BROKERS.arrow))
        seen = seen or dict.fromkeys((of.name for of in clusters), SEEN | {"quorum_mode": "zookeeper"})
        facts = [{"cluster": name, **row, **at, "attempt_id": f"attempt-{name}"} for name, row in seen.items()]
        lake.append(tables.CLUSTERS, pa.Table.from_pylist(facts, tables.CLUSTERS.arrow))
        return lake

    return store


@pytest.mark.parametrize("down", [(), (2,), (1, 4, 7)], ids=["whole", "a broker is down", "a rack is down"])
def test_counts_are_those_of_enumeration(down):
    """az1 has brokers 1, 4 and 7."""
    cluster = random_cluster("eu", 3 + len(down), down)
    found = entry_of(cluster)
    live = [broker for broker in cluster.brokers if broker not in down]
    racks = [rack for rack in cluster.racks if cluster.of_rack([rack]) - set(down)]
    for suffix, nodes, lost in (("", live, set), ("_racks", racks, cluster.of_rack)):
        assert [k["k"] for k in found[f"k{suffix}"]] == [k for k in (1, 2, 3) if k <= len(nodes)]
        for at in found[f"k{suffix}"]:
            assert at["sets"] == comb(len(nodes), at["k"]) and at["estimate"] is False
            for view, name in SETS:
                bad = [
                    members
                    for members in combinations(nodes, at["k"])
                    if any(cluster.newly(p, view, name, lost(members)) for p in cluster.partitions)
                ]
                assert at[view][name] == {"sets": len(bad), "probability": len(bad) / at["sets"]}


@pytest.mark.parametrize("down", [(), (2,)])
def test_minimal_sets_are_those_of_enumeration(down):
    cluster = random_cluster("eu", 11, down)
    found = entry_of(cluster)
    live = [broker for broker in cluster.brokers if broker not in down]
    for view, name in SETS:
        expected: dict[tuple[int, ...], int] = {}
        for size in (1, 2, 3, 4):
            for members in combinations(live, size):
                broken = sum(cluster.newly(p, view, name, set(members)) for p in cluster.partitions)
                if broken and not any(set(part) < set(members) for part in expected):
                    expected[members] = broken
        listed = [(tuple(s["brokers"]), s["partitions"]) for s in found["minimal"][view][name]]
        assert listed == sorted(expected.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
        assert found["minimal"]["count"][view][name] == len(expected)


def test_every_broker_and_rack_is_listed_worst_first():
    partitions = [Partition("lone", (3,), (3,), 1), Partition("pair", (1, 2), (1, 2), 2)]
    partitions += [Partition("safe", (1, 2, 3), (2, 1, 3), 1)] * 2
    brokers = {1: "a", 2: "b", 3: "c", 4: "d"}
    found = entry_of(Cluster("eu", brokers, partitions, quorum={"d"}))
    assert [row["lost"] for row in found["brokers"]] == [3, 2, 1, 4]
    assert [row["lost"] for row in found["racks"]] == ["d", "c", "b", "a"]
    assert found["racks"][0]["quorum"] == "lost"
    worst = found["brokers"][0]
    assert (worst["held"], worst["led"], worst["live"], worst["quorum"]) == (3, 1, True, "kept")
    assert worst["views"]["now"] == {name: {"partitions": 1, "topics": 1} for name in VIEWS["now"]}
    assert found["brokers"][1]["views"]["now"]["writes"] == {"partitions": 1, "topics": 1}
    assert found["brokers"][3]["views"]["structural"]["data"] == {"partitions": 0, "topics": 0}
    assert (found["cluster"], found["captured_at"]) == ("eu", "2026-11-21T02:00:00Z")


def test_what_is_broken_already_is_told_apart():
    found = entry_of(Cluster("eu", {1: "a", 2: "b"}, [Partition("t", (1, 2), (1,), 2)]))
    assert found["already"]["now"]["writes"] == {"partitions": 1, "topics": 1}
    assert all(row["views"]["now"]["writes"]["partitions"] == 0 for row in found["brokers"])
    assert found["minimal"]["now"]["writes"] == [] and found["k"][0]["now"]["writes"]["sets"] == 0


def test_a_list_of_sets_is_cut_and_says_how_many_there_are():
    partitions = [Partition("t", pair, pair, 1) for pair in combinations(range(1, 17), 2)]
    cluster = Cluster("eu", dict.fromkeys(range(1, 17), "a"), partitions)
    found = entry_of(cluster)
    assert len(found["minimal"]["now"]["data"]) == 100
    assert found["minimal"]["count"]["now"]["data"] == 120
    assert [k["k"] for k in found["k_racks"]] == [1]


def test_clusters_are_read_in_groups_and_other_results_are_not(stored, monkeypatch):
    monkeypatch.setattr(failure_costs, "ROWS", 60)
    clusters = [random_cluster(f"c{n}", n, brokers=5) for n in range(4)]
    lake = stored(*clusters)
    other = [{**row, "result_id": "result-0"} for row in random_cluster("c0", 9, brokers=9).costs()]
    lake.append(tables.FAILURE_COSTS, pa.Table.from_pylist(other, tables.FAILURE_COSTS.arrow))
    snapshots = [snapshot(of.name, attempt_id=f"attempt-{of.name}") for of in clusters]
    found = {entry["cluster"]: entry for entry in FailureCosts(lake, plan(snapshots=snapshots))}
    assert found == {of.name: entry_of(of) for of in clusters}


def test_a_run_writes_the_file_with_what_is_missing(stored, tmp_path):
    lake = stored(random_cluster("eu", 1))
    lake.append(tables.FINDINGS, findings([finding("orders", "replication-factor")]))
    dead = snapshot("dead", "failed", attempt_id=None, captured_at=None, snapshot_id=None, reason="no answer")
    parts = [snapshot("eu", attempt_id="attempt-eu"), snapshot("older"), dead]
    files = build(lake, plan(snapshots=parts), flagged(), tmp_path / "out")
    document = json.loads(files["losses.json"].read_text())
    assert document["format"] == "durability-losses/1" and document["run"]["id"] == KEYS["run_id"]
    assert [entry["cluster"] for entry in document["clusters"]] == ["eu"]
    assert document["missing"] == [
        {"cluster": "older", "reason": "this run didn't compute its losses"},
        {"cluster": "dead", "reason": "failed: no answer"},
    ]
    assert problems("losses", document) == []


def test_the_schema_knows_every_key_that_is_written(tmp_path):
    partitions = [Partition("t", (broker, broker + 1), (broker,), 1) for broker in range(1, 40)]
    found = entry_of(Cluster("eu", {id: f"az{id % 3}" for id in range(1, 41)}, partitions, unknown=2))
    assert [(k["k"], k["estimate"]) for k in found["k"]] == [(1, False), (2, False), (3, False), (4, True)]
    written([], tmp_path, losses=[found], snapshots=[snapshot("eu")])
    document = json.loads((tmp_path / "losses.json").read_text())
    assert problems("losses", document) == []
    schema = schemas.schema("losses")
    shapes = {name: shape["properties"].keys() for name, shape in schema["$defs"].items()}
    [entry] = document["clusters"]
    assert schema["properties"].keys() == document.keys() and shapes["cluster"] == entry.keys()
    assert shapes["lost-broker"] == entry["brokers"][0].keys() and shapes["lost-rack"] == entry["racks"][0].keys()
    assert shapes["k"] == entry["k"][0].keys() and shapes["views"] == entry["already"].keys()
    assert shapes["minimal-brokers"] == entry["minimal"].keys()
    assert entry["unknown"] == 2


def test_unknown_numbers_stay_unknown(tmp_path):
    cluster = Cluster("eu", {1: "a", 2: "b"}, [Partition("t", (1, 2), (1, 2), 1)])
    costs = [{**row, "now_data": None, "unknown": None, "held": None} for row in cluster.costs()]
    table = pa.Table.from_pylist(costs, tables.FAILURE_COSTS.arrow)
    found = failure_costs.entry(snapshot("eu"), table.to_pylist(), rows_of([cluster])[1], of_brokers(cluster))
    assert found["unknown"] is None and found["brokers"][0]["views"]["now"]["data"] is None
    written([], tmp_path, losses=[found], snapshots=[snapshot("eu")])
    assert problems("losses", json.loads((tmp_path / "losses.json").read_text())) == []
