"""Partition health: the worst topics with their unhealthy partitions, and the counts of brokers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue.causes import split, worded
from durability.catalogue.listing import cli_sentence
from durability.report.words import clipped, ranges

WORST_FIRST = (
    *("offline", "under_min_isr", "at_min_isr", "under_replicated", "under_min_rack_isr", "unknown", "at_min_rack_isr"),
)
"""Columns of health_counters by which topics are sorted."""
METRICS = {
    "under_min_isr": "UnderMinIsrPartitionCount",
    "under_min_rack_isr": "UnderMinRackIsrPartitionCount",
    "at_min_isr": "AtMinIsrPartitionCount",
    "at_min_rack_isr": "AtMinRackIsrPartitionCount",
    "under_replicated": "UnderReplicatedPartitions",
}
"""A broker's counts in the lake, each with the broker's own metric, worst first."""
DETAILS = ("cluster", "topic", "partitions", "categories", "rack_category", "cause", "cli_differs")
IDS, CAUSES, NOTES, LENGTH = 8, 3, 2, 400
"""Limits per topic: ranges of partition ids per category, causes, notes, and characters of a cause or note."""


@dataclass(frozen=True)
class Health:
    """partitions: rows of partition_health. counters: rows of health_counters (topic NULL for the whole cluster)."""

    partitions: pa.Table
    counters: pa.Table

    @cached_property
    def clusters(self) -> dict[str, dict[str, Any]]:
        """Each cluster's counters."""
        return {row["cluster"]: row for row in self.counters.filter(pc.is_null(self.counters["topic"])).to_pylist()}

    def lost_racks(self) -> dict[str, list[dict[str, Any]]]:
        """By cluster, the racks whose brokers are all down, each with `rack` and `brokers`."""
        return {name: row["lost_racks"] for name, row in self.clusters.items() if row.get("lost_racks")}

    def brokers(self) -> list[dict[str, Any]]:
        """Brokers that lead unhealthy partitions, worst first: cluster, broker, rack, live, METRICS, unknown."""
        rows = []
        for cluster, counts in self.clusters.items():
            for b in counts.get("brokers") or ():
                row = {"cluster": cluster, "broker": b["broker"], "rack": b["rack"], "live": b["live"]}
                metrics = {metric: b[name] for name, metric in METRICS.items()}
                rows.append({**row, **metrics, "unknown": b["unknown"]})
        counted = (*METRICS.values(), "unknown")
        return sorted(rows, key=lambda b: (*(-b[name] for name in counted), b["cluster"], b["broker"]))

    @cached_property
    def _unhealthy(self) -> pa.Table:
        """The counters of topics with unhealthy partitions, worst first."""
        counted = self.counters.filter(pc.is_valid(self.counters["topic"]))
        total = reduce(pc.add, (pc.fill_null(counted[name], 0) for name in WORST_FIRST))
        counted = counted.filter(pc.not_equal(total, 0))
        keys = [*((name, "descending") for name in WORST_FIRST), ("topic", "ascending")]
        return counted.take(pc.sort_indices(counted, sort_keys=keys))

    def worst(self, limit: int) -> list[tuple[str, str]]:
        """Cluster and name of the worst topics with unhealthy partitions."""
        return [(row["cluster"], row["topic"]) for row in self._unhealthy.slice(0, limit).to_pylist()]

    def topics(self, limit: int) -> tuple[list[dict[str, Any]], int]:
        """The worst topics with unhealthy partitions, and the number of such topics.

        Each has its counters, `ids` by category, `causes`, and `differs` (notes on kafka-topics, with partitions).
        """
        worst = self._unhealthy.slice(0, limit).to_pylist()
        details: dict[tuple[str, str], TopicDetails] = {(t["cluster"], t["topic"]): TopicDetails() for t in worst}
        names = pc.binary_join_element_wise(self.partitions["cluster"], self.partitions["topic"], "\0")
        wanted = pa.array(["\0".join(pair) for pair in details], pa.string())
        for batch in self.partitions.filter(pc.is_in(names, wanted)).select(DETAILS).to_batches(max_chunksize=5_000):
            for row in batch.to_pylist():
                details[row["cluster"], row["topic"]].add(row)
        return [{**t, **details[t["cluster"], t["topic"]].texts()} for t in worst], self._unhealthy.num_rows


class TopicDetails:
    """The rows of partition_health for one topic."""

    def __init__(self) -> None:
        self.ids: dict[str, list[int]] = {}
        self.causes: Counter[str | None] = Counter()
        self.notes: dict[str, list[int]] = {}

    def add(self, row: dict[str, Any]) -> None:
        for category in (*(row["categories"] or ()), row["rack_category"]):
            self.ids.setdefault((category or "").replace("-", "_"), []).extend(row["partitions"])
        if row["cause"]:
            # By broker: partitions list the same causes in the order of their replicas.
            causes = sorted(split(row["cause"]), key=lambda cause: (len(cause), cause))
            self.causes[worded(", ".join(causes))] += len(row["partitions"])
        if row["cli_differs"]:
            self.notes.setdefault(cli_sentence(row["cli_differs"]), []).extend(row["partitions"])

    def texts(self) -> dict[str, object]:
        notes = sorted(self.notes.items(), key=lambda item: -len(item[1]))
        return {
            "ids": {category: ranges(ids, IDS) for category, ids in self.ids.items()},
            "causes": [clipped(cause, LENGTH) for cause, _ in self.causes.most_common(CAUSES)],
            "differs": [(clipped(note, LENGTH), ranges(ids, IDS)) for note, ids in notes[:NOTES]],
        }
