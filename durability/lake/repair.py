"""Repairs a lake that has lost files: it reports what is gone and removes it from the tables.

A table continues from its newest state with complete metadata and manifests. Data files that are missing, cut short, or in
another lake's folder are removed from the table. No file is deleted. A snapshot that may have lost facts is rejected, so that no
result uses incomplete facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata

from durability.errors import Refused
from durability.lake.attempt import PULSE
from durability.lake.namespaces import same_folder
from durability.lake.tables import FACTS, SNAPSHOTS, TABLES, Table

if TYPE_CHECKING:
    from durability.lake.iceberg import Tables

THREADS = 16
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Lost:
    """A data file that a table can't read, and why. day: of its rows. bounds: by column, the range of its text values."""

    file: DataFile
    why: str
    day: date | None
    bounds: dict[str, tuple[str, str]]

    def covers(self, snapshot: dict[str, Any]) -> bool:
        """Whether rows of this snapshot may have been in the file."""
        if self.day and snapshot["captured_at"].astimezone(UTC).date() != self.day:
            return False
        return all(low <= snapshot[name] <= high for name, (low, high) in self.bounds.items() if name in snapshot)

    def __str__(self) -> str:
        low, high = self.bounds.get("cluster", ("?", "?"))
        clusters = f"cluster {low}" if low == high else f"clusters {low} to {high}"
        return f"{self.file.file_path} {self.why} ({self.file.record_count:,} rows of {self.day}, {clusters})"


def repair(tables: Tables, now: datetime) -> list[str]:
    """Repair every table. Returns a line for each lost thing, none if the lake is complete.

    Raises Refused if the lake was moved or copied to another folder, or if its last commit is in the future: see `check_clock`.
    Raises Unreachable if its files can't be listed.
    """
    # All tables first. Facts that were taken out must not remain without the rejection of their snapshot, a later commit.
    for table in TABLES.values():
        with suppress(NoSuchTableError, FileNotFoundError, ValueError):  # `_continued` reports them
            tables.check_clock(table, tables.catalog.load_table(tables.identifier(table)))
    lines: list[str] = []
    facts: list[Lost] = []
    for table in TABLES.values():
        current = _continued(tables, table, lines)
        lost = list(_lost(tables, table, current)) if current else []
        if current and lost:
            with current.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
                for one in lost:
                    change.delete_data_file(one.file)
        lines += [f"{tables.identifier(table)}: {one}; taken out" for one in lost]
        facts += lost if table in FACTS else []
    if facts and tables.exists(SNAPSHOTS):
        lines += _reject(tables, facts, now)
    return lines


def _continued(tables: Tables, table: Table, lines: list[str]) -> IcebergTable | None:
    """The table in its newest complete state, or None. Adds a line if the catalog names another state."""
    name, folder = tables.identifier(table), tables.files.folder(table)
    known, why = True, "its metadata file is missing or damaged"
    try:
        current = tables.catalog.load_table(name)
        if not same_folder(current.location(), folder):
            if table is SNAPSHOTS:
                raise Refused(
                    f"the lake of {current.location()} was moved or copied to {folder}: that can't be repaired"
                )
            why = f"it was in {current.location()}, another lake's folder"
        elif _is_whole(tables, current.metadata):
            return current
        else:
            why = "a list of its files is missing"
    except NoSuchTableError:
        known, why = False, "it was missing from the catalog"
    except (FileNotFoundError, ValueError):
        pass
    found = _newest(tables, table)
    if not known and found is None:
        return None
    if known:
        tables.catalog.drop_table(name)
    if found is None:
        lines.append(f"{name}: {why}; all of its rows are gone, and the next run creates it again")
        return None
    lines.append(f"{name}: {why}; it continues from {found.rpartition('/')[2]}, later commits are gone")
    return tables.catalog.register_table(name, found)


def _newest(tables: Tables, table: Table) -> str | None:
    """The address of the newest complete metadata file in the table's folder."""
    whole = []
    for address in tables.files.metadata(table):
        try:
            metadata = FromInputFile.table_metadata(_io(tables).new_input(address))
        except (ValueError, KeyError):
            continue
        if same_folder(metadata.location, tables.files.folder(table)) and _is_whole(tables, metadata):
            whole.append((metadata.last_updated_ms, address))
    return max(whole)[1] if whole else None


def _is_whole(tables: Tables, metadata: TableMetadata) -> bool:
    """Whether the current state's list of manifests and all manifests exist."""
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return True
    if not tables.files.exists(snapshot.manifest_list):
        return False
    try:
        return all(tables.files.exists(manifest.manifest_path) for manifest in snapshot.manifests(_io(tables)))
    except (ValueError, EOFError, AssertionError):
        return False


def _io(tables: Tables) -> Any:
    return tables.catalog._load_file_io(location=tables.files.warehouse)


def _lost(tables: Tables, table: Table, current: IcebergTable) -> Iterator[Lost]:
    snapshot = current.current_snapshot()
    if snapshot is None:
        return
    entries = (m.fetch_manifest_entry(current.io, discard_deleted=True) for m in snapshot.manifests(current.io))
    files = [entry.data_file for of_manifest in entries for entry in of_manifest]
    with ThreadPoolExecutor(THREADS) as pool:
        reasons = pool.map(lambda file: _why_lost(tables, table, file), files)
        for file, why in zip(files, reasons, strict=True):
            if why:
                yield _described(current, file, why)


def _why_lost(tables: Tables, table: Table, file: DataFile) -> str | None:
    address = file.file_path
    folder, data, _ = address.partition("/data/")
    if not data or not same_folder(folder, tables.files.folder(table)):
        return "is in another lake's folder"
    size = tables.files.size(address)
    if size is None:
        return "is missing"
    return None if size == file.file_size_in_bytes else f"has {size:,} of {file.file_size_in_bytes:,} bytes"


def _described(current: IcebergTable, file: DataFile, why: str) -> Lost:
    bounds = {}
    lower, upper = file.lower_bounds or {}, file.upper_bounds or {}
    for field in current.schema().fields:
        if field.name in ("cluster", "attempt_id") and field.field_id in lower and field.field_id in upper:
            low, high = (limits[field.field_id].decode(errors="replace") for limits in (lower, upper))
            bounds[field.name] = (low, high)
    day = file.partition[0] if len(file.partition) else None
    return Lost(file, why, EPOCH + timedelta(days=day) if isinstance(day, int) else day, bounds)


def _reject(tables: Tables, lost: Sequence[Lost], now: datetime) -> list[str]:
    """Reject accepted snapshots that may have lost facts. Returns a line for each."""
    rows = [row for part in tables.parts(SNAPSHOTS) for row in part.to_pylist() if row["kind"] != PULSE]
    newest = {(row["cluster"], row["snapshot_id"]): row for row in sorted(rows, key=lambda row: row["published_at"])}
    lines, files = [], []
    for row in newest.values():
        names = sorted({one.file.file_path.rpartition("/")[2] for one in lost if one.covers(row)})
        if names and row["status"] == "accepted":
            reason = f"files of its facts were lost: {', '.join(names)}"
            rejected = {**row, "status": "rejected", "reason": reason, "published_at": now}
            files.append(tables.files.write(SNAPSHOTS, pa.Table.from_pylist([rejected], SNAPSHOTS.arrow)))
            lines.append(f"cluster {row['cluster']}: its snapshot of {row['captured_at']:%F %T} UTC no longer counts")
    if files:
        tables.add_files(SNAPSHOTS, files)
    return lines
