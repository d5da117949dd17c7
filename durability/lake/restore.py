"""A catalog that was lost: what it knew is written down before an upkeep, and found again in the tables' own files.

A catalog is one row a table: the address of its newest metadata file. A backup says which that was, and commits since then
have left newer ones, which count as well; so restoring reads the files. Each names the ones before it (`metadata-log`), so
they make a chain. A commit that lost a race has left a file too, which nothing was built on: it is the shorter end of a
fork. Where both ends are as short, nobody can tell, and both are named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyarrow import fs

from durability.errors import Refused
from durability.lake import catalog, staging
from durability.lake.storage import storage_errors
from durability.lake.tables import NAMESPACE, TABLES

if TYPE_CHECKING:
    from durability.lake.iceberg import Tables

FORMAT = "durability-catalog/1"
FOLDER = "_catalog"
BACKUPS = 14


@dataclass(frozen=True)
class Metadata:
    """A metadata file: its name, those before it that it names (oldest first), and when the oldest and the newest of these
    and itself were written."""

    name: str
    log: tuple[str, ...]
    log_since: int
    log_until: int
    written: int
    state: str | None = None  # the address of the current snapshot's list of manifests

    @property
    def chain(self) -> tuple[str, ...]:
        return (*self.log, self.name)


def backup(tables: Tables, now: datetime) -> str:
    """Writes where each table's metadata is, as JSON, and keeps the last BACKUPS; returns the address."""
    warehouse = tables.place.warehouse
    pointers = {table.name: tables.load(table).metadata_location for table in TABLES.values()}
    stated = {"format": FORMAT, "at": now.astimezone(UTC).isoformat(), "tables": pointers}
    files, folder = staging.system(warehouse), f"{staging.path_of(warehouse)}/{FOLDER}"
    name = f"{now.astimezone(UTC):%Y%m%dT%H%M%S%fZ}.json"
    with storage_errors(f"the catalog's backup {warehouse}/{FOLDER}/{name} can't be written"):
        files.create_dir(folder, recursive=True)
        with files.open_output_stream(f"{folder}/{name}") as stream:
            stream.write(json.dumps(stated, indent=1).encode())
        for old in _backups(files, folder)[:-BACKUPS]:
            files.delete_file(f"{folder}/{old}")
    return f"{warehouse}/{FOLDER}/{name}"


def restore(location: str) -> list[str]:
    """Registers each table of a lake whose catalog was lost with its newest metadata; returns a line on each.

    Raises Refused if there are no tables' files, if the catalog has tables, or, naming the files, if it can't be told which
    is a table's newest; then nothing is registered.
    """
    from durability.lake.iceberg import Tables

    place = catalog.place(location)
    here = f"{place.warehouse}/{NAMESPACE.replace('.', '/')}"
    there = {t.name: staging.metadata_files(place.warehouse, f"{here}/{t.name}") for t in TABLES.values()}
    if not any(there.values()):
        raise Refused(f"the lake at {place.location} has no table's files in {here}: there is nothing to restore")
    tables = Tables(place)
    if tables.catalog.namespace_exists(NAMESPACE) and tables.catalog.list_tables(NAMESPACE):
        raise Refused(f"the catalog of the lake at {place.location} has tables, so it isn't lost; nothing was changed")
    pointers = _last_backup(place.warehouse)
    found = {name: _newest(place.warehouse, files, pointers.get(name)) for name, files in there.items() if files}
    tables.catalog.create_namespace_if_not_exists(NAMESPACE)
    told = []
    for name, address in found.items():
        tables.catalog.register_table(TABLES[name].identifier, address)
        since = "" if pointers.get(name) in (None, address) else ", newer than the backup"
        told.append(f"{TABLES[name].identifier}: {_name(address)}{since}")
    return told + [f"{NAMESPACE}.{name}: had no files; the next run makes it" for name in there if name not in found]


