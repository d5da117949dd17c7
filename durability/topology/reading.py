"""Reading topology documents from files: one, or a folder of a fleet and each cluster's history."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from durability.errors import BadInput
from durability.topology.document import Topology
from durability.topology.unreadable import pointer
from durability.topology.validation import check


def read(path: Path | str) -> list[Topology]:
    """The topologies of a `.json` file, or of every `*.json` file in a folder and the folders in it.

    Returns them sorted by cluster and captured_at; hidden files and folders are left out.
    Raises BadInput, which names the file and the line or JSON path, for the first file that can't be used.
    """
    topologies, errors = read_each(path)
    if errors:
        raise errors[0]
    return topologies


def read_each(path: Path | str) -> tuple[list[Topology], list[BadInput]]:
    """Like `read`, but goes on: the topologies that can be used, and an error for each file that can't.

    Of documents with the same cluster and captured_at only the first (by file name) is kept; the others are errors.
    Raises BadInput if the path doesn't exist or the folder has no `*.json` in it.
    """
    root = Path(path)
    topologies: dict[tuple, Topology] = {}
    errors: list[BadInput] = []
    for file in _files(root):
        name = file.relative_to(root).as_posix() if file != root else file.name
        try:
            document = _parse(file)
            topology = Topology(document, name, sha256=check(document, str(file)))
            twin = topologies.setdefault((topology.cluster, topology.captured_at), topology)
            if twin is not topology:
                raise BadInput(
                    file,
                    "/cluster/captured_at",
                    f"the same cluster ({topology.cluster}) and captured_at as in {twin.source}; "
                    "expected one document per cluster and moment",
                )
        except BadInput as error:
            errors.append(error)
    return [topologies[key] for key in sorted(topologies)], errors


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise BadInput(root, "", "no such file or folder; expected a kafka-topology/1 document or a folder of them")
    files = [
        file
        for file in sorted(root.rglob("*.json"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(root).parts)
    ]
    if not files:
        raise BadInput(root, "", "no *.json file in this folder; expected kafka-topology/1 documents")
    return files


class _Marked(dict):
    """An object in which a key stands twice, until its place is known."""

    def __init__(self, pairs: list, key: str):
        super().__init__(pairs)
        self.key = key


class _NoNumber:
    """NaN or Infinity, which JSON doesn't have, until its place is known."""

    def __init__(self, text: str):
        self.text = text


def _parse(file: Path) -> Any:
    text = _text(file)
    marked: list[object] = []

    def members(pairs: list) -> dict:
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        keys = [key for key, _ in pairs]
        twice = _Marked(pairs, next(key for key in keys if keys.count(key) > 1))
        marked.append(twice)
        return twice

    def constant(name: str) -> _NoNumber:
        value = _NoNumber(name)
        marked.append(value)
        return value

    try:
        with _no_collection():
            document = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise BadInput(file, f"line {error.lineno}, column {error.colno}", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise BadInput(file, "", "not a topology document: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise BadInput(file, "", f"not a topology document: {error}") from None
    if marked:
        _refuse_marked(file, document)
    return document


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection meanwhile: it would walk the million objects that are being made again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise BadInput(file, "", f"can't be read: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(file, f"line {line}", "not UTF-8; expected a JSON document in UTF-8") from None


def _refuse_marked(file: Path, document: object) -> None:
    """Raises BadInput at the first marked place, in document order; a mark that a later twin key hid has no place."""
    stack: list[tuple[tuple, object]] = [((), document)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, _Marked):
            raise BadInput(file, pointer((*place, value.key)), "this key stands twice in one object; expected once")
        if isinstance(value, _NoNumber):
            raise BadInput(file, pointer(place), f"{value.text} is no JSON number; expected a number or null")
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        stack.extend(reversed([((*place, key), element) for key, element in inner]))
    raise BadInput(file, "", "a key stands twice in one object, or a number is NaN or Infinity")
