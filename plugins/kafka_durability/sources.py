"""What an audit reads, dealt into groups: each group is one mapped task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from durability.errors import Refused

# All of them are read at once: a group that waited for another's end would wait for its slow clusters.
GROUPS = 4
UNKNOWN_SIZE = 20_000
"""Partitions that a cluster is taken to have until it has been read."""

Source = dict[str, object]
"""`{"name", "document": path}`, or `{"name", "connection", "provider", "team", "controllers", "seconds"}` and, once dealt,
"partitions"; JSON, no secrets."""


def from_documents(path: Path) -> list[Source]:
    """One source: a cluster's documents have to be read together, since its history tells the racks of dead brokers.

    Refused when there is nothing at `path`.
    """
    if not path.exists():
        raise Refused(f"{path}: no such file or folder; expected a kafka-topology/1 document or a folder of them")
    return [{"name": path.name, "document": str(path)}]


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
        }
        for c in load_clusters(path)
    ]


def deal(sources: Sequence[Source], snapshots: Iterable[Mapping[str, Any]] = ()) -> list[list[Source]]:
    """At most GROUPS groups of about the same size, none empty.

    snapshots: rows of `snapshots` of the last runs. In every group the largest clusters come first, since the end waits for
    them, and those that could not be read last time come last, dealt evenly: they may keep a thread as long as they are
    allowed to, and nobody should be behind them.

    >>> was = [{"cluster": c, "captured_at": 0, "status": "failed", "partitions": None} for c in "ab"]
    >>> [[s["name"] for s in group] for group in deal([{"name": n} for n in "abcdefghij"], was)]
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
    return [sized[i::GROUPS] for i in range(min(GROUPS, len(sized)))]
