"""What a run reads, partitioned into groups: under Airflow each group is one mapped task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from durability.errors import Refused, printable

GROUPS = 4
"""All are read at once: a group that waited for another would wait for its slow clusters."""
UNKNOWN_SIZE = 20_000
"""Partitions that a cluster is expected to have until it has been read."""

Source = dict[str, Any]
"""`{"name", "document": path}`, or `{"name", "connection", "provider", "team", "controllers", "seconds",
"kafka_cluster_id"}` and, once in a group, "partitions"; JSON, no secrets."""


def from_documents(path: Path) -> list[Source]:
    """One source: a cluster's documents have to be read together, since its history shows the racks of dead brokers.

    Refused when there is nothing at `path`.
    """
    if not path.exists():
        raise Refused(f"{path}: no such file or folder; expected a kafka-topology/1 document or a folder of them")
    return [{"name": printable(path.name), "document": str(path)}]


def from_clusters(path: Path) -> list[Source]:
    """The clusters of a clusters file; BadInput for a wrong file."""
    from durability.policy import load_clusters

    return [
        {
            "name": c.id,
            "connection": c.connection,
            "provider": c.provider,
            "team": c.team,
            # JSON has no integer keys.
            "controllers": [[node, rack] for node, rack in sorted(c.controllers.items())],
            "seconds": c.read_within.total_seconds(),
            "kafka_cluster_id": c.kafka_cluster_id,
        }
        for c in load_clusters(path)
    ]


def partition_into_groups(
    sources: Sequence[Source], snapshots: Iterable[Mapping[str, Any]] = (), groups: int = GROUPS
) -> list[list[Source]]:
    """At most `groups` groups of about the same size, none empty.

    snapshots: rows of `snapshots` of the last runs. In every group the largest clusters come first, since the group ends no
    sooner than they do. Clusters that could not be read last time come last, the same number in each group: each may
    occupy a thread for all of its seconds, and no readable cluster should wait for that.

    >>> was = [{"cluster": c, "captured_at": 0, "status": "failed", "partitions": None} for c in "ab"]
    >>> [[s["name"] for s in group] for group in partition_into_groups([{"name": n} for n in "abcdefghij"], was)]
    [['c', 'g', 'a'], ['d', 'h', 'b'], ['e', 'i'], ['f', 'j']]
    """
    failed: dict[str, bool] = {}
    partitions: dict[str, int] = {}
    for row in sorted(snapshots, key=lambda r: r["captured_at"]):
        failed[row["cluster"]] = row["status"] == "failed"
        if row["partitions"] is not None:
            partitions[row["cluster"]] = row["partitions"]
    sized = [{**s, "partitions": partitions.get(str(s["name"]), UNKNOWN_SIZE)} for s in sources]
    sized.sort(key=lambda s: (failed.get(str(s["name"]), False), -s["partitions"]))
    return [sized[i::groups] for i in range(min(groups, len(sized)))]
