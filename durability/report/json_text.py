"""JSON of one line. msgspec takes an eighth of the time of `json`, which a report of 160,000 findings needs."""

from __future__ import annotations

import json

import msgspec

_encode = msgspec.json.Encoder().encode


def compact(value: object) -> str:
    """A value as JSON without spaces. A number that JSON doesn't have (NaN, infinity) becomes null.

    >>> compact({"resource": "é", "partitions": [0, 4]})
    '{"resource":"é","partitions":[0,4]}'
    """
    return _encode(value).decode()


def compact_ascii(value: object) -> str:
    """`compact` with other characters as escapes, for readers that split lines at U+2028.

    >>> compact_ascii({"resource": "é", "share": float("nan")}), compact_ascii("orders")
    ('{"resource":"\\\\u00e9","share":null}', '"orders"')
    """
    text = compact(value)
    return text if text.isascii() else json.dumps(json.loads(text), separators=(",", ":"))
