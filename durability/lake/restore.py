"""Backs up a lake's catalog, and restores a lost one from the tables' own metadata files.

A catalog has one row per table: the address of its newest metadata file. File names begin with the number of the commit. A
commit that lost a race leaves a file too, with the number of the commit that won.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from durability.errors import Refused
from durability.lake import catalog
from durability.lake.tables import NAMESPACE, TABLES

if TYPE_CHECKING:
    from durability.lake.files import Files
    from durability.lake.iceberg import Tables

FORMAT = "durability-catalog/1"
FOLDER = "_catalog"
BACKUPS = 14


def backup(tables: Tables, now: datetime) -> str:
    """Writes where each table's metadata is, as JSON, and keeps the last BACKUPS; returns the address."""
    pointers = {table.name: tables.load(table).metadata_location for table in TABLES.values()}
    stated = {"format": FORMAT, "at": now.astimezone(UTC).isoformat(), "tables": pointers}
    address = f"{tables.files.warehouse}/{FOLDER}/{now.astimezone(UTC):%Y%m%dT%H%M%S%fZ}.json"
    tables.files.write_text(address, json.dumps(stated, indent=1))
    tables.files.remove(_backups(tables.files)[:-BACKUPS])
    return address


def restore(location: str) -> list[str]:
    """Registers each table of a lake whose catalog was lost with its newest metadata; returns a line on each.

    Raises Refused if there are no tables' files, if the catalog has tables, or, naming the files, if several may be a
    table's newest. Then nothing is registered.
    """
    from durability.lake.files import Files
    from durability.lake.iceberg import Tables

    place = catalog.place(location)
    files = Files(place)
    found = {table.name: files.metadata(table) for table in TABLES.values()}
    if not any(found.values()):
        raise Refused(
            f"the lake at {place.location} has no table's files in {files.warehouse}: there is nothing to restore"
        )
    tables = Tables(place)
    if tables.catalog.namespace_exists(NAMESPACE) and tables.catalog.list_tables(NAMESPACE):
        raise Refused(f"the catalog of the lake at {place.location} has tables, so it isn't lost; nothing was changed")
    pointers = _last_backup(files)
    chosen = {name: _newest(files, addresses, pointers.get(name)) for name, addresses in found.items() if addresses}
    tables.catalog.create_namespace_if_not_exists(NAMESPACE)
    lines = []
    for name, address in chosen.items():
        tables.catalog.register_table(TABLES[name].identifier, address)
        since = "" if pointers.get(name) in (None, address) else ", newer than the backup"
        lines.append(f"{TABLES[name].identifier}: {_name(address)}{since}")
    return lines + [f"{NAMESPACE}.{name}: had no files; the next run makes it" for name in found if name not in chosen]


def _newest(files: Files, addresses: list[str], pointer: str | None) -> str:
    """The address of a table's newest metadata file; pointer: the one that the backup names."""
    last = max(map(_version, addresses))
    candidates = [address for address in addresses if _version(address) == last]
    complete = [address for address in candidates if _is_complete(files, address)]
    if not complete:
        raise Refused(
            f"the metadata file {candidates[-1]} is damaged or lacks its manifests; repair it or move it away"
        )
    if pointer in complete:
        return pointer
    if len(complete) > 1:
        raise Refused(
            f"several metadata files may be a table's newest: {' and '.join(map(_name, complete))}. Move the ones away that "
            "the catalog didn't name: they are of commits that lost a race, or that never ended"
        )
    return complete[0]


def _is_complete(files: Files, address: str) -> bool:
    """Whether a metadata file can be read and its current manifests exist: a commit that lost a race removes its own."""
    try:
        metadata = json.loads(files.text(address))
        current = metadata.get("current-snapshot-id")
        manifests = [s["manifest-list"] for s in metadata.get("snapshots") or [] if s["snapshot-id"] == current]
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return "table-uuid" in metadata and all(files.exists(manifest) for manifest in manifests)


def _last_backup(files: Files) -> dict[str, str]:
    backups = _backups(files)
    if not backups:
        return {}
    stated = json.loads(files.text(backups[-1]))
    if stated.get("format") != FORMAT:
        raise Refused(f"{backups[-1]} is no backup of a lake's catalog (format {FORMAT})")
    return stated["tables"]


def _backups(files: Files) -> list[str]:
    folder = f"{files.warehouse}/{FOLDER}"
    names = sorted(entry.base_name for entry in files.listed(folder))
    return [f"{folder}/{name}" for name in names if name.endswith("Z.json")]


def _name(address: str) -> str:
    return address.rpartition("/")[2]


def _version(address: str) -> int:
    """The number of the commit, as file names begin with it.

    >>> _version("s3://lake/00012-ab.metadata.json"), _version("file:///lake/other.metadata.json")
    (12, -1)
    """
    number = _name(address).partition("-")[0]
    return int(number) if number.isdigit() else -1
