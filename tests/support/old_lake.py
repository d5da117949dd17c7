"""Unpacks the lake of version 0.1, made by `make_old_lake`, for a test."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "lake-0.1.tar.gz"
HOLD_PATHS = (".json", ".avro")


def unpack(folder: Path) -> str:
    """Unpack the lake below `folder`; returns its path.

    The path has the same length as the original one, so that it can replace that in Avro files.
    """
    with tarfile.open(ARCHIVE) as archive:
        stated = archive.extractfile("location")
        assert stated
        made = stated.read().decode()
        padding = len(made.encode()) - len(str(folder).encode()) - 1
        assert 0 < padding < 255, f"a lake can't be unpacked in {folder}: its path is too long"
        there = folder / ("x" * padding)
        archive.extractall(there, [m for m in archive.getmembers() if m.name != "location"], filter="data")
    for path in (there / "warehouse").rglob("metadata/*"):
        if path.suffix in HOLD_PATHS:
            path.write_bytes(path.read_bytes().replace(made.encode(), str(there).encode()))
    with closing(sqlite3.connect(there / "catalog.db")) as catalog, catalog:
        for column in ("metadata_location", "previous_metadata_location"):
            catalog.execute(f"UPDATE iceberg_tables SET {column} = replace({column}, ?, ?)", (made, str(there)))
    return str(there)
