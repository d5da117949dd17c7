"""Reads YAML files that people edit. Every error names the file, the line and the key.

Anchors and aliases are refused, because a few lines of them expand without bound. Duplicate keys are refused, too, because YAML
libraries silently use the last one.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from durability.errors import BadInput, printable
from durability.policy.match import pattern_problem
from durability.policy.scalars import UNITS, Day, Duration, Expression, Moment, ShortName
from durability.shapes import (
    Anything,
    Choice,
    Constant,
    Either,
    Flag,
    ListOf,
    MapOf,
    Number,
    Object,
    Shape,
    Text,
    Whole,
    WholeOr,
)

MAX_BYTES = 8 << 20
MAX_DEPTH = 16

Place = tuple[str | int, ...]
"""Keys and indexes from the root of a file."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = {
    "bool": "true or false",
    "int": "a number",
    "float": "a decimal number",
    "null": "nothing",
    "timestamp": "a date",
}


def shown(text: str, limit: int = 80) -> str:
    """`text` in double quotes, control characters escaped, shortened to `limit` characters.

    >>> shown("a" * 100, limit=5)
    '"aaaaa…"'
    """
    return json.dumps(text if len(text) <= limit else text[:limit] + "…", ensure_ascii=False)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint to append to a message, empty when nothing known resembles `word`.

    >>> did_you_mean("replication_facto", ["replication_factor", "survive"])
    '; did you mean replication_factor?'
    >>> did_you_mean("rack:AZ1", ["rack:az1", "rack:az2"])
    '; did you mean rack:az1?'
    """
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6) or [
        lower[name] for name in difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    ]
    return f"; did you mean {close[0]}?" if close else ""


@dataclass(frozen=True)
class Document:
    """A file that has been read.

    content: objects, maps and lists of text, int, float, bool, timedelta, date and datetime (UTC).
    lines: the line of each value, from 1.
    """

    file: Path
    content: dict[str, Any]
    lines: Mapping[Place, int]

    def refuse(self, place: Place, problem: str) -> BadInput:
        """The error to raise about the value at `place`."""
        return BadInput(self.file, f"line {self.lines[place]}", f"{_path(place)}: {problem}")


def read(path: Path | str, kind: str, shape: Object) -> Document:
    """The YAML file at `path`, whose content has this shape. Its `format` must be the shape's. kind: its name in errors.

    Raises BadInput for a file that is missing, isn't YAML, has several documents, anchors or explicit tags, has another
    format, or isn't of that shape.
    """
    path = Path(path)
    node = _compose(path, _text(path, kind))
    reader = _Reader(path, kind)
    wanted = shape.members["format"].shape.words
    if not isinstance(node, yaml.MappingNode):
        raise reader.refuse(node, (), f"expected keys and values, found {_found(node)}")
    stated = next((value for key, value in node.value if key.value == "format"), None)
    if stated is None:
        raise reader.refuse(node, (), f"`format` is missing; the first line should be `format: {wanted}`")
    if stated.value != wanted:
        raise reader.refuse(stated, (), f"format {_found(stated)} can't be read here; expected {wanted}")
    return Document(path, reader.value(node, shape, ()), reader.lines)


def _path(place: Place) -> str:
    """A place as messages name it: `topics[3].match.topic`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _found(node: yaml.Node) -> str:
    """What a node is, for messages."""
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return "nothing"
    return f"{_KINDS[kind]} ({shown(node.value)})" if kind in _KINDS else shown(node.value)


