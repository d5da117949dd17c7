"""The shapes of values, in which `durability.topology.kinds` and `durability.policy.formats` describe the public formats.

Readers check documents by these descriptions, and `durability.schemas` makes JSON Schemas of the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

INT16, INT32, INT64 = (2 ** (bits - 1) - 1 for bits in (16, 32, 64))


class Shape:
    """The shape of a value. words: its name in messages. json: its JSON type."""

    scalar: ClassVar[bool] = True
    json: ClassVar[type]
    words: str

    def fits(self, value: object) -> bool:
        """Whether this JSON value has the shape. For a list, map or object, only its own type is checked."""
        return type(value) is self.json


@dataclass(frozen=True)
class Flag(Shape):
    json: ClassVar[type] = bool
    words: str = "true or false"


@dataclass(frozen=True)
class Whole(Shape):
    """An integer from `low` to `high`. 2.0 isn't one."""

    words: str = "a whole number"
    low: int = 0
    high: int = INT32

    def fits(self, value: object) -> bool:
        return type(value) is int and self.low <= value <= self.high


@dataclass(frozen=True)
class WholeOr(Whole):
    """An integer from `low` to `high`, or a text of the form `text`."""

    text: Text = field(default_factory=lambda: Text())

    def fits(self, value: object) -> bool:
        return super().fits(value) or self.text.fits(value)


@dataclass(frozen=True)
class Number(Shape):
    """A number, whole or not, from `low` to `high` (None: no limit). between: neither limit is allowed itself."""

    words: str = "a number"
    low: float | None = None
    high: float | None = None
    between: bool = False

    def fits(self, value: object) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return False
        if self.between and value in (self.low, self.high):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Text(Shape):
    """Text.

    pattern: a pattern for the whole text, in the syntax that Python and ECMA-262 share.
    least, longest: its length.
    blank: may it be white space only?
    but: words that it can't be.
    check: for conditions that no pattern can express.
    format: JSON Schema's name for it, a hint for editors.
    """

    words: str = "text"
    pattern: str | None = None
    least: int = 0
    longest: int | None = None
    blank: bool = True
    but: tuple[str, ...] = ()
    check: Callable[[str], bool] | None = None
    format: str | None = None

    def fits(self, value: object) -> bool:
        if type(value) is not str or len(value) < self.least or (self.longest and len(value) > self.longest):
            return False
        if value in self.but or (self.pattern and not re.fullmatch(self.pattern, value, re.ASCII)):
            return False
        return (self.blank or bool(value.strip())) and (not self.check or self.check(value))


@dataclass(frozen=True)
class Choice(Shape):
    """One of a few words."""

    values: tuple[str, ...]
    words: str = "a word"

    def fits(self, value: object) -> bool:
        return type(value) is str and value in self.values


@dataclass(frozen=True)
class Constant(Shape):
    """Exactly this text."""

    words: str

    def fits(self, value: object) -> bool:
        return type(value) is str and value == self.words


@dataclass(frozen=True)
class Anything(Shape):
    words: str = "anything"

    def fits(self, value: object) -> bool:
        return True


@dataclass(frozen=True)
class ListOf(Shape):
    """A list.

    least, most: the number of elements; 0 for `most` means any number.
    identity: the member that identifies its elements, which are objects. Each identity occurs once.
    """

    scalar: ClassVar[bool] = False
    json: ClassVar[type] = list
    element: Shape
    least: int = 0
    most: int = 0
    identity: str = ""
    words: str = "a list"


@dataclass(frozen=True)
class MapOf(Shape):
    """An object with any keys. keys: the shape of a key. least: the fewest keys."""

    scalar: ClassVar[bool] = False
    json: ClassVar[type] = dict
    value: Shape
    keys: Text | None = None
    least: int = 0
    words: str = "an object"


@dataclass(frozen=True)
class Member:
    """A member of an object.

    optional: it may be missing. nullable: it may be null.
    about: its meaning, for editors.
    vital: a topology document needs it even if it, or the object around it, could not be read.
    """

    shape: Shape
    optional: bool = False
    nullable: bool = False
    vital: bool = False
    about: str = ""


@dataclass(frozen=True)
class Object(Shape):
    """An object with known members.

    closed: are other members refused? Otherwise they are ignored.
    about: its meaning, for editors.
    least: the fewest members.
    """

    scalar: ClassVar[bool] = False
    json: ClassVar[type] = dict
    name: str
    members: Mapping[str, Member]
    closed: bool = False
    about: str = ""
    words: str = "an object"
    least: int = 0

    @property
    def title(self) -> str:
        """The name in messages."""
        return self.name.replace("-", " ")

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, member in self.members.items() if not member.optional)


@dataclass(frozen=True)
class Either(Shape):
    """One value for everything, or several values by key."""

    scalar: ClassVar[bool] = False
    one: Shape
    several: Object
    words: str = ""
