"""The sources of a run in groups. Under Airflow, each group is one mapped task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from durability.errors import Refused, printable

GROUPS = 4
"""The number of groups. All are read at once, so that no group waits for slow clusters of another."""
UNKNOWN_SIZE = 20_000
"""The assumed number of partitions of a cluster that has not been read yet."""

Source = dict[str, Any]
"""JSON without secrets. A document: `{"name", "document": path}`. A cluster: `{"name", "connection", "provider", "team",
"controllers", "seconds", "kafka_cluster_id"}`. Sources in a group also have "partitions"."""


def from_documents(path: Path) -> list[Source]:
    """One source for all documents at `path`. They are read together: older ones show the racks of dead brokers.

    Raises Refused if `path` doesn't exist.
    """
    if not path.exists():
        raise Refused(f"{path}: no such file or folder; expected a kafka-topology/1 document or a folder of them")
    return [{"name": printable(path.name), "document": str(path)}]


def from_clusters(path: Path) -> list[Source]:
    """One source per cluster of a clusters file. Raises BadInput for a wrong file."""
    from durability.policy import load_clusters

    return [
        {
            "name": c.id,
            "connection": c.connection,
            "provider": c.provider,
            "team": c.team,
            # JSON object keys can't be integers.
            "controllers": [[node, rack] for node, rack in sorted(c.controllers.items())],
            "seconds": c.read_within.total_seconds(),
            "kafka_cluster_id": c.kafka_cluster_id,
        }
        for c in load_clusters(path)
    ]


def partition_into_groups(
    sources: Sequence[Source], snapshots: Iterable[Mapping[str, Any]] = (), groups: int = GROUPS
) -> list[list[Source]]:
    """At most `groups` groups of about the same size, none of them empty.

    The largest clusters of a group come first, because they take longest. Clusters that could not be read last time come
    last, spread evenly over the groups: each may block a thread until its timeout.

    snapshots: rows of `snapshots` of the last runs.

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