class _Reader:
    """Turns the nodes of one file into the values that their shapes describe, and keeps the line of each."""

    def __init__(self, file: Path, kind: str):
        self.file = file
        self.kind = kind
        self.lines: dict[Place, int] = {}

    def refuse(self, node: yaml.Node, place: Place, problem: str) -> BadInput:
        where = f"line {node.start_mark.line + 1}"
        return BadInput(self.file, where, f"{_path(place) or self.kind}: {problem}")

    def value(self, node: yaml.Node, shape: Shape, place: Place) -> Any:
        self.lines[place] = node.start_mark.line + 1
        match shape:
            case Either():
                return self.value(node, shape.several if isinstance(node, yaml.MappingNode) else shape.one, place)
            case Object():
                return self._object(node, shape, place)
            case MapOf():
                return self._map(node, shape, place)
            case ListOf():
                return self._list(node, shape, place)
        try:
            return _SCALARS[type(shape)](node, shape)
        except _Wrong as wrong:
            raise self.refuse(node, place, str(wrong)) from None

    def _object(self, node: yaml.Node, shape: Object, place: Place) -> dict[str, Any]:
        known = ", ".join(shape.members)
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, place, f"expected keys and values ({known}), found {_found(node)}")
        nodes = self._by_key(node, place)
        for word, (key, _) in nodes.items():
            if word not in shape.members:
                hint = did_you_mean(word, shape.members)
                raise self.refuse(key, place, f"unknown key {shown(word)}{hint} (known: {known})")
        for word in shape.required:
            if word not in nodes:
                raise self.refuse(node, place, f"`{word}` is missing")
        if len(nodes) < shape.least:
            raise self.refuse(node, place, f"at least one of {known} is needed")
        return {
            word: self.value(inner, shape.members[word].shape, (*place, word)) for word, (_, inner) in nodes.items()
        }

    def _map(self, node: yaml.Node, shape: MapOf, place: Place) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, place, f"expected keys and values, found {_found(node)}")
        nodes = self._by_key(node, place)
        for word, (key, _) in nodes.items():
            if shape.keys and not shape.keys.fits(word):
                raise self.refuse(key, place, f"expected {shape.keys.words}, found {shown(word)}")
        if len(nodes) < shape.least:
            raise self.refuse(node, place, f"at least one is needed, found {len(nodes)}")
        return {word: self.value(inner, shape.value, (*place, word)) for word, (_, inner) in nodes.items()}

    def _by_key(self, node: yaml.MappingNode, place: Place) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """The key's and the value's node by key."""
        nodes: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.refuse(key, place, "expected a word as key")
            if key.value in nodes:
                first = nodes[key.value][1].start_mark.line + 1
                problem = f"key {shown(key.value)} is there twice, first with the value in line {first}"
                raise self.refuse(key, place, problem)
            nodes[key.value] = (key, value)
        return nodes

    def _list(self, node: yaml.Node, shape: ListOf, place: Place) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode):
            raise self.refuse(node, place, f"expected a list, found {_found(node)}")
        if len(node.value) < shape.least:
            raise self.refuse(node, place, f"at least one is needed, found {len(node.value)}")
        return [self.value(item, shape.element, (*place, index)) for index, item in enumerate(node.value)]


class _Wrong(Exception):
    """A scalar that isn't what its shape describes. The text says what was expected."""

    @classmethod
    def instead_of(cls, expected: str, node: yaml.Node) -> _Wrong:
        return cls(f"expected {expected}, found {_found(node)}")


def _scalar_text(node: yaml.Node, shape: Text | Constant) -> str:
    """Text that isn't empty. A value that YAML reads as a number, a date or a truth value must be quoted."""
    if node.tag != "tag:yaml.org,2002:str":
        quotable = isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null"
        raise _Wrong(f"expected text, found {_found(node)}" + ("; put it in quotes" if quotable else ""))
    if not node.value.strip():
        raise _Wrong("expected text, found an empty string")
    if isinstance(shape, Text) and shape.pattern and not shape.fits(node.value):
        raise _Wrong.instead_of(shape.words, node)
    return node.value


def _choice(node: yaml.Node, shape: Choice) -> str:
    word = _scalar_text(node, Text())
    if not shape.fits(word):
        raise _Wrong(f"{shown(word)} is not one of {', '.join(shape.values)}{did_you_mean(word, shape.values)}")
    return word


def _integer(node: yaml.Node, shape: Whole) -> int:
    if node.tag != "tag:yaml.org,2002:int" or not re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,18})", node.value):
        raise _Wrong.instead_of(shape.words, node)
    number = int(node.value)
    if not shape.fits(number):
        raise _Wrong(f"expected {shape.words} from {shape.low} to {shape.high}, found {number}")
    return number


def _integer_or_text(node: yaml.Node, shape: WholeOr) -> int | str:
    if node.tag.endswith(":int"):
        return _integer(node, Whole(low=shape.low, high=shape.high))
    if node.tag != "tag:yaml.org,2002:str" or not shape.text.fits(node.value):
        raise _Wrong.instead_of(shape.words, node)
    return node.value


