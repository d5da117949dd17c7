"""Staged files that were never committed: found and removed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from pyarrow import fs

from durability.lake.storage import storage_errors

ORPHANED_AFTER = timedelta(days=1)
"""Longer than any run takes from staging to publishing."""

# The names that `Storage.write` gives; what Spark writes into a table's folder is named otherwise and left alone.
_STAGED = re.compile(r"[0-9a-f]{32}\.parquet")


def listed(warehouse: str, table_location: str, before: datetime) -> list[str]:
    """The addresses of a table's files of this program, committed or not, that were last written before a moment."""
    files = system(warehouse)
    folder = fs.FileSelector(f"{path_of(table_location)}/data", allow_not_found=True)
    with storage_errors(f"the folder {table_location}/data can't be listed"):
        return [
            f"{table_location}/data/{entry.base_name}"
            for entry in files.get_file_info(folder)
            if entry.type == fs.FileType.File and _STAGED.fullmatch(entry.base_name) and entry.mtime < before
        ]


def metadata_files(warehouse: str, table_location: str) -> list[str]:
    """The addresses of the metadata files in a table's folder."""
    folder = fs.FileSelector(f"{path_of(table_location)}/metadata", allow_not_found=True)
    with storage_errors(f"the folder {table_location}/metadata can't be listed"):
        names = [entry.base_name for entry in system(warehouse).get_file_info(folder)]
    return [f"{table_location}/metadata/{name}" for name in sorted(names) if name.endswith(".metadata.json")]


def remove(warehouse: str, addresses: Iterable[str]) -> int:
    """Removes files; those that are gone already don't count."""
    files, removed = system(warehouse), 0
    for address in addresses:
        with storage_errors(f"the staged file {address} can't be removed"), suppress(FileNotFoundError):
            files.delete_file(path_of(address))
            removed += 1
    return removed


def system(warehouse: str) -> fs.FileSystem:
    return fs.LocalFileSystem() if warehouse.startswith("file://") else fs.FileSystem.from_uri(warehouse)[0]


def path_of(address: str) -> str:
    """As pyarrow's file systems want it. Spark writes addresses of files with one slash.

    >>> path_of("file:///lake/a b"), path_of("file:/lake/a b"), path_of("s3://bucket/lake")
    ('/lake/a b', '/lake/a b', 'bucket/lake')
    """
    return address.partition(":")[2].removeprefix("//")
