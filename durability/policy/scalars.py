"""Kinds of text that only the policy files have: lengths of time, days, moments and expressions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from durability.shapes import Text

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _up_to(most: int) -> str:
    """A pattern of the numbers from 1 to `most`.

    >>> _up_to(1800), _up_to(30)
    ('[1-9][0-9]{0,2}|1[0-7][0-9]{2}|1800', '[1-9]|[1-2][0-9]|30')
    """
    digits = str(most)

    def any_digits(count: int, least: int) -> str:
        return {0: "", 1: "[0-9]"}.get(count, f"[0-9]{{{least},{count}}}" if least < count else f"[0-9]{{{count}}}")

    found = ["[1-9]" + any_digits(len(digits) - 2, 0)] if len(digits) > 1 else []
    for place, digit in enumerate(digits):
        low, high, left = int(place == 0), int(digit) - 1, len(digits) - place - 1
        if low <= high:
            found.append(f"{digits[:place]}[{low}-{high}]" + any_digits(left, left))
    return "|".join([*found, digits])


def _durations(most: timedelta | None) -> str:
    if most is None:
        return "0*[1-9][0-9]*[smhd]"
    counts = {unit: int(most.total_seconds()) // seconds for unit, seconds in UNITS.items()}
    return "0*(?:" + "|".join(f"(?:{_up_to(n)}){unit}" for unit, n in counts.items() if n) + ")"


@dataclass(frozen=True)
class Duration(Text):
    """A length of time: a whole number and s, m, h or d. most: the longest."""

    words: str = "a duration such as 10s, 30m, 6h or 1d"
    longest: int | None = 7
    most: timedelta | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", _durations(self.most))


@dataclass(frozen=True)
class Day(Text):
    """A day, YYYY-MM-DD."""

    words: str = "a day such as 2027-01-31"
    pattern: str | None = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    format: str | None = "date"


@dataclass(frozen=True)
class Moment(Text):
    """A moment with its time zone, RFC 3339; the seconds may be left out, and a blank may stand for the T."""

    words: str = "a moment such as 2026-11-21T01:00:00Z"
    pattern: str | None = (
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
    )


@dataclass(frozen=True)
class Expression(Text):
    """An RE2 expression, to be matched against the whole of a value."""

    blank: bool = False


DURATION, EXPRESSION = Duration(), Expression()