def _number(node: yaml.Node, shape: Number) -> float:
    number: float | None = yaml.safe_load(node.value) if node.tag.endswith((":int", ":float")) else None
    if number is None or not shape.fits(number):
        above, below = ("above", "below") if shape.between else ("from", "to")
        limits = {above: shape.low, below: shape.high}
        words = [f"{word} {limit:g}" for word, limit in limits.items() if limit is not None]
        limited = (" and " if shape.between else " ").join(words)
        raise _Wrong.instead_of(f"{shape.words} {limited}".rstrip(), node)
    return number


def _boolean(node: yaml.Node, shape: Flag) -> bool:
    if node.tag != "tag:yaml.org,2002:bool":
        raise _Wrong.instead_of(shape.words, node)
    return node.value.lower() in ("true", "yes", "on")


def _duration(node: yaml.Node, shape: Duration) -> timedelta:
    word = _as_written(node, shape)
    return timedelta(seconds=int(word[:-1]) * UNITS[word[-1]])


def _day(node: yaml.Node, shape: Day) -> date:
    try:
        return date.fromisoformat(_as_written(node, shape))
    except ValueError:  # not in the calendar
        raise _Wrong.instead_of(shape.words, node) from None


def _moment(node: yaml.Node, shape: Moment) -> datetime:
    if shape.fits(f"{node.value}Z"):
        expected = _Wrong.instead_of(shape.words, node)
        raise _Wrong(f"{expected}; its time zone is missing (Z for UTC, or +02:00)")
    try:
        return datetime.fromisoformat(_as_written(node, shape)).astimezone(UTC)
    except (ValueError, OverflowError):  # not in the calendar
        raise _Wrong.instead_of(shape.words, node) from None


def _expression(node: yaml.Node, shape: Expression) -> str:
    expression = _scalar_text(node, shape)
    if problem := pattern_problem(expression):
        raise _Wrong(f"{shown(expression)} is not a valid RE2 expression: {problem}")
    return expression


def _short_name(node: yaml.Node, shape: ShortName) -> str:
    word = _scalar_text(node, shape)
    if not shape.fits(word):
        raise _Wrong.instead_of(shape.words, node)
    return word


def _as_written(node: yaml.Node, shape: Text) -> str:
    """A fitting scalar as it is written, independent of its type in YAML."""
    if not shape.fits(node.value):
        raise _Wrong.instead_of(shape.words, node)
    return node.value


_SCALARS: dict[type[Shape], Callable[[yaml.Node, Any], Any]] = {
    Anything: lambda node, shape: None,
    Constant: _scalar_text,
    Text: _scalar_text,
    Choice: _choice,
    Whole: _integer,
    WholeOr: _integer_or_text,
    Number: _number,
    Flag: _boolean,
    Duration: _duration,
    Day: _day,
    Moment: _moment,
    Expression: _expression,
    ShortName: _short_name,
}


def _text(path: Path, kind: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadInput(path, "", f"no such file; expected the {kind} here") from None
    except OSError as error:
        raise BadInput(path, "", f"can't be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise BadInput(path, "", f"larger than {MAX_BYTES >> 20} MiB, which no {kind} needs")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(path, f"line {line}", "not UTF-8 text") from None


def _compose(path: Path, text: str) -> yaml.Node:
    try:
        _check_events(path, text)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}" if mark else ""
        raise BadInput(path, where, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadInput(path, "", f"not valid YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise BadInput(path, "line 1", "the file is empty")
    return node


def _check_events(path: Path, text: str) -> None:
    """Refuses what would expand or nest without bound before anything is built from it."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        mark, tag = event.start_mark, getattr(event, "tag", None)
        where = f"line {mark.line + 1}" if mark else ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput(path, where, "anchors (&) and aliases (*) are not allowed; write the value out")
        if tag:
            raise BadInput(path, where, f"tags ({shown(tag)}) are not allowed")
        if isinstance(event, yaml.ScalarEvent) and printable(event.value) != event.value:
            # Without libyaml, PyYAML accepts the escape.
            raise BadInput(path, where, f"not Unicode text: {shown(printable(event.value))}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise BadInput(path, where, f"nested more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise BadInput(path, where, "a second YAML document (---) begins here; expected one")
