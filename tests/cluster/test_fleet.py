"""A hundred clusters in four groups, of which twenty are out of reach: those are missing by name, and delay no other."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest

from durability.runtime.processes import free_port
from durability.steps.collect import THREADS
from durability.steps.sources import GROUPS, from_clusters, partition_into_groups
from tests.support.fleet import read_all, write
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


def test_a_hundred_clusters_of_which_twenty_are_out_of_reach(kafka, lake, listeners, tmp_path):
    addresses = {
        "healthy": kafka.bootstrap,
        **{name: each.address for name, each in listeners.items()},
        "refusing": f"127.0.0.1:{free_port()}",
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
