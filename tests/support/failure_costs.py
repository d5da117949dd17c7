"""Rows of `failure_costs` and `loss_sets` for clusters drawn as partitions, by brute force over all losses.

No partition here has eligible leader replicas, unclean leader election or a running reassignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pyarrow as pa

from durability.lake.tables import FAILURE_COSTS, LOSS_SETS, VIEWS
from tests.support.report_cases import NIGHT

KEYS = {"captured_at": NIGHT, "run_id": "run-1", "result_id": "result-1"}
SETS = tuple((view, name) for view in ("now", "structural") for name in VIEWS[view])


@dataclass(frozen=True)
class Partition:
    topic: str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    minimum: int


@dataclass(frozen=True)
class Cluster:
    """brokers: their racks. quorum: the names of losses that cost the quorum's majority."""

    name: str
    brokers: Mapping[int, str]
    partitions: Collection[Partition]
    down: Collection[int] = ()
    quorum: Collection[str] = ()
    unknown: int = 0
    racks: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "racks", tuple(sorted(set(self.brokers.values()))))

    def of_rack(self, racks: Iterable[str]) -> set[int]:
        return {broker for broker, rack in self.brokers.items() if rack in racks}

    def broken(self, partition: Partition, view: str, name: str, lost: Collection[int]) -> bool:
        """Whether the partition is broken with these brokers lost."""
        lost, down = set(lost), set(self.down) if view == "now" else set()
        copies = set(partition.isr if view == "now" else partition.replicas)
        if view == "worst":
            return len(set(partition.replicas) & lost) >= partition.minimum
        if name == "data":
            return copies <= lost
        alive = copies - down - lost
        return not alive if name == "availability" else len(alive) < partition.minimum

    def newly(self, partition: Partition, view: str, name: str, lost: Collection[int]) -> bool:
        return self.broken(partition, view, name, lost) and not self.broken(partition, view, name, ())

    def costs(self) -> list[dict[str, Any]]:
        losses: list[tuple[str, str | None, set[int]]] = [("already", None, set())]
        losses += [("broker", str(broker), {broker}) for broker in self.brokers]
        losses += [("rack", rack, self.of_rack([rack])) for rack in self.racks]
        return [self._cost(*loss) for loss in losses]

    def _cost(self, kind: str, name: str | None, lost: set[int]) -> dict[str, Any]:
        breaks = self.broken if kind == "already" else self.newly
        counts = {}
        for view, names in VIEWS.items():
            for of in names:
                broken = [p for p in self.partitions if breaks(p, view, of, lost)]
                counts[f"{view}_{of}"] = {"partitions": len(broken), "topics": len({p.topic for p in broken})}
        return {
            **KEYS,
            **{"cluster": self.name, "snapshot_id": f"{self.name}@2026-11-21T02:00:00Z", "kind": kind, "name": name},
            "held": sum(bool(lost & set(p.replicas)) for p in self.partitions),
            "led": sum(bool(p.isr) and p.isr[0] in lost for p in self.partitions),
            "quorum": "lost" if name in self.quorum else "kept",
            "unknown": self.unknown,
            **counts,
        }

    def sets(self) -> list[dict[str, Any]]:
        """The smallest killing sets of each partition, counted."""
        found: dict[tuple[str, tuple[str, ...]], Counter[str]] = {}
        for p in self.partitions:
            mine = sorted(set(p.replicas))
            racks = sorted({self.brokers[broker] for broker in mine})
            for view, name in SETS:
                for kind, nodes, lost in (("broker", mine, set), ("rack", racks, self.of_rack)):
                    for members in self._smallest(p, view, name, nodes, lost):
                        key = (kind, tuple(str(node) for node in members))
                        found.setdefault(key, Counter())[f"{view}_{name}"] += 1
        keys = {**KEYS, "cluster": self.name, "snapshot_id": f"{self.name}@2026-11-21T02:00:00Z"}
        zeros = {f"{view}_{name}": 0 for view, name in SETS}
        return [{**keys, "kind": k, "members": list(m), **zeros, **counts} for (k, m), counts in found.items()]

    def _smallest(self, p: Partition, view: str, name: str, nodes: list, lost: Callable) -> list[tuple]:
        """The killing sets of which no part is one."""
        found: list[tuple] = []
        for size in range(1, len(nodes) + 1):
            for members in combinations(nodes, size):
                if not any(set(part) < set(members) for part in found) and self.newly(p, view, name, lost(members)):
                    found.append(members)
        return found


def tables(clusters: Iterable[Cluster]) -> tuple[pa.Table, pa.Table]:
    """The rows of `failure_costs` and of `loss_sets`."""
    clusters = list(clusters)
    return (
        pa.Table.from_pylist([row for of in clusters for row in of.costs()], FAILURE_COSTS.arrow),
        pa.Table.from_pylist([row for of in clusters for row in of.sets()], LOSS_SETS.arrow),
    )


def of_brokers(cluster: Cluster) -> list[dict[str, Any]]:
    """Rows of `brokers`."""
    return [
        {"cluster": cluster.name, "broker": broker, "rack": rack, "live": broker not in cluster.down}
        for broker, rack in cluster.brokers.items()
    ]
