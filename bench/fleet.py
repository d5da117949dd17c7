"""Generates a realistic fleet from a seed: clusters as topology documents, one at a time.

The proportions are those of published fleets (LinkedIn's: 100 clusters, 4,000 brokers, 100 thousand topics, 7 million
partitions). Skew, mistakes and failures are random. The same size and seed give the same fleet. `placement` decides where its
replicas are (`bench.placements`). Clusters, topics, settings, mistakes and failures don't depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from bench import placements
from bench.placements import WIDEST
from durability.topology import Topology
from durability.topology.document import FORMAT

CAPTURED = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
PARTITIONS_A_BROKER = 1750
VERSIONS = ("3.6", "3.7", "3.9", "4.0", "4.1", "4.3")
REPLICATION_FACTORS = {1: 0.02, 2: 0.06, 3: 0.88, 4: 0.01, 5: 0.03}
TOPIC_SIZES = {1: 0.22, 3: 0.16, 6: 0.13, 12: 0.13, 24: 0.1, 48: 0.08, 96: 0.07, 256: 0.06, 512: 0.03, 1024: 0.02}
MIN_ISRS = {None: 0.6, "1": 0.06, "2": 0.31, "3": 0.025, "4": 0.005}
NAMES = ("orders", "payments", "clicks", "audit", "inventory", "sessions", "prices", "shipments", "alerts", "metrics")
INTERNAL = {"__consumer_offsets": 50, "__transaction_state": 50}


@dataclass(frozen=True)
class Brokers:
    """A cluster's brokers. The id is the index. order: ids sorted so that neighbours are in different racks."""

    racks: np.ndarray  # rack number of each broker; -1: none configured
    live: np.ndarray
    order: np.ndarray


