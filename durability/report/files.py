"""findings.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from durability.errors import BadInput
from durability.report.json_text import compact

FORMAT = "durability-findings/1"


class JsonWriter:
    """Writes findings.json as a stream: a line for all other members (`head`), then a line per finding, as `load` reads it."""

    def __init__(self, file: TextIO, head: Mapping[str, Any]):
        self.file, self.separator = file, "\n"
        file.write(f'{compact({"format": FORMAT, **head})[:-1]},\n"findings": [')

    def add(self, finding: Mapping[str, Any]) -> None:
        self.file.write(self.separator + compact(finding))
        self.separator = ",\n"

    def close(self) -> None:
        self.file.write("\n]}\n")


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
