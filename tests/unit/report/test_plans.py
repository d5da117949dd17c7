"""Reassignment plans: what they put where, held against a search over all placements, and what stays in the folder."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.findings import reassignments
from durability.findings.faults import Faults
from durability.lake import tables
from durability.remedies.plans import EVEN, ROOM, SPREAD, Broker, Placement, folder, has_room, moved
from durability.report import plans
from durability.topology import validate
from tests.support.report_cases import NIGHT, plan, snapshot
from tests.support.schemas import problems
from tests.support.topology import document

BROKERS = st.lists(st.tuples(st.sampled_from(["az1", "az2", "az3", None]), st.booleans()), min_size=1, max_size=6).map(
    lambda drawn: [Broker(n, rack, live) for n, (rack, live) in enumerate(drawn)]
)


def racks_of(brokers, ids):
    return {b.rack for b in brokers if b.id in ids and b.rack is not None}


@settings(max_examples=400, deadline=None)
@given(BROKERS, st.data(), st.integers(1, 4), st.integers(1, 3))
def test_a_plan_meets_the_target_wherever_a_placement_that_moves_no_more_does(brokers, data, copies, racks):
    """Oracle: every set of brokers of the wanted size that keeps at least as many of the replicas. Racks that the cluster doesn't
    have can't be wanted."""
    ids = [b.id for b in brokers]
    replicas = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True))
    chosen = Placement(brokers, Counter()).choose(replicas, copies, racks)
    size, racks = max(copies, len(replicas)), min(racks, len(racks_of(brokers, ids)))
    live = {b.id for b in brokers if b.live}
    possible = [
        set(c) for c in combinations(ids, size) if len(racks_of(brokers, c)) >= racks and set(c) - set(replicas) <= live
    ]
    if chosen is None:
        assert not possible
        return
    assert len(set(chosen)) == len(chosen) == size
    assert set(chosen) in possible
    assert len(set(chosen) & set(replicas)) == max(len(p & set(replicas)) for p in possible)
    if set(replicas) in possible:
        assert chosen == replicas


@settings(max_examples=400, deadline=None)
@given(BROKERS, st.data(), st.integers(2, 4), st.integers(2, 3), st.integers(1, 4))
def test_acked_racks_are_guaranteed_by_any_so_many_replicas(brokers, data, copies, racks, least):
    """Oracle: every `least` of the chosen replicas, and, where nothing was chosen, every placement there is."""
    ids = [b.id for b in brokers]
    replicas = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True))
    chosen = Placement(brokers, Counter()).choose(replicas, copies, 1, (racks, least))

    def guarantees(placed):
        return all(len(racks_of(brokers, worst)) >= racks for worst in combinations(placed, min(least, len(placed))))

    size, live = max(copies, len(replicas)), {b.id for b in brokers if b.live}
    possible = [c for c in combinations(ids, size) if guarantees(c) and set(c) - set(replicas) <= live]
    if chosen is None:
        assert not possible
    else:
        assert len(set(chosen)) == size and guarantees(chosen)
        assert set(chosen) - set(replicas) <= live


def test_new_replicas_go_to_other_racks_and_to_who_has_least():
    brokers = [Broker(1, "a", True), Broker(2, "a", True), Broker(3, "b", True), Broker(4, "b", True)]
    placement = Placement(brokers, Counter({1: 5, 2: 0, 3: 4, 4: 3}))
    assert placement.choose([1], 2, 1) == [1, 4]
    assert placement.choose([1], 2, 1) == [1, 3]  # now both have 4
    assert placement.choose([1, 2], 2, 2) == [1, 4]


def test_copies_are_added_where_the_cluster_has_too_few_racks():
    bare = Placement([Broker(n, None, True) for n in (1, 2, 3)], Counter())
    assert bare.choose([1], 3, 2) == [1, 2, 3]
    assert bare.choose([1], 3, 2, own_racks=True, balanced=True) == [1, 2, 3]
    two = Placement([Broker(n, rack, True) for n, rack in enumerate("aab")], Counter())
    assert two.choose([0], 3, 3, own_racks=True) == [0, 2, 1]


