"""An inventory as a CSV file (RFC 4180): the first line has the names of the columns."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from durability.collect.inventory import files
from durability.errors import BadInput
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.policy.yamlfile import did_you_mean, shown


def read(source: InventorySource) -> Listing:
    """The clusters of a CSV file. Raises BadInput for a file that can't be used, with the line."""
    assert source.path is not None
    path, found = source.path, files.content(source.path)
    rows = csv.reader(io.StringIO(files.text(path, found), newline=""), strict=True)
    lines: dict[str, int] = {}
    entries = []
    try:
        header = [name.strip() for name in next(rows, [])]
        places = {meaning: _place(path, header, column) for meaning, column in source.columns.items()}
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                expected = f"expected {len(header)} columns as in the first line, found {len(row)}"
                raise BadInput(path, f"line {rows.line_num}", f"{expected}; put quotes around a text with a comma")
            cells = {meaning: row[place].strip() for meaning, place in places.items()}
            _check(path, rows.line_num, source.columns["id"], cells["id"], lines)
            more = {meaning: cell or None for meaning, cell in cells.items() if meaning != "id"}
            entries.append(Entry((cells["id"],), **more))
    except csv.Error as error:
        raise BadInput(path, f"line {rows.line_num}", f"isn't CSV: {error}") from None
    if not entries and not source.allow_empty:
        raise BadInput(path, "", f"the inventory lists no cluster; export it again, or {files.ALLOW_EMPTY}")
    return Listing(source, entries, sha256=files.sha256(found))


def _place(path: Path, header: list[str], column: str) -> int:
    found = [number for number, name in enumerate(header) if name == column]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(path, "line 1", f"column {shown(column)} is there {len(found)} times; rename one of them")
    names = ", ".join(map(shown, header[:20])) or "none"
    hint = did_you_mean(column, header)
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        hint = "; separate columns by commas"
    problem = (
        f"no column {shown(column)} (columns: {names}){hint}. State the column in `inventory` of the clusters file"
    )
    raise BadInput(path, "line 1", problem)


def _check(path: Path, line: int, column: str, name: str, lines: dict[str, int]) -> None:
    files.check_name(path, f"line {line}", f"column {shown(column)}", name)
    if name in lines:
        raise BadInput(
            path, f"line {line}", f"cluster {shown(name)} is there twice, first in line {lines[name]}; delete one"
        )
    lines[name] = line
