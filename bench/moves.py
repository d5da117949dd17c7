"""Measures the planner of moves on a generated cluster, and how far its plan is from the bounds; see `bench.failures`.

Two of five topics have two replicas and need three. All need a replica in each of three racks, so that records and writes survive
the loss of any. Sizes are drawn from a lognormal distribution.
"""

from __future__ import annotations

import time

import numpy as np

from durability.remedies.moves.model import Broker, Load, Partition, Problem, Target
from durability.remedies.moves.solve import solve

PER_TOPIC = 20
TARGET = Target(3, racks=3, survives_rack=True, min_isr=2)


def problem(replicas: np.ndarray, racks: int, seed: int) -> Problem:
    """A cluster with these replicas by partition. Broker n is in rack n modulo `racks`."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(20, 1.5, len(replicas)).astype(np.int64).tolist()
    partitions = []
    for number, (ids, size) in enumerate(zip(replicas.tolist(), sizes, strict=True)):
        topic, partition = divmod(number, PER_TOPIC)
        now = tuple(ids[:-1] if topic % 5 < 2 else ids)
        partitions.append(Partition(f"t{topic}", partition, now, now[0], now, size))
    topics = {p.topic for p in partitions}
    brokers = [Broker(id, f"az{id % racks + 1}") for id in range(int(replicas.max()) + 1)]
    return Problem(brokers, partitions, dict.fromkeys(topics, TARGET), dict.fromkeys(topics, 2))


def measured(cluster: Problem) -> dict:
    """Seconds, processor seconds, and what the plan is like. Ratios to bounds: 1 is the best."""
    started, used = time.monotonic(), time.process_time()
    plan = solve(cluster)
    seconds, cpu = time.monotonic() - started, time.process_time() - used
    if plan.load_bytes is None:
        raise ValueError("the sizes of partitions are unknown")
    moved, leading = plan.moved, plan.leaders
    even = sum(leading.after.values()) / len(leading.after)
    ratios = {
        "moved replicas": moved.replicas / max(1, moved.bound_replicas),
        "moved bytes": moved.bytes / max(1, moved.bound_bytes),
        "most replicas": _ratio(plan.load),
        "most bytes": _ratio(plan.load_bytes),
        "most leaders": max(leading.after.values()) / even,
    }
    ratios = {name: round(ratio, 3) for name, ratio in ratios.items()}
    of_bounds = ", ".join(f"{name} {ratio}" for name, ratio in ratios.items())
    found = f"{cpu:.1f} s of a processor; {moved.replicas:,} moves; of the bounds: {of_bounds}"
    return {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), "found": found, "of_bounds": ratios}


def _ratio(load: Load) -> float:
    return max(load.after.values()) / load.bound