def test_a_folder_is_safe_on_a_command_line():
    names = {folder(n) for n in ("eu", "EU 1", "EU;1", "../etc", "-rf", ".", "é", "$(id)")}
    assert len(names) == 8
    for name in names:
        assert not set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert name[0] not in "-."


RESULT = {"run_id": "run-1", "result_id": "result-1", "captured_at": NIGHT}


@pytest.fixture
def audited(lake):
    """A cluster with topics that need more replicas or other racks, and the run's plan that judged it."""
    doc = document(
        "topic replicas isr adding\na 1 1 -\na 2 2 -\nb 1,4 1,4 -\nbusy 1,2 1 2\ndead 1,5,4 1,4 -\nwide 1 1 -",
        brokers="1:az1 2:az2 3:az3 4:az1 5:az2!",
        cluster="eu",
    )
    attempt = lake.stage(validate(doc, "eu.json"))
    lake.publish(
        [attempt], [type("Verdict", (), {"accepted": True, "reason": None, "attempt_id": attempt.attempt_id})()]
    )
    rows = [
        ("a", 2, 3, 2, True),
        ("b", 1, 2, 2, True),
        ("busy", 1, 2, 1, True),
        ("dead", 1, 3, 3, True),
        ("wide", 1, 9, 1, True),
        ("good", 1, 3, 2, False),
    ]
    names = ("topic", "partitions", "target_replication_factor", "target_racks", "reassign")
    posture = [{**RESULT, "cluster": "eu", **dict(zip(names, r, strict=True))} for r in rows]
    import pyarrow as pa

    empty = {n: None for n in tables.TOPIC_POSTURE.arrow.names}
    lake.append(tables.TOPIC_POSTURE, pa.Table.from_pylist([empty | r for r in posture], tables.TOPIC_POSTURE.arrow))
    return lake, plan(snapshots=[snapshot("eu", attempt_id=attempt.attempt_id)])


FULL = [{"path": "/a", "error": None, "total_bytes": 100, "usable_bytes": 50}]
FULL.append({"path": "/b", "error": None, "total_bytes": 100, "usable_bytes": 9})
FAILED = [{"path": "/a", "error": "KAFKA_STORAGE_ERROR", "total_bytes": None, "usable_bytes": None}]
SILENT = [{"path": "/a", "error": None, "total_bytes": None, "usable_bytes": None}]


@pytest.mark.parametrize(
    ("log_dirs", "chosen"), [(None, 2), (SILENT, 2), ([], 2), (FULL[:1], 2), (FULL, 3), (FAILED, 3)]
)
def test_a_broker_without_room_gets_no_replica(log_dirs, chosen):
    brokers = [Broker(1, "a", True), Broker(2, "b", True, has_room(log_dirs)), Broker(3, "c", True)]
    topic = {"target_replication_factor": 2, "target_racks": 2, **dict.fromkeys((*EVEN, *SPREAD))}
    assert moved(Placement(brokers, Counter({3: 9})), [(0, [1], [])], topic) == ([(0, [1, chosen])], None)


def test_without_room_there_is_no_plan_and_disks_are_the_reason():
    brokers = [Broker(1, "a", True), Broker(2, "b", True, False)]
    topic = {"target_replication_factor": 2, "target_racks": 2, **dict.fromkeys((*EVEN, *SPREAD))}
    assert moved(Placement(brokers, Counter()), [(0, [1], [])], topic) == ([], ROOM)


@pytest.mark.parametrize("damage", ["", "{", '{"format": "dur', "[]", "null", '{"plans": [{}]}', "\udcff"])
def test_a_damaged_index_is_made_anew_and_its_plans_go(audited, tmp_path, damage):
    lake, run = audited
    reassignments.write(lake, run)
    folder = plans.write(lake, run, tmp_path)
    mine = {"mine.json": "{}", "mine.txt": "", "moved.json": '{"version": 1, "partitions": [{"topic": "other"}]}'}
    for name, text in mine.items():
        (folder / "eu" / name).write_text(text)
    (folder / "eu" / "old.json").write_text('{\n "version": 1, "par')
    (folder / "index.json").write_bytes(damage.encode(errors="surrogateescape"))
    assert plans.write(lake, run, tmp_path) == folder
    assert problems("plans", json.loads((folder / "index.json").read_text())) == []
    (folder / "index.json").write_bytes(damage.encode(errors="surrogateescape"))
    assert plans.write(lake, plan(run_id="run-2", snapshots=run.snapshots), tmp_path) is None
    assert {path.name for path in (folder / "eu").iterdir()} == set(mine)
    assert not (folder / "index.json").exists()