def _newest(warehouse: str, addresses: list[str], pointer: str | None) -> str:
    """The address of the newest of a table's metadata files; pointer: what the backup says."""
    files, read, broken = staging.system(warehouse), {}, []
    for address in addresses:
        with files.open_input_stream(staging.path_of(address)) as stream:
            text = stream.read()
        try:
            read[_name(address)] = _parsed(_name(address), json.loads(text))
        except (ValueError, KeyError, TypeError):
            broken.append(address)
    chosen = newest(read, pointer and _name(pointer)) if read else None
    later = [a for a in broken if chosen is None or _version(_name(a)) > _version(chosen)]
    if chosen is None or later:
        raise Refused(f"the metadata file {(later or broken)[-1]} is damaged; put it in order or move it away")
    state = read[chosen].state
    if state and files.get_file_info(staging.path_of(state)).type == fs.FileType.NotFound:
        raise Refused(f"the metadata file {chosen} needs {state}, which is missing")
    return next(a for a in addresses if _name(a) == chosen)


def newest(files: Mapping[str, Metadata], pointer: str | None = None) -> str:
    """The file at the end of the chain of commits; pointer: one that the catalog is known to have named.

    Raises Refused, naming them, where two may be it.
    """
    followed = {name for file in files.values() for name in file.log}
    ends = [file for name, file in files.items() if name not in followed]
    left = [end for end in ends if not any(_lost(end, other) for other in ends if other is not end)]
    if len(left) > 1 and any(end.name == pointer for end in left):
        left = [end for end in left if end.name == pointer]
    known = files.get(pointer or "")
    if known and len(left) == 1 and pointer not in left[0].chain and known.written >= left[0].log_since:
        left.append(known)
    if len(left) != 1:
        names = " and ".join(sorted(end.name for end in left)) or "none of them"
        raise Refused(
            f"it can't be told which of a table's metadata files is its newest: {names}. Move the one away that the "
            "catalog didn't have: of a commit that lost a race, or that was never finished"
        )
    return left[0].name


def _lost(end: Metadata, other: Metadata) -> bool:
    """Is this end of the chain of a commit that lost against one of the other's? Nothing was built on it, more on that one."""
    common = set(end.chain) & set(other.chain)
    if not common:  # the other's log doesn't reach back to what this one was built on
        return len(other.chain) > 1 and end.log_until < other.log_since
    after = [
        len(file.chain) - 1 - max(n for n, name in enumerate(file.chain) if name in common) for file in (end, other)
    ]
    return after[0] == 1 and after[1] > 1


def _parsed(name: str, stated: dict) -> Metadata:
    log = stated.get("metadata-log") or []
    current = stated.get("current-snapshot-id")
    state = next((s.get("manifest-list") for s in stated.get("snapshots") or [] if s["snapshot-id"] == current), None)
    written = stated["last-updated-ms"]
    moments = [entry["timestamp-ms"] for entry in log]
    since, until = min(moments, default=written), max(moments, default=-1)
    return Metadata(name, tuple(_name(entry["metadata-file"]) for entry in log), since, until, written, state)


def _last_backup(warehouse: str) -> dict[str, str]:
    files, folder = staging.system(warehouse), f"{staging.path_of(warehouse)}/{FOLDER}"
    names = _backups(files, folder)
    if not names:
        return {}
    with files.open_input_stream(f"{folder}/{names[-1]}") as stream:
        stated = json.loads(stream.read())
    if stated.get("format") != FORMAT:
        raise Refused(f"{warehouse}/{FOLDER}/{names[-1]} is no backup of a lake's catalog (format {FORMAT})")
    return stated["tables"]


def _backups(files: fs.FileSystem, folder: str) -> list[str]:
    found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return sorted(entry.base_name for entry in found if entry.base_name.endswith("Z.json"))


def _name(address: str) -> str:
    return address.rpartition("/")[2]


def _version(name: str) -> int:
    """The number of the commit, as file names begin with it.

    >>> _version("00012-ab.metadata.json"), _version("other.metadata.json")
    (12, -1)
    """
    number = name.partition("-")[0]
    return int(number) if number.isdigit() else -1
