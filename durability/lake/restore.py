"""Backs up a lake's catalog, and restores a lost one from the tables' own metadata files.

A catalog has one row per table: the address of its newest metadata file. Each file names the files before it (`metadata-log`), so
they form a chain. A commit that lost a race leaves a file, too. If an older copy of the catalog was put back, two chains continue
from the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.lake import catalog
from durability.lake.tables import TABLES

if TYPE_CHECKING:
    from durability.lake.files import Files
    from durability.lake.iceberg import Tables

FORMAT = "durability-catalog/1"
FOLDER = "_catalog"
BACKUPS = 14


def backup(tables: Tables, now: datetime) -> str:
    """Write the location of each table's metadata as JSON and keep the last BACKUPS. Returns the address."""
    pointers = {table.name: tables.load(table).metadata_location for table in TABLES.values()}
    stated = {"format": FORMAT, "at": now.astimezone(UTC).isoformat(), "tables": pointers}
    address = f"{tables.files.warehouse}/{FOLDER}/{now.astimezone(UTC):%Y%m%dT%H%M%S%fZ}.json"
    tables.files.write_text(address, json.dumps(stated, indent=1))
    tables.files.remove(_backups(tables.files)[:-BACKUPS])
    return address


def restore(location: str) -> list[str]:
    """Register each table of a lake without a catalog, with its newest metadata. Returns a line per table.

    If the catalog has tables, `durability.lake.repair` looks for lost files instead.
    Raises Refused if there are no table files, if nothing is lost, or if several files may be the newest. In that case nothing
    is registered, and the error names these files.
    """
    from durability.lake.files import Files
    from durability.lake.iceberg import Tables
    from durability.lake.repair import repair

    place = catalog.place(location)
    files = Files(place)
    found = {table.name: files.metadata(table) for table in TABLES.values()}
    if not any(found.values()) and (place.catalog or not _has_catalog(place)):
        raise Refused(
            f"the lake at {place.location} has no table's files in {files.warehouse}: there is nothing to restore"
        )
    tables = Tables(place)
    if tables.catalog.namespace_exists(tables.namespace) and tables.catalog.list_tables(tables.namespace):
        if gone := repair(tables, datetime.now(UTC)):
            return gone
        raise Refused(
            f"the catalog of the lake at {place.location} has tables, so it isn't lost, and no file of theirs is missing; "
            "nothing was changed"
        )
    pointers, backed_up = _last_backup(files)
    chosen = {n: _newest(files, addresses, pointers.get(n), backed_up) for n, addresses in found.items() if addresses}
    tables.create_namespace()
    lines = []
    for name, address in chosen.items():
        identifier = tables.identifier(TABLES[name])
        tables.catalog.register_table(identifier, address)
        since = "" if pointers.get(name) in (None, address) else ", newer than the backup"
        lines.append(f"{identifier}: {_name(address)}{since}")
    missing = (TABLES[name] for name in found if name not in chosen)
    return lines + [f"{tables.identifier(table)}: had no files; the next run makes it" for table in missing]


def _has_catalog(place: catalog.Place) -> bool:
    return place.folder is not None and (place.folder / catalog.CATALOG_FILE).exists()


def _newest(files: Files, addresses: list[str], pointer: str | None, backed_up: int) -> str:
    """The address of a table's newest metadata file. pointer: the one in the backup. backed_up: time of the backup, in ms."""
    read, damaged = {}, []
    for address in addresses:
        try:
            read[_name(address)] = _parsed(address, json.loads(files.text(address)))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            damaged.append(address)
    ends = candidates(read, pointer and _name(pointer), backed_up) if read else []
    # A commit that lost a race removes its manifests.
    complete = [end for end in ends if end.manifests is None or files.exists(end.manifests)]
    unread = [address for address in damaged if not complete or _version(address) > _version(complete[0].address)]
    if unread or not complete:
        raise Refused(
            f"the metadata file {(unread or [end.address for end in ends])[-1]} is damaged or lacks its manifests; repair it or"
            " move it away"
        )
    if any(end.content != complete[0].content for end in complete):
        raise Refused(
            "several metadata files may be a table's newest: "
            f"{' and '.join(sorted(_name(end.address) for end in complete))}. Move the ones away that the catalog didn't name:"
            " they are of commits that lost a race, that never ended, or that were given up for an older copy of the catalog"
        )
    return complete[0].address


@dataclass(frozen=True)
class Metadata:
    """A metadata file. Times are in ms.

    log: the files before it, oldest first, with the time of each.
    manifests: the address of the current snapshot's manifest list; None without a snapshot.
    content: what identifies the table.
    """

    address: str
    log: tuple[tuple[str, int], ...]
    written: int
    manifests: str | None = None
    content: Any = None

    @property
    def chain(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.log), _name(self.address))


def candidates(files: Mapping[str, Metadata], pointer: str | None = None, backed_up: int = 0) -> list[Metadata]:
    """The metadata file at the end of the chain of commits; several if that isn't certain. files: by name.

    pointer: the file that the catalog named when it was backed up, at `backed_up` (ms). The end of its chain is a candidate. So
        is an end written later, because an older copy of the catalog may have been put back since.
    """
    built_on = {name for file in files.values() for name in file.chain[:-1]}
    ends = [file for name, file in files.items() if name not in built_on]
    if any(pointer in end.chain for end in ends):
        ends = [end for end in ends if pointer in end.chain or end.written > backed_up]
    return [end for end in ends if not any(_lost(end, other) for other in ends)] or ends


def _lost(end: Metadata, other: Metadata) -> bool:
    """Whether the commit of `end` lost a race: the other's chain continued from the same file, or is younger than it."""
    base, base_written = end.log[-1] if end.log else (None, -1)
    raced = base in other.chain[:-2] or (bool(other.log) and base_written < other.log[0][1])
    return raced and end.written <= other.written


def _parsed(address: str, stated: dict[str, Any]) -> Metadata:
    snapshots = {s["snapshot-id"]: s["manifest-list"] for s in stated.get("snapshots") or []}
    current = stated.get("current-snapshot-id")
    return Metadata(
        address,
        tuple((_name(entry["metadata-file"]), entry["timestamp-ms"]) for entry in stated.get("metadata-log") or []),
        stated["last-updated-ms"],
        None if current in (None, -1) else snapshots[current],
        {k: v for k, v in stated.items() if k not in ("table-uuid", "last-updated-ms", "metadata-log")},
    )


def _last_backup(files: Files) -> tuple[dict[str, str], int]:
    """The addresses by table in the newest complete backup, and its time in ms."""
    for address in reversed(_backups(files)):
        with suppress(ValueError, KeyError, TypeError):
            stated = json.loads(files.text(address))
            if stated["format"] != FORMAT:
                raise Refused(f"{address} is no backup of a lake's catalog (format {FORMAT})")
            return dict(stated["tables"]), int(datetime.fromisoformat(stated["at"]).timestamp() * 1000)
    return {}, 0


def _backups(files: Files) -> list[str]:
    return files.named(f"{files.warehouse}/{FOLDER}", "Z.json")


def _name(address: str) -> str:
    return address.rpartition("/")[2]


def _version(address: str) -> int:
    """The number of the commit at the beginning of a file's name.

    >>> _version("s3://lake/00012-ab.metadata.json"), _version("file:///lake/other.metadata.json")
    (12, -1)
    """
    number = _name(address).partition("-")[0]
    return int(number) if number.isdigit() else -1