def test_plans_are_written_as_kafkas_tool_reads_them_and_replaced(audited, tmp_path):
    lake, run = audited
    made = reassignments.write(lake, run)
    assert reassignments.write(lake, run) == reassignments.read(lake, run) == made, "a retry keeps them"
    folder = plans.write(lake, run, tmp_path)
    index = json.loads((folder / "index.json").read_text())
    assert problems("plans", index) == []
    waits = "broker 5 is back: the tool rejects a plan that names it"
    assert [(p["file"], p.get("not_before")) for p in index["plans"]] == [
        ("eu/a.json", None),
        ("eu/b.json", None),
        ("eu/dead.json", waits),
    ]
    assert {(s["topic"], s["why"]) for s in index["without"]} == {
        ("busy", "no replica has to move, apart from a running reassignment"),
        ("wide", "the live brokers and their racks don't suffice"),
    }
    made = json.loads((folder / "eu" / "a.json").read_text())
    assert made["version"] == 1
    assert {(p["topic"], p["partition"], len(p["replicas"])) for p in made["partitions"]} == {("a", 0, 3), ("a", 1, 3)}
    assert all(p["replicas"][0] == p["partition"] + 1 and 5 not in p["replicas"] for p in made["partitions"])
    files = {"file": "eu/brokers+gone.json", "script": "eu/brokers+gone.sh"}
    assert index["gone"] == [{"cluster": "eu", "brokers": [5], **files, "partitions": 1, "left": 0}]
    (off,) = json.loads((folder / files["file"]).read_text())["partitions"]
    assert (off["topic"], off["replicas"][:2], len(off["replicas"])) == ("dead", [1, 4], 3) and 5 not in off["replicas"]
    assert "for topic in dead; do kafka-configs" in (folder / files["script"]).read_text()
    (folder / "eu" / "mine.json").write_text("{}")
    assert plans.write(lake, plan(run_id="run-2", snapshots=run.snapshots), tmp_path) is None
    assert sorted(p.name for p in folder.rglob("*.json")) == ["mine.json"]


def test_no_plan_is_written_for_a_cluster_without_a_controller(audited, tmp_path, monkeypatch):
    lake, run = audited
    assert reassignments.make(lake, run).made
    monkeypatch.setattr(reassignments.quorum, "led", lambda lake, attempts: {"eu": False})
    halted = reassignments.make(lake, run)
    assert (halted.made, halted.gone) == ([], {})
    assert set(halted.without.values()) == {"no controller leads, so no replica can be moved"}
    assert {topic for _, topic in halted.without} >= {"a", "b", "dead", "busy", "wide"}
    monkeypatch.setattr(reassignments, "read", lambda lake, run: halted)
    folder = plans.write(lake, run, tmp_path)
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["index.json"]


def test_a_topic_whose_plan_cannot_be_made_costs_its_plan(audited, monkeypatch):
    lake, run = audited
    whole = {plan.topic for plan in reassignments.make(lake, run).made}
    moved = reassignments.moved

    def broken(placement, partitions, topic):
        if topic["topic"] == "a":
            raise TypeError("'<' not supported")
        return moved(placement, partitions, topic)

    monkeypatch.setattr(reassignments, "moved", broken)
    faults = Faults()
    plans = reassignments.make(lake, run, faults)
    assert {plan.topic for plan in plans.made} == whole - {"a"}
    assert plans.without["eu", "a"] == reassignments.NO_PLAN[1]
    assert next(iter(faults)).startswith(
        "eu: the reassignment plan of a could not be made, by a fault of the audit (TypeError"
    )
    with pytest.raises(TypeError):
        reassignments.make(lake, run)
