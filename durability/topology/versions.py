"""Kafka versions: the Apache release that a text names, in the numbering of Apache or of a vendor.

Vendors append to Apache's numbers (2.8.2.tiered, 3.6.0.redhat-00007, 2.0.0-cp1), or number releases themselves: Confluent
Platform 7.6.0 is Apache Kafka 3.6. The majors of both don't overlap so far, because Apache's newest is 4.

Source of Confluent's numbers: https://docs.confluent.io/platform/current/installation/versions-interoperability.html. Confluent's
builds of Kafka have them since 5.x, with -ccs or -ce. Before that their suffix was -cp1, and the numbers were Apache's.
"""

from __future__ import annotations

import re

_APACHE_BUILD = r"[5-9][\d.]*-(?:SNAPSHOT|IV\d|rc\d)"
"""A build of an Apache release that has a major of Confluent's. Which release follows is unknown, so it names none."""
_TOO_OLD_FOR_CCS = r"[34][\d.]*-c(?:cs|e)\b"
"""-ccs or -ce with a major that both have: it may be either."""
PATTERN = rf"v?(?!{_APACHE_BUILD}|{_TOO_OLD_FOR_CCS})(\d{{1,6}}(?:\.\d{{1,6}}){{1,3}}|[48](?![.\d]))(?:[-.+](.*))?"
"""A version with its numbers as the first group. It is also a regular expression of Java. A text without a minor, such as 3.x,
names no release, unless all minors of that major follow the newest release that a rule compares with."""
_VERSION = re.compile(PATTERN, re.ASCII | re.DOTALL)
NUMBERED_1_OR_LATER = r"\s*v?[1-9]\d*(?:\..*|\D.*)?"
"""A text whose major is at least 1, even if it names no release. No numbering has such a major for a Kafka before 0.11."""

NEWEST = 999
FIRST_RELEASES: dict[str, tuple[int, int]] = {
    **{"0": (0, 11), "1": (1000, 1), "2": (2000, 8), "3": (3000, 9), "4": (4000, NEWEST)},
    **{"5": (2000, 5), "6": (2006, 2), "7": (3000, 9), "8": (4000, NEWEST)},
}
"""By major: the Apache release of minor 0, as its major * 1000 + minor, and the last minor. The second line is Confluent's."""


def release_number(version: str | None) -> int | None:
    """The Apache release that a version names, as major * 1000 + minor; None if it names none.

    >>> release_number("4.10"), release_number("0.10.2.1"), release_number("2.8.2.tiered"), release_number("3.7.x.kraft")
    (4010, 10, 2008, 3007)
    >>> release_number("7.3.3-ccs"), release_number("7.6.0-ce"), release_number("6.1.0"), release_number("2.0.0-cp1")
    (3003, 3006, 2007, 2000)
    >>> [release_number(v) for v in ("trunk", "3.x", "3.9rc1", "5.0.0-SNAPSHOT", "v21.6.1", "2.9", "4.1.0-ce", None)]
    [None, None, None, None, None, None, None, None]
    """
    numbers = _stated(version)
    if not numbers:
        return None
    first, last_minor = FIRST_RELEASES.get(str(numbers[0]), (0, -1))
    return first + numbers[1] if numbers[1] <= last_minor else None


def _stated(version: str | None) -> list[int]:
    """The version's numbers, at least two. Empty if it doesn't match PATTERN."""
    match = _VERSION.fullmatch(version.strip()) if version else None
    numbers = [int(part) for part in match.group(1).split(".")] if match else []
    return [*numbers, 0] if len(numbers) == 1 else numbers


def parse(version: str | None) -> tuple[int, ...] | None:
    """The numbers of the Apache release that a version names, without trailing zeros; None if it names none.

    Of a vendor's own number only major and minor are known. A suffix after `-`, `+` or a dot (IV2, SNAPSHOT, rc0, a vendor's)
    doesn't take part: "3.6-IV2" is 3.6, and 4.3 equals 4.3.0.

    >>> parse("4.10") > parse("4.9"), parse("3.6-IV2") == parse("3.6.0"), parse("4.3.1") > parse("4.3")
    (True, True, True)
    >>> parse("2.8.1.amzn-1"), parse("3.7.x"), parse("v4"), parse("7.6.1-ce"), parse("trunk"), parse(None)
    ((2, 8, 1), (3, 7), (4,), (3, 6), None, None)
    """
    release = release_number(version)
    if release is None:
        return None
    stated, numbers = _stated(version), [release // 1000, release % 1000]
    if stated[:2] == numbers:
        numbers = stated
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def at_least(version: str | None, least: str) -> bool | None:
    """Is `version` the release `least` or later? None if it names no version.

    >>> at_least("4.10.0", "4.9"), at_least("3.6.2", "3.7"), at_least("7.6.0-ccs", "3.7"), at_least("unknown", "3.7")
    (True, False, False, None)
    """
    numbers, wanted = parse(version), parse(least)
    if wanted is None:
        raise ValueError(f"{least!r} is no version")
    return None if numbers is None else numbers >= wanted
