"""YAML files that people edit, read so that every complaint names the file and the line.

Values keep the mark of the node they came from. Anchors and aliases are refused, since a few lines of them expand
without bound; so are duplicate keys, of which YAML libraries silently keep the last.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from durability.errors import BadInput
from durability.policy.match import pattern_problem
from durability.policy.scalars import DURATION, UNITS, Day, Duration, Expression, Moment
from durability.shapes import Choice, Either, Flag, ListOf, MapOf, Number, Object, Shape, Text, Whole

MAX_BYTES = 8 << 20
MAX_DEPTH = 16

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
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


@dataclass(frozen=True)
class Value:
    """A node of a YAML file. `name` says what it is, for messages: "tier critical", "`expires` of waiver 3"; `shape`: what it
    has to be."""

    file: Path
    node: yaml.Node
    name: str
    shape: Shape

    @property
    def line(self) -> int:
        return self.node.start_mark.line + 1

    def refuse(self, problem: str) -> BadInput:
        """The error to raise about this value."""
        return BadInput(self.file, f"line {self.line}", problem)

    @property
    def is_null(self) -> bool:
        return self.node.tag == "tag:yaml.org,2002:null"

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def called(self, name: str) -> Value:
        """The same value under another name."""
        return replace(self, name=name)

    def mapping(self) -> dict[str, Value]:
        """Keys to values, of an object or a map. Refuses duplicate, unknown, missing and too few keys."""
        shape = self.shape.several if isinstance(self.shape, Either) else self.shape
        known: Mapping = shape.members if isinstance(shape, Object) else {}
        if not isinstance(self.node, yaml.MappingNode):
            what = f"keys and values ({', '.join(known)})" if known else "keys and values"
            raise self.refuse(f"{self.name}: expected {what}, found {self._found()}")
        result: dict[str, Value] = {}
        for key_node, node in self.node.value:
            key = Value(self.file, key_node, f"a key of {self.name}", Text())
            if not isinstance(key_node, yaml.ScalarNode):
                raise key.refuse(f"{key.name}: expected a word")
            word = key_node.value
            if word in result:
                first = result[word].line
                raise key.refuse(f"{self.name}: key {shown(word)} is there twice, first with the value in line {first}")
            if known and word not in known:
                raise key.refuse(
                    f"{self.name}: unknown key {shown(word)}{did_you_mean(word, known)} (known: {', '.join(known)})"
                )
            if isinstance(shape, MapOf) and shape.keys and not shape.keys.fits(word):
                raise key.refuse(f"{self.name}: expected {shape.keys.words}")
            inner = known[word].shape if known else shape.value if isinstance(shape, MapOf) else Text()
            result[word] = Value(self.file, node, f"{word} of {self.name}", inner)
        for word in shape.required if isinstance(shape, Object) else ():
            if word not in result:
                raise self.refuse(f"{self.name}: `{word}` is missing")
        if isinstance(shape, MapOf) and len(result) < shape.least:
            raise self.refuse(f"{self.name}: at least one is needed, found {len(result)}")
        return result

    def items(self) -> list[Value]:
        """The entries of a list, named "<name> 1", "<name> 2", ...; refuses too few."""
        assert isinstance(self.shape, ListOf)
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refuse(f"{self.name}: expected a list, found {self._found()}")
        nodes = self.node.value
        if len(nodes) < self.shape.least:
            raise self.refuse(f"{self.name}: at least one is needed, found {len(nodes)}")
        return [Value(self.file, n, f"{self.name} {i}", self.shape.element) for i, n in enumerate(nodes, 1)]

    def read(self) -> Any:
        """What its shape makes of it: text, int, float, bool, timedelta, date or datetime (UTC); of a list, a list of these."""
        if isinstance(self.shape, ListOf):
            return [item.read() for item in self.items()]
        one = self.shape.one if isinstance(self.shape, Either) else self.shape
        return _READ[type(one)](self, one)

    def _text(self, shape: Text | None = None) -> str:
        """A string that isn't empty; what YAML reads as a number, a date or a truth value must be quoted."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag != "tag:yaml.org,2002:str":
            hint = "; put it in quotes" if isinstance(self.node, yaml.ScalarNode) and not self.is_null else ""
            raise self.refuse(f"{self.name}: expected text, found {self._found()}{hint}")
        if not self.node.value.strip():
            raise self.refuse(f"{self.name}: expected text, found an empty string")
        return self.node.value

    def _choice(self, shape: Choice) -> str:
        word = self._text()
        if not shape.fits(word):
            raise self.refuse(
                f"{self.name}: {shown(word)} is not one of {', '.join(shape.values)}{did_you_mean(word, shape.values)}"
            )
        return word

    def _integer(self, shape: Whole) -> int:
        plain = isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:int"
        if not plain or not re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,18})", self.node.value):
            raise self.refuse(f"{self.name}: expected {shape.words}, found {self._found()}")
        number = int(self.node.value)
        if not shape.fits(number):
            raise self.refuse(f"{self.name}: expected {shape.words} from {shape.low} to {shape.high}, found {number}")
        return number

    def _number(self, shape: Number) -> float:
        kind = self.node.tag.rpartition(":")[2]
        number: float | None = yaml.safe_load(self.node.value) if kind in ("int", "float") else None
        if number is None or not shape.fits(number):
            limits = [
                f"{word} {limit:g}" for word, limit in (("from", shape.low), ("to", shape.high)) if limit is not None
            ]
            raise self.refuse(f"{self.name}: expected {' '.join([shape.words, *limits])}, found {self._found()}")
        return number

    def _boolean(self, shape: Flag) -> bool:
        if self.node.tag != "tag:yaml.org,2002:bool":
            raise self.refuse(f"{self.name}: expected {shape.words}, found {self._found()}")
        return self.node.value.lower() in ("true", "yes", "on")

    def _duration(self, shape: Duration) -> timedelta:
        word = self._word()
        if not DURATION.fits(word):
            raise self.refuse(f"{self.name}: expected {shape.words}, found {self._found()}")
        if shape.most and not shape.fits(word):
            raise self.refuse(f"{self.name}: expected {shape.most.total_seconds() / 60:.0f}m at most")
        return timedelta(seconds=int(word[:-1]) * UNITS[word[-1]])

    def _day(self, shape: Day) -> date:
        word = self._word()
        try:
            if not shape.fits(word):
                raise ValueError("not of the form YYYY-MM-DD")
            return date.fromisoformat(word)
        except ValueError as error:
            raise self.refuse(f"{self.name}: expected {shape.words}, found {self._found()} ({error})") from None

    def _moment(self, shape: Moment) -> datetime:
        word = self._word()
        expected = f"{self.name}: expected {shape.words}, found {self._found()}"
        try:
            if shape.fits(f"{word}Z"):
                raise self.refuse(f"{expected}; its time zone is missing (Z for UTC, or +02:00)")
            if not shape.fits(word):
                raise ValueError
            return datetime.fromisoformat(word).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.refuse(expected) from None

    def _expression(self, shape: Expression) -> str:
        expression = self._text()
        problem = pattern_problem(expression)
        if problem:
            raise self.refuse(f"{self.name}: {shown(expression)} is not a valid RE2 expression: {problem}")
        return expression

    def _word(self) -> str:
        """A scalar as it is written, whatever YAML takes it for."""
        return self.node.value if isinstance(self.node, yaml.ScalarNode) else ""

    def _found(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "keys and values"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        kind = self.node.tag.rpartition(":")[2]
        if kind == "null":
            return "nothing"
        return f"{_KINDS[kind]} ({shown(self.node.value)})" if kind in _KINDS else shown(self.node.value)


_READ: dict[type[Shape], Callable[[Value, Any], Any]] = {
    Text: Value._text,
    Choice: Value._choice,
    Whole: Value._integer,
    Number: Value._number,
    Flag: Value._boolean,
    Duration: Value._duration,
    Day: Value._day,
    Moment: Value._moment,
    Expression: Value._expression,
}


def read(path: Path | str, name: str, shape: Object) -> Value:
    """The root of the YAML file at `path`, of this shape, whose `format` must be the shape's; `name` is what messages call it.

    Raises BadInput for a file that is missing, isn't YAML, holds several documents, uses anchors or explicit tags,
    or states another format.
    """
    path = Path(path)
    node = _compose(path, _text(path, name))
    wanted = shape.members["format"].shape.words
    root = Value(path, node, name, MapOf(Text()))
    stated = root.mapping().get("format")
    if stated is None:
        raise root.refuse(f"{name}: `format` is missing; the first line should be `format: {wanted}`")
    if stated.node.value != wanted:
        raise stated.refuse(f"{name}: format {stated._found()} can't be read here; expected {wanted}")
    return replace(root, shape=shape)


def _text(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadInput(path, "", f"no such file; expected the {name} here") from None
    except OSError as error:
        raise BadInput(path, "", f"can't be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise BadInput(path, "", f"larger than {MAX_BYTES >> 20} MiB, which no {name} needs")
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
