"""Kafka versions, compared as numbers."""

from __future__ import annotations

import re

PATTERN = r"v?(\d{1,6}(?:\.\d{1,6}){1,3}|\d{1,6}(?!\.))(?:[-.+](.*))?"
"""A version and, as its first group, the numbers of it; in Java's regular expressions too. One without a minor that
something follows a dot, such as 3.x, names no release."""
_VERSION = re.compile(PATTERN, re.ASCII | re.DOTALL)


def parse(version: str | None) -> tuple[int, ...] | None:
    """The numbers of a Kafka version without trailing zeros, so that 4.3 equals 4.3.0; None if it names none.

    A suffix after `-`, `+` or a dot (IV2, SNAPSHOT, rc0, a vendor's) doesn't take part: "3.6-IV2" is 3.6.

    >>> parse("4.10") > parse("4.9"), parse("3.6-IV2") == parse("3.6.0"), parse("4.3.1") > parse("4.3")
    (True, True, True)
    >>> parse("2.8.1.amzn-1"), parse("3.7.x"), parse("v4"), parse("trunk"), parse("3.x"), parse("3.9rc1"), parse(None)
    ((2, 8, 1), (3, 7), (4,), None, None, None, None)
    """
    match = _VERSION.fullmatch(version.strip()) if version else None
    if not match:
        return None
    numbers = [int(part) for part in match.group(1).split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def at_least(version: str | None, least: str) -> bool | None:
    """Is `version` the release `least` or later? None if it names no version.

    >>> at_least("4.10.0", "4.9"), at_least("3.6.2", "3.7"), at_least("unknown", "3.7")
    (True, False, None)
    """
    numbers, wanted = parse(version), parse(least)
    if wanted is None:
        raise ValueError(f"{least!r} is no version")
    return None if numbers is None else numbers >= wanted
