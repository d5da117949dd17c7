"""Partition health for reading: topics with partitions that aren't healthy, worst first, from the rules' own rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue.causes import worded
from durability.catalogue.listing import cli_sentence
from durability.report.words import clipped, ranges

CATEGORIES = ("offline", "under-min-isr", "at-min-isr", "under-replicated")
RACK_CATEGORIES = ("under-min-rack-isr", "at-min-rack-isr")  # KIP-1290's
COLUMNS = tuple(c.replace("-", "_") for c in (*CATEGORIES, *RACK_CATEGORIES))
TROUBLES = (*COLUMNS[:5], "unknown", COLUMNS[5])
SHOWN = 150
# A broker's counts in the lake, under the names of the metrics that it counts itself; worst first.
METRICS = {
    "under_min_isr": "UnderMinIsrPartitionCount",
    "under_min_rack_isr": "UnderMinRackIsrPartitionCount",
    "at_min_isr": "AtMinIsrPartitionCount",
    "at_min_rack_isr": "AtMinRackIsrPartitionCount",
    "under_replicated": "UnderReplicatedPartitions",
}
BROKERS, BROKERS_LISTED = 60, 1_000  # on the page, in findings.json
NOTE = 400  # characters of one note or cause


@dataclass(frozen=True)
class Health:
    """`partitions`: rows of partition_health; `counters`: rows of health_counters (topic NULL: the whole cluster)."""

    partitions: pa.Table
    counters: pa.Table

    @property
    def clusters(self) -> dict[str, dict]:
        """The counters of each cluster."""
        return {row["cluster"]: row for row in self.counters.filter(pc.is_null(self.counters["topic"])).to_pylist()}

    def lost_racks(self) -> dict[str, list[dict]]:
        """By cluster its racks all of whose brokers are down, with `rack` and `brokers`; clusters without one are left out."""
        return {name: row["lost_racks"] for name, row in self.clusters.items() if row.get("lost_racks")}

    def brokers(self) -> list[dict]:
        """The brokers that lead partitions of any category, worst first: cluster, broker, rack, live, METRICS, unknown."""
        rows = [
            {"cluster": cluster, **{name: b[name] for name in ("broker", "rack", "live")}}
            | {metric: b[name] for name, metric in METRICS.items()}
            | {"unknown": b["unknown"]}
            for cluster, counts in self.clusters.items()
            for b in counts.get("brokers") or ()
        ]
        counted = (*METRICS.values(), "unknown")
        return sorted(rows, key=lambda b: (*(-b[name] for name in counted), b["cluster"], b["broker"]))

    def topics(self) -> dict[str, object]:
        """`shown`: the worst topics with counts, partition ids by category, causes and where kafka-topics differs;
        `left`: how many topics the page leaves out."""
        counted = self.counters.filter(pc.is_valid(self.counters["topic"]))
        troubled = pc.invert(pc.equal(_sum(counted, TROUBLES), 0))
        counted = counted.filter(troubled)
        keys = [(name, "descending") for name in TROUBLES] + [("topic", "ascending")]
        worst = counted.take(pc.sort_indices(counted, sort_keys=keys).slice(0, SHOWN)).to_pylist()
        detail = self._details({(row["cluster"], row["topic"]) for row in worst})
        shown = [{**row, **detail.get((row["cluster"], row["topic"]), Detail()).words()} for row in worst]
        return {"shown": shown, "left": counted.num_rows - len(worst)}

    def _details(self, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Detail]:
        if not wanted:
            return {}
        table = self.partitions
        keys = pc.binary_join_element_wise(table["cluster"], table["topic"], "\0")
        mine = table.filter(pc.is_in(keys, pa.array(["\0".join(pair) for pair in wanted])))
        names = ["cluster", "topic", "partition", "categories", "rack_category", "cause", "cli_differs"]
        found: dict[tuple[str, str], Detail] = {}
        for batch in mine.select(names).to_batches(max_chunksize=5_000):
            for row in batch.to_pylist():
                found.setdefault((row["cluster"], row["topic"]), Detail()).add(row)
        return found


def _sum(table: pa.Table, columns: tuple[str, ...]) -> pa.ChunkedArray:
    total = pc.fill_null(table[columns[0]], 0)
    for name in columns[1:]:
        total = pc.add(total, pc.fill_null(table[name], 0))
    return total


class Detail:
    """What partition_health says about one topic."""

    def __init__(self) -> None:
        self.ids: dict[str, list[int]] = {category: [] for category in (*CATEGORIES, *RACK_CATEGORIES)}
        self.causes: Counter = Counter()
        self.notes: dict[str, list[int]] = {}

    def add(self, row: dict) -> None:
        for category in row["categories"] or ():
            self.ids.setdefault(category, []).append(row["partition"])
        if row["rack_category"] in RACK_CATEGORIES:
            self.ids[row["rack_category"]].append(row["partition"])
        if row["cause"]:
            self.causes[worded(row["cause"])] += 1
        if row["cli_differs"]:
            self.notes.setdefault(cli_sentence(row["cli_differs"]), []).append(row["partition"])

    def words(self) -> dict[str, object]:
        notes = sorted(self.notes.items(), key=lambda item: -len(item[1]))
        return {
            "ids": {category.replace("-", "_"): ranges(ids, 8) for category, ids in self.ids.items()},
            "causes": [clipped(cause, NOTE) for cause, _ in self.causes.most_common(3)],
            "differs": [(clipped(note, NOTE), ranges(ids, 8)) for note, ids in notes[:2]],
        }
