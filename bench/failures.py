"""Measures what losses, restarts and moves take beside Spark: `make bench BROKERS=300 SIZE=100000 SEED=1`.

One cluster of three racks has SIZE partitions with three replicas, two of which must be in sync. Kafka's assignor places them.
The bench counts the sets of up to three brokers whose loss stops writes, plans in which waves brokers restart, and plans moves
that add and spread replicas (`bench.moves`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import fleet, moves, placements
from bench.clock import machine
from durability.report.data.loss_sets import COLUMNS, LossSets
from durability.restart.constraints import Partitions
from durability.restart.nodes import Node
from durability.restart.plan import Limits, plan

RACKS, FACTOR, MINIMUM = 3, 3, 2


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print seconds and results, and write RESULTS, if given."""
    try:
        brokers, size, seed = (
            int(environ.get(name) or d) for name, d in (("BROKERS", 300), ("SIZE", 100_000), ("SEED", 1))
        )
    except ValueError:
        raise SystemExit("BROKERS, SIZE and SEED are numbers: make bench BROKERS=300 SIZE=100000 SEED=1") from None
    if brokers < FACTOR or size < 1 or seed < 0:
        raise SystemExit(f"BROKERS is at least {FACTOR}, SIZE at least 1, SEED at least 0")
    results = measured(placed(brokers, size, seed), brokers, seed)
    for name, step in results["steps"].items():
        print(f"{name:<14}{step['seconds']:9.2f} s   {step['found']}")
    if environ.get("RESULTS"):
        Path(environ["RESULTS"]).write_text(json.dumps(results | {"machine": machine()}, indent=1) + "\n")
    return 0


def placed(brokers: int, size: int, seed: int) -> np.ndarray:
    """Broker ids of shape (size, FACTOR)."""
    rng = np.random.default_rng(seed)
    sizes, left = [], size
    while left:
        drawn = min(int(rng.choice(list(fleet.TOPIC_SIZES), p=_shares())), left)
        sizes.append(drawn)
        left -= drawn
    factors = np.full(len(sizes), FACTOR)
    return placements.kafka(rng, np.array(sizes), factors, np.arange(brokers) % RACKS)[:, :FACTOR]


def _shares() -> np.ndarray:
    shares = np.array(list(fleet.TOPIC_SIZES.values()))
    return shares / shares.sum()


def measured(replicas: np.ndarray, brokers: int, seed: int) -> dict:
    """RESULTS: the seconds of each step, and what it found."""
    moved = moves.measured(moves.problem(replicas, RACKS, seed))
    rows = loss_sets(replicas)
    started = time.monotonic()
    k = LossSets(list(range(brokers)), rows).k()
    counted = time.monotonic() - started
    same = partitions(replicas)
    nodes = [Node(id, f"az{id % RACKS + 1}", live=True, broker=True) for id in range(brokers)]
    started = time.monotonic()
    made = plan(same, nodes, Limits())
    planned = time.monotonic() - started
    writes = {entry["k"]: entry["structural"]["writes"]["sets"] for entry in k if not entry["estimate"]}
    waves = f"{len(made.waves)} waves, at least {made.bound.waves}"
    return {
        "brokers": brokers,
        "partitions": len(replicas),
        "steps": {
            "k up to 3": {"seconds": round(counted, 2), "found": f"sets that stop writes: {writes}"},
            "restart plan": {"seconds": round(planned, 2), "found": waves},
            "plan of moves": moved,
        },
    }


def loss_sets(replicas: np.ndarray) -> pa.Table:
    """The cluster's rows of `loss_sets`: two brokers stop writes, three leave no leader and no data."""
    members: list[list[str]] = []
    counts: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS[3:]}
    for size, classes in ((FACTOR - MINIMUM + 1, ("writes",)), (FACTOR, ("availability", "data"))):
        chosen = [replicas[:, places] for places in combinations(range(FACTOR), size)]
        sets, number = np.unique(np.sort(np.concatenate(chosen), axis=1), axis=0, return_counts=True)
        members += sets.astype(str).tolist()
        for name, column in counts.items():
            column.append(number if name.partition("_")[2] in classes else np.zeros(len(sets), np.int64))
    of_cluster = {"cluster": ["bench"] * len(members), "kind": ["broker"] * len(members), "members": members}
    return pa.table(of_cluster | {name: np.concatenate(column) for name, column in counts.items()})


def partitions(replicas: np.ndarray) -> list[Partitions]:
    """The cluster's partitions as a restart plan reads them."""
    sets, counts = np.unique(np.sort(replicas, axis=1), axis=0, return_counts=True)
    return [
        Partitions(frozenset(ids), frozenset(ids), MINIMUM, count, ("bench", place))
        for place, (ids, count) in enumerate(zip(sets.tolist(), counts.tolist(), strict=True))
    ]


if __name__ == "__main__":
    sys.exit(main())