def topologies(size: int, seed: int, placement: str = "neighbours") -> Iterator[Topology]:
    """Clusters with `size` partitions in all. placement: one of `bench.placements.PLACEMENTS`.

    >>> fleet = list(topologies(5_000, seed=1))
    >>> len(fleet), sum(len(t["partitions"]) for c in fleet for t in c.document["topics"])
    (5, 5000)
    """
    seeds = np.random.default_rng(seed)
    count = int(np.clip(size // 1000, 1, 100))
    weights = seeds.lognormal(0, 1, count)
    shares = np.floor(weights / weights.sum() * size).astype(int)
    shares[0] += size - shares.sum()
    for number, partitions in enumerate(shares.tolist()):
        rng = np.random.default_rng((seed, number))
        moment = CAPTURED + timedelta(seconds=number)
        document = _cluster(rng, placement, f"cluster-{number:03d}", partitions, moment)
        yield Topology(document, f"{document['cluster']['id']}.json", f"{seed:08x}{number:08x}{size:048x}")


def _cluster(rng: np.random.Generator, placement: str, name: str, partitions: int, moment: datetime) -> dict:
    version = str(rng.choice(VERSIONS))
    elr = version >= "4.0" and bool(rng.random() < 0.7)
    brokers = _brokers(rng, max(3, round(partitions / PARTITIONS_A_BROKER)))
    topics = _topics(rng, placement, partitions, brokers, elr)
    default_min_isr = "2" if rng.random() < 0.8 else "1"
    configs = {"min.insync.replicas": default_min_isr, "default.replication.factor": "3"}
    voters = [{"id": 10_000 + n, "rack": f"az{n % 3 + 1}", "lag_ms": 0} for n in range(int(rng.choice([3, 5])))]
    return {
        "format": FORMAT,
        "cluster": {
            "id": name,
            "kafka_version": version,
            "captured_at": moment.isoformat().replace("+00:00", "Z"),
            "consistent": True,
            "features": {"eligible.leader.replicas.version": int(elr)} if version >= "4.0" else {},
            "quorum": {"leader": voters[0]["id"], "voters": voters, "observers": []},
        },
        "brokers": [
            {
                "id": broker,
                "rack": f"az{rack + 1}" if rack >= 0 else None,
                "live": live,
                "offline_log_dirs": 0,
                # Values that differ for each broker, as in live clusters.
                "configs": configs | {"node.id": str(broker), "log.dirs": f"/var/lib/kafka/{broker}"},
            }
            for broker, (rack, live) in enumerate(zip(brokers.racks.tolist(), brokers.live.tolist(), strict=True))
        ],
        "topics": topics,
        "streams": [_application(rng, f"app-{n}") for n in range(int(rng.integers(0, 4)))],
        "unreadable": [],
    }


def _brokers(rng: np.random.Generator, count: int) -> Brokers:
    racks = min(int(rng.integers(2, 7)), count)
    of = np.arange(count) % racks
    order = np.lexsort((of, np.arange(count) // racks))
    if rng.random() < 0.04:
        of = np.full(count, -1)
    live = np.ones(count, bool)
    fate = rng.random()
    if fate < 0.02 and of[0] >= 0:
        live = of != rng.integers(0, racks)
    elif fate < 0.15:
        live[rng.integers(0, count)] = False
    return Brokers(of, live, order)


def _drawn(rng: np.random.Generator, choices: dict, count: int) -> list:
    values, weights = list(choices), np.array(list(choices.values()))
    return [values[n] for n in rng.choice(len(values), count, p=weights / weights.sum())]


def _topics(rng: np.random.Generator, placement: str, partitions: int, brokers: Brokers, elr: bool) -> list[dict]:
    names = [(n, c, True) for n, c in INTERNAL.items() if partitions > 10 * c]
    left = partitions - sum(count for _, count, _ in names)
    number = 0
    while left > 0:
        for count in _drawn(rng, TOPIC_SIZES, 512):
            if left <= 0:
                break
            names.append((f"{NAMES[number % len(NAMES)]}.{number:05d}", min(count, left), False))
            left, number = left - min(count, left), number + 1
    sizes = np.array([count for _, count, _ in names])
    factors = np.array(_drawn(rng, REPLICATION_FACTORS, len(names)))
    factors[[internal for _, _, internal in names]] = 3
    factors = np.minimum(factors, len(brokers.racks))
    min_isrs = _drawn(rng, MIN_ISRS, len(names))
    unclean = rng.random(len(names)) < 0.01
    # Both fleets draw these, so that later random numbers are the same in both.
    replicas = placements.neighbours(rng, sizes, factors, brokers.order)
    if placement == "kafka":
        replicas = placements.kafka(rng.spawn(1)[0], sizes, factors, brokers.racks)
    rows = _partitions(rng, np.repeat(factors, sizes), replicas, brokers, elr)
    topics, start = [], 0
    for (name, count, internal), min_isr, loses in zip(names, min_isrs, unclean.tolist(), strict=True):
        own = {"min.insync.replicas": min_isr} if min_isr else {}
        own |= {"unclean.leader.election.enable": "true"} if loses else {}
        part = rows[start : start + count]
        for index, row in enumerate(part):
            row["partition"] = index
        topics.append(
            {
                "name": name,
                "internal": internal,
                "configs": own,
                "config_sources": dict.fromkeys(own, "topic"),
                "partitions": part,
            }
        )
        start += count
    return topics


def _partitions(
    rng: np.random.Generator, rf: np.ndarray, replicas: np.ndarray, brokers: Brokers, elr: bool
) -> list[dict]:
    """All partitions of a cluster, without their numbers. rf, replicas: one row per partition."""
    count, slots = len(rf), np.arange(WIDEST)
    there = slots < rf[:, None]
    lagging = (rng.random((count, WIDEST)) < 0.0015) & (slots > 0)
    alive = brokers.live[replicas] & there
    in_sync = alive & ~lagging
    lists = zip(
        replicas.tolist(), in_sync.tolist(), rf.tolist(), rng.lognormal(18, 3, count).astype(int).tolist(), strict=True
    )
    rows = []
    for ids, synced, n, size in lists:
        ids = ids[:n]
        isr = [b for b, s in zip(ids, synced, strict=False) if s]
        # The last replica stays in the ISR, leaderless. With ELR it may have left the ISR and be eligible.
        leader = isr[0] if isr else None
        gone = [b for b in ids if b not in isr]
        eligible = gone[:1] if elr and len(isr) < min(2, n) else []
        if not isr and not eligible:
            isr = ids[:1]
        rows.append(
            {
                "partition": 0,
                "leader": leader,
                "replicas": ids,
                "isr": isr,
                "elr": eligible,
                "last_known_elr": [],
                "adding": [],
                "removing": [],
                "bytes": size,
            }
        )
    return rows


def _application(rng: np.random.Generator, group: str) -> dict:
    """A classic Streams group over three zones. Most have a standby for each task."""
    tasks = [f"0_{n}" for n in range(int(rng.integers(2, 24)))]
    standbys = int(rng.random() < 0.8)
    clients: list[dict[str, Any]] = [
        {"process": f"{group}-{n}", "tags": {"zone": f"az{n + 1}"}, "active": [], "standby": []} for n in range(3)
    ]
    for n, task in enumerate(tasks):
        clients[n % 3]["active"].append(task)
        if standbys:
            clients[(n + 1) % 3]["standby"].append(task)
    return {
        "group": group,
        "type": "classic",
        "state": "Stable",
        "in_transition": False,
        "stateful_tasks": tasks,
        "clients": clients,
    }
