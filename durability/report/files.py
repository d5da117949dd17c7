"""findings.json and findings.csv."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from durability.errors import BadInput

FORMAT = "durability-findings/1"
COLUMNS = (
    *("id", "cluster", "resource_type", "resource", "control", "category", "outcome", "severity", "cause"),
    *("observed", "required", "partition_count", "partitions", "message", "remediation", "change", "why", "since"),
    *("tier", "waiver_owner", "waiver_approved_by", "waiver_reason", "waiver_ticket", "waiver_expires"),
    *("previous_severity", "waiver_requested_by", "waiver_approved_at", "waiver_approved_count", "waiver_risk"),
    *("waiver_compensating_control", "team", "previous_outcome"),
)
"""The columns of findings.csv."""
FORMULA = re.compile(
    r"(^|[;,|\t\r\n\v\f\x85\u2028\u2029])([ \"'\u00a0]*)"
    r"(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])(?![+-]\d+(?:\.\d+)?(?:, ?[+-]?\d+(?:\.\d+)?){0,8}(?:[;\t\r\n\]}]|$))"
)
"""Text that a spreadsheet would run as a formula (OWASP, "CSV Injection"), also in full-width characters.

It matches at the start of a cell. It also matches at the start of what would be a cell with another separator, after quotes and
spaces. Plain numbers and lists of numbers don't match. A comma may be a decimal one, so the text after the number is checked."""


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # `json.dumps` would create an encoder per call


class JsonWriter:
    """Writes findings.json as a stream: a line for all other members (`head`), then a line per finding, as `load` reads it."""

    def __init__(self, file: TextIO, head: Mapping[str, Any]):
        self.file, self.separator = file, "\n"
        file.write(f'{_compact({"format": FORMAT, **head})[:-1]},\n"findings": [')

    def add(self, finding: Mapping[str, Any]) -> None:
        self.file.write(self.separator + _compact(finding))
        self.separator = ",\n"

    def close(self) -> None:
        self.file.write("\n]}\n")


class CsvWriter:
    """Writes findings.csv, a row per finding, safe to open in a spreadsheet."""

    def __init__(self, file: TextIO):
        self.writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        self.writer.writerow(COLUMNS)

    def add(self, finding: Mapping[str, Any]) -> None:
        cells = {
            **finding,
            "observed": pairs(finding["observed"]),
            "required": pairs(finding["required"]),
            "partition_count": len(finding["partitions"]),
            "partitions": ";".join(map(str, finding["partitions"])),
            **{f"waiver_{name}": value for name, value in (finding["waiver"] or {}).items()},
        }
        self.writer.writerow([cell if type(cell) is int else safe(cell) for cell in map(cells.get, COLUMNS)])


def pairs(values: Mapping[str, object]) -> str:
    """Members as `name=value`, joined by semicolons.

    >>> pairs({"replication_factor": 2, "source": "topic", "acks": {"1": None}})
    'replication_factor=2; source=topic; acks={"1": null}'
    """
    # Most values are text or integers, and the encoder takes longer to call than to run.
    return "; ".join(f"{k}={v if isinstance(v, str) or type(v) is int else _compact(v)}" for k, v in values.items())


def safe(cell: object) -> str:
    """A cell that no spreadsheet runs as a formula, with any separator. None gives an empty cell.

    >>> safe("=1+1"), safe("@cmd"), safe(None), safe(3), safe("orders")
    ("'=1+1", "'@cmd", '', '3', 'orders')
    >>> safe("x;=1+1"), safe("x;-a"), safe("a-b; c=-1")
    ("x;'=1+1", "x;'-a", 'a-b; c=-1')
    >>> safe("-1,5"), safe("x;-1,5+cmd|' /C calc'!A0"), safe("+1,0*HYPERLINK(1)")
    ('-1,5', "x;'-1,5+cmd|' /C calc'!A0", "'+1,0*HYPERLINK(1)")
    """
    return _safe("" if cell is None else str(cell))


@lru_cache(maxsize=4096)
def _safe(text: str) -> str:
    """Cached, because a column has few different cells."""
    return FORMULA.sub(r"\1\2'", text)


class FindingsFile:
    """The findings in a file of `JsonWriter`. Each iteration reads them from disk, one at a time."""

    def __init__(self, path: Path):
        self.path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith('{"id"'):
                    yield json.loads(line.rstrip().removesuffix(","))


def load(path: Path) -> dict[str, Any]:
    """A findings.json. `findings` is an iterable that reads from disk. A file with another layout is read at once.

    Raises BadInput if it isn't a findings.json.
    """
    try:
        with path.open(encoding="utf-8") as file:
            head, start = file.readline(), file.readline()
        if start.startswith('"findings": ['):
            return {**json.loads(head.rstrip().removesuffix(",") + "}"), "findings": FindingsFile(path)}
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(path, "", f"can't be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(path, "", f"is no {FORMAT}: {error}") from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise BadInput(path, "/format", f"expected {FORMAT}")
    return whole
