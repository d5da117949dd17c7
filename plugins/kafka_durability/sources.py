"""What an audit reads, dealt into groups: each group is one mapped task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from durability.errors import Refused

MOST_GROUPS = 16
# A group of documents is parsed by one process: below this there is nothing to win by another.
DOCUMENT_BYTES = 64 * 1024 * 1024

Source = dict[str, object]
"""`{"name", "document": path}`, or `{"name", "connection", "provider", "team", "controllers"}`; JSON, no secrets."""


def from_documents(path: Path) -> list[list[Source]]:
    """The documents of a file or folder, dealt by size; Refused when there are none."""
    files = [path] if path.is_file() else [f for f in sorted(path.rglob("*.json")) if _is_document(f, path)]
    if not files:
        raise Refused(f"{path}: no topology document there; expected a .json file or a folder of them")
    total = sum(f.stat().st_size for f in files)
    names = [f.name if f == path else f.relative_to(path).as_posix() for f in files]
    return deal([{"name": n, "document": str(f)} for n, f in zip(names, files, strict=True)], 1 + total // DOCUMENT_BYTES)


def _is_document(file: Path, root: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(root).parts)


def from_clusters(path: Path) -> list[list[Source]]:
    """The clusters of a clusters file, one a group as long as the groups last; BadInput for a wrong file."""
    from durability.policy import load_clusters

    clusters = load_clusters(path)
    if not clusters:
        raise Refused(f"{path} lists no cluster to audit; add one, or give TOPOLOGY or BOOTSTRAP")
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
