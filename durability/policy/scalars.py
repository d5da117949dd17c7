"""Kinds of text that only the policy files have: durations, days, moments, expressions and short names."""

from __future__ import annotations

from dataclasses import dataclass

from durability.shapes import Text

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Duration(Text):
    """A length of time: a whole number and s, m, h or d. It can be subtracted from any moment that the formats accept."""

    words: str = "a duration such as 10s, 30m, 6h or 1d, 36500d at most"
    longest: int | None = 7
    pattern: str | None = (
        "0*(?:[1-9][0-9]*[smh]|(?:[1-9][0-9]{0,3}|[1-2][0-9]{4}|3(?:[0-5][0-9]{3}|6(?:[0-4][0-9]{2}|500)))d)"
    )


@dataclass(frozen=True)
class Day(Text):
    """A day, YYYY-MM-DD."""

    words: str = "a day such as 2027-01-31"
    pattern: str | None = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    format: str | None = "date"


@dataclass(frozen=True)
class Moment(Text):
    """A moment with its time zone, RFC 3339; seconds are optional, and a blank may replace the T."""

    words: str = "a moment such as 2026-11-21T01:00:00Z, of the years 1970 to 9999"
    pattern: str | None = (
        "(?:19[7-9][0-9]|[2-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
        "[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
    )


@dataclass(frozen=True)
class Expression(Text):
    """An RE2 expression that has to match the whole of a value."""

    blank: bool = False


@dataclass(frozen=True)
class ShortName(Text):
    """A name that options and file names have."""

    words: str = "a short name such as soc2, of lower-case letters, digits, dots and hyphens"
    pattern: str | None = "[a-z0-9][a-z0-9.-]{0,39}"


DURATION, EXPRESSION = Duration(), Expression()
DAYS = Duration(
    "whole days such as 90d, 36500d at most",
    pattern="0*(?:[1-9][0-9]{0,3}|[1-2][0-9]{4}|3(?:[0-5][0-9]{3}|6(?:[0-4][0-9]{2}|500)))d",
)
RELATIVE = {
    "all": Text("all (the replication factor)", pattern="all"),
    "rf-N": Text("rf-N (the replication factor minus N, such as rf-1)", pattern="rf-[1-9][0-9]{0,3}"),
}
"""Numbers relative to a topic's replication factor, by their form in the catalogue."""
UP_TO_30_MINUTES = Duration(
    "a duration such as 10s or 5m, 30m at most",
    pattern="0*(?:(?:[1-9][0-9]{0,2}|1[0-7][0-9]{2}|1800)s|(?:[1-9]|[1-2][0-9]|30)m)",
)
_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+"
_REGION = Text("a region such as eu-west-1", pattern="[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]")
_ONE_LINE = Text("text of one line", pattern=r"[^\r\n]+")
AWS = {
    "aws.region": _REGION,
    "aws.profile": _ONE_LINE,
    "aws.role.arn": Text("a role such as arn:aws:iam::123456789012:role/audit", pattern=_ROLE),
    "aws.role.session.name": Text("2 to 64 letters, digits and any of _+=,.@-", pattern="[A-Za-z0-9_+=,.@-]{2,64}"),
    "aws.role.external.id": _ONE_LINE,
    "aws.sts.region": _REGION,
}
"""Whose identity AWS is asked with, by key of a Connection's extra or of an inventory in the clusters file."""
S3_ADDRESS = Text(
    "an address such as s3://bucket/prefix",
    pattern="s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9!_.*'()=-]+)*/?",
)
