"""The clusters of a fleet share threads and time: one that doesn't answer costs its own time and nobody else's."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

import durability.collect
from durability.errors import Unreachable
from durability.steps import collect as collect_step
from durability.steps.collect import THREADS, collect_group
from durability.steps.sources import GROUPS, UNKNOWN_SIZE, from_clusters, partition_into_groups
from tests.support.fleet import read_all, write


class Staged:
    """A lake that counts what is staged; `wanted`: set when it is so much."""

    def __init__(self, wanted: int):
        self.names: list[str] = []
        self.all = threading.Event()
        self._wanted = wanted

    def stage(self, topology, **_):
        self.names.append(topology)
        if len(self.names) == self._wanted:
            self.all.set()
        return SimpleNamespace(cluster=topology)


@pytest.mark.parametrize("night", ["first", "second"])
def test_whoever_answers_waits_for_nobody_who_does_not(monkeypatch, tmp_path, night):
    """The dead hold on until everyone else has been read: if one of those waited for a dead one, none would end.

    On the first night nobody knows them, and each group has one thread left; on the second half of the fleet is dead.
    """

    dead = GROUPS * (THREADS - 1) if night == "first" else 50
    monkeypatch.setattr(collect_step, "PARTITIONS_AT_ONCE", 10**9)
    lake = Staged(100 - dead)

    def collect(name, settings, **_):
        if name.startswith("dead"):
            assert lake.all.wait(60), f"only {len(lake.names)} were read while the dead held on"
            raise Unreachable(f"cluster {name} can't be reached")
        return name

    monkeypatch.setattr(durability.collect, "collect", collect)
    names = [f"dead-{n}" for n in range(dead)] + [f"alive-{n}" for n in range(100 - dead)]
    listed = from_clusters(write(tmp_path / "clusters.yaml", [(name, "k", 120) for name in names]))
    failed = {"captured_at": datetime.now(UTC), "status": "failed", "partitions": None}
    before = [failed | {"cluster": name} for name in names[:dead]] if night == "second" else []
    read = read_all(lake, partition_into_groups(listed, before), lambda _: {})
    assert sorted(a.cluster for group in read for a in group.attempts) == sorted(names[dead:])
    assert {f.reason for group in read for f in group.failures} == {
        f"cluster {name} can't be reached" for name in names[:dead]
    }


def test_what_is_read_at_once_is_bounded_by_its_size(monkeypatch):
    """A topology is in memory as a whole: large clusters go one after another, small ones beside them."""

    sizes = {"vast": 250_000, "large-1": 70_000, "large-2": 70_000, **{f"small-{n}": 5_000 for n in range(12)}}
    guard, held, most = threading.Lock(), [], []

    def collect(name, settings, *, limits, **_):
        with guard:
            held.append(name)
            most.append((len(held), sum(sizes[each] for each in held)))
        threading.Event().wait(0.05)
        with guard:
            held.remove(name)
        return name

    monkeypatch.setattr(durability.collect, "collect", collect)
    group = [{"name": n, "connection": "k", "partitions": size, "seconds": 60} for n, size in sizes.items()]
    read = collect_group(Staged(99), group, lambda _: {}, seconds=60)
    assert sorted(a.cluster for a in read.attempts) == sorted(sizes)
    assert all(together <= collect_step.PARTITIONS_AT_ONCE or number == 1 for number, together in most)
    assert 1 < max(number for number, _ in most) <= THREADS


def test_a_group_ends_in_time_and_names_those_whose_turn_did_not_come(monkeypatch):
    """A task that Airflow ended would lose what it had read; what a cluster is allowed shrinks to what is left."""

    allowed = {}

    def collect(name, settings, *, limits, **_):
        allowed[name] = limits.deadline
        threading.Event().wait(limits.deadline)
        return name

    monkeypatch.setattr(durability.collect, "collect", collect)
    group = [
        {"name": n, "connection": "k", "partitions": 1, "seconds": s} for n, s in zip("abc", (0.3, 9, 0.9), strict=True)
    ]
    read = collect_group(Staged(99), group, lambda _: {}, seconds=1.0, threads=1)
    assert [a.cluster for a in read.attempts] == ["a", "b"]
    assert allowed["a"] == 0.3 and 0.4 < allowed["b"] <= 0.7
    ((reason),) = [f.reason for f in read.failures]
    assert reason == "not read: its group of 3 clusters used up its 1 s"
    assert read.sources == ["a", "b", "c"] and read.failures[0].cluster == "c"


def test_largest_first_and_last_nights_failures_last_and_apart():
    sources = [{"name": n} for n in ("gone", "new", "small", "large", "lost", "back")]
    rows = [
        ("large", 2, "accepted", 70_000),
        ("small", 2, "rejected", 100),
        ("gone", 1, "accepted", 90_000),
        ("gone", 2, "failed", None),
        ("lost", 2, "failed", None),
        ("back", 1, "failed", None),
        ("back", 2, "accepted", 30_000),
    ]
    keys = ("cluster", "captured_at", "status", "partitions")
    groups = partition_into_groups(sources, [dict(zip(keys, row, strict=True)) for row in reversed(rows)])
    assert [[(s["name"], s["partitions"]) for s in group] for group in groups] == [
        [("large", 70_000), ("gone", 90_000)],
        [("back", 30_000), ("lost", UNKNOWN_SIZE)],
        [("new", UNKNOWN_SIZE)],
        [("small", 100)],
    ]
