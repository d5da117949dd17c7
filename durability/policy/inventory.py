"""Inventories of the clusters file, and what was read of each: lists of the clusters that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from durability.policy.formats import CLUSTERS
from durability.policy.yamlfile import Document, read, shown

CSV, MSK, STRIMZI = KINDS = ("csv", "msk", "strimzi")
COLUMNS = ("id", "owner", "environment")
INVENTORY = "inventory"
"""What findings on an inventory as a whole have as their cluster."""


@dataclass(frozen=True)
class InventorySource:
    """An inventory of the clusters file.

    kind: one of KINDS.
    path: of csv and strimzi.
    columns: of csv, the names of the columns by COLUMNS. id is always there.
    aws: of msk, the identity by key of `durability.policy.scalars.AWS`.
    allow_empty: whether it may list no cluster. Otherwise an empty list counts as one that can't be read.
    """

    name: str
    kind: str
    path: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    aws: Mapping[str, str] = field(default_factory=dict)
    allow_empty: bool = False


@dataclass(frozen=True)
class Entry:
    """A cluster in an inventory.

    names: shortest first. The last one identifies it: another entry with this name is the same cluster.
    kafka_cluster_id: Kafka's own id of it, if the inventory has it.
    """

    names: tuple[str, ...]
    kafka_cluster_id: str | None = None
    owner: str | None = None
    environment: str | None = None


@dataclass(frozen=True)
class Listing:
    """What was read of an inventory.

    problem: why it could not be read; None: it was read, and `entries` are all of its clusters.
    sha256: of its file, or of the lines that `sha256sum` prints about the files of its folder; None for an API.
    """

    source: InventorySource
    entries: Sequence[Entry] = ()
    problem: str | None = None
    sha256: str | None = None


def load_inventory(path: Path | str) -> list[InventorySource]:
    """The inventories in the clusters file at `path`, in its order; empty if it has none. Raises BadInput."""
    document = read(path, "clusters file", CLUSTERS)
    sources: dict[str, InventorySource] = {}
    for index, stated in enumerate(document.content.get("inventory", ())):
        source = _source(document, index, stated)
        if source.name in sources:
            problem = f"inventory {shown(source.name)} is there twice; give one of them another `name`"
            raise document.refuse(("inventory", index), problem)
        sources[source.name] = source
    return list(sources.values())


def fleet_name(path: Path | str) -> str:
    """What identifies the fleet of the clusters file at `path` in a lake: its `fleet`, else the file's absolute path.

    Links stay as they are, since a checkout may be replaced behind one. Raises BadInput.
    """
    return read(path, "clusters file", CLUSTERS).content.get("fleet") or str(Path(path).absolute())


def _source(document: Document, index: int, stated: dict[str, Any]) -> InventorySource:
    kinds = [kind for kind in KINDS if kind in stated]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise document.refuse(("inventory", index), f"expected exactly one of {', '.join(KINDS)}, found {found}")
    kind = kinds[0]
    columns = {key: stated[key] for key in COLUMNS if key in stated}
    if columns and kind != CSV:
        key = next(iter(columns))
        raise document.refuse(("inventory", index, key), f"names a column of a CSV file, and this inventory is {kind}")
    empty = stated.get("allow_empty", False)
    if kind == MSK:
        where = stated[MSK].get("aws.region") or stated[MSK].get("aws.profile")
        return InventorySource(
            stated.get("name") or f"MSK {where or ''}".strip(), kind, aws=stated[MSK], allow_empty=empty
        )
    file = Path(document.file).parent / stated[kind]
    columns = {"id": "id"} | columns if kind == CSV else {}
    return InventorySource(stated.get("name") or stated[kind], kind, file, columns, allow_empty=empty)
