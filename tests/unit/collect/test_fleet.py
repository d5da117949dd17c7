"""A hundred clusters in four groups: what doesn't answer is missing by name, costs its own time and nobody else's."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import durability.collect
from durability.errors import Unreachable
from durability.steps import collect as collect_step
from durability.steps.collect import THREADS, collect_group
from durability.steps.sources import GROUPS, UNKNOWN_SIZE, from_clusters, partition_into_groups
from tests.support.lake import accepted

HEALTHY, SILENT, TRICKLING, REFUSING, NAMELESS = 80, 10, 4, 3, 3
WITHIN = 4  # seconds that each of the unreachable has


class Listener:
    """A port that takes connections, never says what a broker would, and counts how many are open at once."""

    def __init__(self, *, trickle: bool = False):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.most = self._open = 0
        self._trickle, self._guard, self._done = trickle, threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._done.is_set():
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._hold, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _hold(self, connection: socket.socket) -> None:
        with self._guard:
            self._open += 1
            self.most = max(self.most, self._open)
        connection.settimeout(0.1)
        with connection:
            try:
                # A long answer is announced, and comes a byte at a time.
                connection.sendall((100_000).to_bytes(4, "big") if self._trickle else b"")
                while not self._done.is_set():
                    try:
                        if not connection.recv(4096):
                            break
                    except TimeoutError:
                        connection.sendall(b"\0" if self._trickle else b"")
            except OSError:
                pass  # the other side has given up, which is what it should do
        with self._guard:
            self._open -= 1

    def close(self) -> None:
        self._done.set()
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def listeners():
    made = {"silent": Listener(), "trickling": Listener(trickle=True)}
    yield made
    for each in made.values():
        each.close()


def write(path: Path, clusters: list[tuple[str, str, int]]) -> Path:
    """A clusters file: (id, Connection, seconds)."""
    rows = [{"id": name, "connection": c, "read_within": f"{seconds}s"} for name, c, seconds in clusters]
    path.write_text(json.dumps({"format": "durability-clusters/1", "clusters": rows}))
    return path


def read_all(lake, groups, connect, seconds: float = 300.0) -> list[dict]:
    """Every group at once, as Airflow runs them."""

    with ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(lambda group: collect_group(lake, group, connect, seconds=seconds), groups))


def test_a_hundred_clusters_of_which_twenty_are_out_of_reach(kafka, lake, listeners, tmp_path):

    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = f"127.0.0.1:{server.getsockname()[1]}"
    addresses = {
        "healthy": kafka.bootstrap,
        **{name: each.address for name, each in listeners.items()},
        "refusing": refusing,
        "nameless": "kafka.invalid:9092",
    }
    dead = ["silent"] * SILENT + ["trickling"] * TRICKLING + ["refusing"] * REFUSING + ["nameless"] * NAMELESS
    # As bad as a file can be on a first night: all that are out of reach come first in the same group.
    kinds = [kind for each in dead for kind in (each, *["healthy"] * (GROUPS - 1))]
    kinds += ["healthy"] * (HEALTHY - kinds.count("healthy"))
    rows = [(f"{kind}-{n}", kind, 120 if kind == "healthy" else WITHIN) for n, kind in enumerate(kinds)]
    listed = from_clusters(write(tmp_path / "clusters.yaml", rows))
    groups = partition_into_groups(listed)
    assert len(listed) == 100 and [len(group) for group in groups] == [25] * GROUPS
    assert {s["connection"] for s in groups[0][: len(dead)]} == set(dead)

    started = datetime.now(UTC)
    read = read_all(lake, groups, lambda connection: {"bootstrap.servers": addresses[connection]})

    attempts = [a for group in read for a in group.attempts]
    failures = [f for group in read for f in group.failures]
    assert Counter(a.cluster.partition("-")[0] for a in attempts) == {"healthy": HEALTHY}
    assert Counter(f.cluster.partition("-")[0] for f in failures) == Counter(dead)
    said = {"silent": "timed out", "trickling": "", "refusing": "connection refused", "nameless": "can't be resolved"}
    for f in failures:
        kind = f.cluster.partition("-")[0]
        assert f.reason.startswith(f"cluster {f.cluster} can't be reached: {addresses[kind]}: "), f
        assert said[kind] in f.reason
    # Bounded by threads and limits: eight at once, so three times the seconds of one and not twenty times.
    assert 0 < listeners["silent"].most <= THREADS and 0 < listeners["trickling"].most <= THREADS
    ended = max(f.at for f in failures)
    assert (ended - started).total_seconds() < (SILENT + TRICKLING) * WITHIN * 0.75

    lake.publish(attempts, accepted(*attempts))
    lake.record_failures([(f.cluster, f.at, f.reason) for f in failures])
    snapshots = lake.snapshots()
    assert Counter(row["status"] for row in snapshots) == {"accepted": HEALTHY, "failed": len(dead)}
    # The night after, they are behind everyone else, and no group has more of them than another.
    for group in partition_into_groups(listed, snapshots):
        assert [s["connection"] != "healthy" for s in group] == [False] * 20 + [True] * 5


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
