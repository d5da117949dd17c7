"""Reads topology documents from a file, or from a folder with a fleet and each cluster's history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from durability.errors import BadInput, printable
from durability.garbage import uncollected
from durability.topology.document import Topology
from durability.topology.unreadable import pointer
from durability.topology.validation import check

MAX_BYTES = 512 << 20


def read(path: Path | str) -> list[Topology]:
    """The topologies of a `.json` file, or of every `*.json` file in a folder and the folders in it.

    Returns them sorted by cluster and captured_at; hidden files and folders are left out.
    Raises BadInput, which names the file and the line or JSON path, for the first file that can't be used.
    """
    topologies, errors = read_each(path)
    if errors:
        raise errors[0]
    return topologies


def read_each(path: Path | str, without: Iterable[Path] = ()) -> tuple[list[Topology], list[BadInput]]:
    """Like `read`, but returns the topologies that can be used, and an error for each file that can't.

    without: folders that are left out if they are in this one, such as a run's reports.

    The first of several documents with the same cluster and captured_at is used (by file name); the others are errors.
    Raises BadInput if the path doesn't exist or the folder has no `*.json` in it.
    """
    root = Path(path)
    topologies: dict[tuple, Topology] = {}
    errors: list[BadInput] = []
    for file in files(root, without):
        name = printable(file.relative_to(root).as_posix() if file != root else file.name)
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


def files(root: Path, without: Iterable[Path] = ()) -> list[Path]:
    """The files that `read_each` reads. Raises BadInput if there are none."""
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise BadInput(root, "", "no such file or folder; expected a kafka-topology/1 document or a folder of them")
    whole = root.resolve()
    left_out = [folder.resolve() for folder in without if whole in folder.resolve().parents]
    found = [
        file
        for file in sorted(root.rglob("*.json"))
        if file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
        and not any(folder in file.resolve().parents for folder in left_out)
    ]
    if not found:
        raise BadInput(root, "", "no *.json file in this folder; expected kafka-topology/1 documents")
    return found


class _Flaw:
    """Replaces a value that JSON can't have, until its place is known."""

    def __init__(self, problem: str):
        self.problem = problem


def _parse(file: Path) -> Any:
    text = _text(file)
    flaws: list[_Flaw] = []

    def flaw(problem: str) -> _Flaw:
        flaws.append(_Flaw(problem))
        return flaws[-1]

    def members(pairs: list) -> dict:
        built = dict(pairs)
        if len(built) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            built[twice] = flaw("this key occurs twice in one object; expected once")
        return built

    def constant(name: str) -> _Flaw:
        return flaw(f"{name} is no JSON number; expected a number or null")

    try:
        with uncollected():
            document = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise BadInput(file, f"line {error.lineno}, column {error.colno}", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise BadInput(file, "", "not a topology document: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise BadInput(file, "", f"not a topology document: {error}") from None
    if flaws:
        raise BadInput(file, *_first_flaw(document))
    return document


def _first_flaw(document: object) -> tuple[str, str]:
    """Place and problem of the first flaw, in document order. The last one that was made is always found."""
    stack: list[tuple[tuple, object]] = [((), document)]
    while True:
        place, value = stack.pop()
        if isinstance(value, _Flaw):
            return pointer(place), value.problem
        inner: list[tuple[Any, object]] = []
        if isinstance(value, dict):
            inner = list(value.items())
        elif isinstance(value, list):
            inner = list(enumerate(value))
        stack.extend(((*place, key), element) for key, element in reversed(inner))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(file, "", f"can't be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise BadInput(
            file,
            "",
            f"larger than {MAX_BYTES >> 20} MiB, the largest document that is read: a cluster of a million partitions has less",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(file, f"line {line}", "not UTF-8; expected a JSON document in UTF-8") from None
