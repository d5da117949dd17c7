"""A validated topology document and its canonical bytes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from durability.errors import BadInput

FORMAT = "kafka-topology/1"
LIVE = "live"

_DAY, _MINUTE = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}:"
RFC3339 = rf"({_DAY})[Tt]({_MINUTE})([0-9]{{2}})(?:\.([0-9]+))?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
_RFC3339 = re.compile(RFC3339)


def instant(text: str) -> datetime | None:
    """The moment of an RFC 3339 text, in UTC to the microsecond; None for other texts, also those without a zone.

    >>> instant("2026-11-21T03:00:00+01:00").isoformat()
    '2026-11-21T02:00:00+00:00'
    >>> instant("2026-11-21T03:00:00") is None
    True
    """
    match = _RFC3339.fullmatch(text)
    if not match:
        return None
    day, minutes, seconds, fraction, sign, hours_off, minutes_off = match.groups()
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    leap = seconds == "60"  # RFC 3339 allows leap seconds; datetime doesn't
    try:
        moment = datetime.fromisoformat(f"{day}T{minutes}{'59' if leap else seconds}").replace(tzinfo=UTC)
        offset = timedelta(hours=int(hours_off), minutes=int(minutes_off)) if sign else timedelta()
        if sign == "+":
            offset = -offset
        return moment + offset + timedelta(seconds=int(leap), microseconds=micros)
    except (ValueError, OverflowError):
        return None


def canonical(document: dict) -> bytes:
    """The document's canonical JSON: keys sorted, no blanks, UTF-8. Its SHA-256 is the snapshot's identity.

    >>> canonical({"b": [1, None], "a": "é"}).decode()
    '{"a":"é","b":[1,null]}'
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


@dataclass(frozen=True)
class Topology:
    """One cluster at one moment, validated.

    document: the `kafka-topology/1` document as it was read, with unknown fields.
    source: "live", or the file's name.
    sha256: of the canonical JSON, in hex.
    collection: how a live cluster was read (`durability.collect.provenance`); None for a document.
    """

    document: dict = field(repr=False)
    source: str
    sha256: str
    collection: dict | None = field(default=None, repr=False, compare=False)

    @property
    def cluster(self) -> str:
        return self.document["cluster"]["id"]

    @cached_property
    def captured_at(self) -> datetime:
        """When the cluster was read, UTC."""
        moment = instant(self.document["cluster"]["captured_at"])
        if moment is None:  # only a document that was never validated
            raise BadInput(self.source, "/cluster/captured_at", "expected an RFC 3339 time with a zone")
        return moment

    @property
    def live(self) -> bool:
        return self.source == LIVE
