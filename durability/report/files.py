"""findings.json and findings.csv, and files that appear whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from durability.errors import BadInput, Refused

FORMAT = "durability-findings/1"
COLUMNS = (
    *("id", "cluster", "resource_type", "resource", "control", "category", "outcome", "severity", "cause"),
    *("observed", "required", "partition_count", "partitions", "message", "remediation", "change", "why", "since"),
    *("tier", "waiver_owner", "waiver_approved_by", "waiver_reason", "waiver_ticket", "waiver_expires"),
    "previous_severity",
)
# What spreadsheets take for the start of a formula (OWASP, "CSV Injection").
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class AtomicFiles:
    """Several files of one folder, written under temporary names and renamed only when all are complete.

    Leaving the block normally renames them in the order they were opened; an error removes what was written, and the
    files that were there before stay.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._open: list[tuple[TextIO, Path, Path]] = []

    def __enter__(self) -> AtomicFiles:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"{self.folder}: can't be used as output folder: {error.strerror}; name another") from error
        return self

    def text(self, name: str) -> TextIO:
        """A UTF-8 text file that will be `name`; line ends are written as given."""
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.", suffix=".tmp")
        file = os.fdopen(handle, "w", encoding="utf-8", newline="")
        self._open.append((file, Path(temporary), self.folder / name))
        return file

    def __exit__(self, kind, error, traceback) -> None:
        complete = kind is None
        try:
            for file, _, _ in self._open:
                if complete:
                    file.flush()
                    os.fsync(file.fileno())
                file.close()
            if complete:
                for _, temporary, final in self._open:
                    temporary.chmod(0o644)
                    temporary.replace(final)
        finally:
            for _, temporary, _ in self._open:
                temporary.unlink(missing_ok=True)


class JsonWriter:
    """findings.json as a stream: its head, then one finding a line, so that `load` can stream it back.

    `more`: further members of its head, by name.
    """

    def __init__(self, file: TextIO, run: dict, summary: dict, more: dict | None = None):
        self.file, self.first = file, True
        further = "".join(f", {json.dumps(name)}: {_compact(value)}" for name, value in (more or {}).items())
        file.write(f'{{"format": {json.dumps(FORMAT)},\n"run": {_compact(run)}{further},\n')
        file.write(f'"summary": {_compact(summary)},\n')
        file.write('"findings": [')

    def add(self, finding: dict) -> None:
        self.file.write(("\n" if self.first else ",\n") + _compact(finding))
        self.first = False

    def close(self) -> None:
        self.file.write("\n]}\n")


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # one encoder: `dumps` makes one a call


class CsvWriter:
    """findings.csv: a row per finding, safe to open in a spreadsheet."""

    def __init__(self, file: TextIO):
        self.writer = csv.writer(file)
        self.writer.writerow(COLUMNS)

    def add(self, finding: dict) -> None:
        flat = flattened(finding)
        self.writer.writerow([safe(flat[name]) for name in COLUMNS])


def flattened(finding: dict) -> dict[str, object]:
    """A finding's cells: `observed` and `required` as "key=value; …", partition ids joined by ";", waiver_* columns."""
    waiver = finding["waiver"] or {}
    return {
        **finding,
        "observed": pairs(finding["observed"]),
        "required": pairs(finding["required"]),
        "partition_count": len(finding["partitions"]),
        "partitions": ";".join(map(str, finding["partitions"])),
        **{f"waiver_{name}": waiver.get(name) for name in ("owner", "approved_by", "reason", "ticket", "expires")},
    }


def pairs(values: dict[str, object]) -> str:
    """
    >>> pairs({"replication_factor": 2, "source": "topic", "acks": {"1": None}})
    'replication_factor=2; source=topic; acks={"1": null}'
    """
    return "; ".join(f"{k}={v if isinstance(v, str) else _compact(v)}" for k, v in values.items())


def safe(cell: object) -> str:
    """A cell that no spreadsheet runs as a formula; None is empty.

    >>> safe("=1+1"), safe("@cmd"), safe(None), safe(3), safe("orders")
    ("'=1+1", "'@cmd", '', '3', 'orders')
    """
    text = "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(FORMULA) else text


class FindingsFile:
    """The findings of a findings.json that `JsonWriter` wrote, read from disk on every iteration, one at a time."""

    def __init__(self, path: Path):
        self.path = path

    def __iter__(self) -> Iterator[dict]:
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith('{"id"'):
                    yield json.loads(line.rstrip().removesuffix(","))


def load(path: Path) -> dict:
    """A findings.json with `findings` as an iterable that doesn't hold them all; errors: BadInput.

    Only files of `JsonWriter`'s own layout are streamed; one that was formatted anew is read whole.
    """
    try:
        with path.open(encoding="utf-8") as file:
            lines = [file.readline() for _ in range(4)]
            if lines[3].startswith('"findings": ['):
                head = json.loads("".join(lines[:3]).rstrip().removesuffix(",") + "}")
                return {**head, "findings": FindingsFile(path)}
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(path, "", f"can't be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(path, "", f"is no {FORMAT}: {error}") from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise BadInput(path, "/format", f"expected {FORMAT}")
    return whole
