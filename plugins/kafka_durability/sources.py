"""What an audit reads, dealt into groups: each group is one mapped task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from durability.errors import Refused

MOST_GROUPS = 16

Source = dict[str, object]
"""`{"name", "document": path}`, or `{"name", "connection", "provider", "team", "controllers"}`; JSON, no secrets."""


def from_documents(path: Path) -> list[list[Source]]:
    """One group: a cluster's documents have to be read together, since its history tells the racks of dead brokers.

    Refused when there is nothing at `path`.
    """
    if not path.exists():
        raise Refused(f"{path}: no such file or folder; expected a kafka-topology/1 document or a folder of them")
    return [[{"name": path.name, "document": str(path)}]]


def from_clusters(path: Path) -> list[list[Source]]:
    """The clusters of a clusters file, one a group as long as the groups last, none if it lists none; BadInput for a wrong
    file."""
    from durability.policy import load_clusters

    clusters = load_clusters(path)
    if not clusters:
        return []
    return deal(
        [
            {
                "name": c.id,
                "connection": c.connection,
                "provider": c.provider,
                "team": c.team,
                # JSON has no integer keys.
                "controllers": [[node, rack] for node, rack in sorted(c.controllers.items())],
            }
            for c in clusters
        ],
        len(clusters),
    )


def deal(sources: Sequence[Source], groups: int) -> list[list[Source]]:
    """Round robin into at most `groups` and never more than 16 groups, none empty.

    >>> deal([{"name": n} for n in "abc"], 2)
    [[{'name': 'a'}, {'name': 'c'}], [{'name': 'b'}]]
    """
    count = max(1, min(groups, MOST_GROUPS, len(sources)))
    return [list(sources[i::count]) for i in range(count)]
