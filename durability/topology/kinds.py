"""What the members of a topology document are made of."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from durability.topology.document import instant

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """A kind of value: how it is called, whether a value is one, and for lists and maps the kind of their elements."""

    text: str
    fits: Callable[[object], bool]
    element: Kind | None = None


@dataclass(frozen=True)
class Member:
    """A member of an object. optional: may be missing; nullable: may be null."""

    kind: Kind
    optional: bool = False
    nullable: bool = False


def _integer(bits: int) -> Callable[[object], bool]:
    most = 2 ** (bits - 1) - 1
    return lambda value: type(value) is int and 0 <= value <= most


def _list_of(kind: Kind) -> Kind:
    return Kind(f"a list, each {kind.text}", lambda v: type(v) is list and all(map(kind.fits, v)), kind)


def _map_of(kind: Kind) -> Kind:
    return Kind(
        f"an object, each value {kind.text}", lambda v: isinstance(v, dict) and all(map(kind.fits, v.values())), kind
    )


def _is_base64(value: object) -> bool:
    try:
        return type(value) is str and base64.b64decode(value, validate=True) is not None
    except (binascii.Error, ValueError):
        return False


TEXT = Kind("text", lambda v: type(v) is str)
NAME = Kind("text that isn't empty", lambda v: type(v) is str and v != "")
TOPIC = Kind(
    "a topic name of Kafka's (1 to 249 of a-z A-Z 0-9 . _ -, not . or ..)",
    lambda v: type(v) is str and bool(_TOPIC.fullmatch(v)) and v not in (".", ".."),
)
MOMENT = Kind(
    "an RFC 3339 time with a zone, like 2026-11-21T02:00:00Z",
    lambda v: type(v) is str and instant(v) is not None,
)
FLAG = Kind("true or false", lambda v: type(v) is bool)
ID = Kind("an integer from 0 to 2147483647", _integer(32))
COUNT = Kind("an integer, 0 or more", _integer(64))
OBJECT = Kind("an object", lambda v: isinstance(v, dict))
LIST = Kind("a list", lambda v: type(v) is list)
BASE64 = Kind("bytes in base64", _is_base64)
TEXTS = _list_of(TEXT)
CONFIGS = _map_of(TEXT)
LEVELS = _map_of(Kind("an integer, 0 or more", _integer(16)))

ROOT = {
    "format": Member(TEXT),
    "cluster": Member(OBJECT),
    "brokers": Member(LIST),
    "topics": Member(LIST),
    "streams": Member(LIST, optional=True),
    "groups": Member(LIST, optional=True),
    "unreadable": Member(LIST, optional=True),
}
UNREADABLE = {"path": Member(TEXT), "reason": Member(TEXT)}
CLUSTER = {
    "id": Member(NAME),
    "kafka_version": Member(TEXT),
    "captured_at": Member(MOMENT),
    "features": Member(LEVELS),
    "quorum": Member(OBJECT, nullable=True),
    "consistent": Member(FLAG, optional=True),
    "controllers": Member(LIST, optional=True),
    "source": Member(TEXT, optional=True, nullable=True),
    "provider": Member(TEXT, optional=True, nullable=True),
    "hidden_partitions": Member(COUNT, optional=True, nullable=True),
    "declared": Member(OBJECT, optional=True, nullable=True),
}
DECLARED = {part: Member(COUNT, optional=True, nullable=True) for part in ("brokers", "topics", "partitions")}
QUORUM = {"leader": Member(ID, nullable=True), "voters": Member(LIST), "observers": Member(LIST)}
VOTER = {
    "id": Member(ID),
    "rack": Member(TEXT, optional=True, nullable=True),
    "lag_ms": Member(COUNT, nullable=True),
}
CONTROLLER = {
    "id": Member(ID),
    "rack": Member(TEXT, optional=True, nullable=True),
    "configs": Member(CONFIGS),
    "config_sources": Member(CONFIGS, optional=True),
}
BROKER = {
    "id": Member(ID),
    "rack": Member(TEXT, optional=True, nullable=True),
    "live": Member(FLAG),
    "configs": Member(CONFIGS),
    "config_sources": Member(CONFIGS, optional=True),
    "kafka_version": Member(TEXT, optional=True, nullable=True),
    "offline_log_dirs": Member(ID, optional=True, nullable=True),
    "fenced": Member(FLAG, optional=True, nullable=True),
    "described": Member(FLAG, optional=True),
    "max_metadata_version": Member(ID, optional=True, nullable=True),
    "log_dirs": Member(LIST, optional=True, nullable=True),
}
LOG_DIR = {
    "path": Member(TEXT),
    "error": Member(TEXT, optional=True, nullable=True),
    "total_bytes": Member(COUNT, optional=True, nullable=True),
    "usable_bytes": Member(COUNT, optional=True, nullable=True),
}
TOPIC_MEMBERS = {
    "name": Member(TOPIC),
    "internal": Member(FLAG),
    "configs": Member(CONFIGS),
    "config_sources": Member(CONFIGS, optional=True),
    "partitions": Member(LIST),
}
PARTITION_LISTS = ("replicas", "isr", "elr", "last_known_elr", "adding", "removing")
PARTITION = {
    "partition": Member(ID),
    "leader": Member(ID, nullable=True),
    **{name: Member(LIST) for name in PARTITION_LISTS},
    "bytes": Member(COUNT, optional=True, nullable=True),
}
STREAM = {
    "group": Member(NAME),
    "type": Member(TEXT),
    "state": Member(TEXT),
    "in_transition": Member(FLAG),
    "stateful_tasks": Member(TEXTS),
    "clients": Member(LIST),
    **{f"{part}_version": Member(ID, optional=True, nullable=True) for part in ("subscription", "assignment")},
    "internal_topics": Member(TEXTS, optional=True, nullable=True),
}
CLIENT = {"process": Member(TEXT), "tags": Member(CONFIGS), "active": Member(TEXTS), "standby": Member(TEXTS)}
GROUP = {
    "group": Member(TEXT),
    **{name: Member(TEXT, optional=True, nullable=True) for name in ("type", "state", "protocol_type", "protocol")},
    "members": Member(LIST),
}
GROUP_MEMBER = {
    **{name: Member(TEXT, optional=True, nullable=True) for name in ("member_id", "client_id", "client_host")},
    **{name: Member(BASE64, optional=True, nullable=True) for name in ("metadata", "assignment")},
}


def shown(value: object) -> str:
    """A value as an error message shows it: its JSON type and, where short, the value, with nothing unprintable.

    >>> shown(True), shown("3"), shown([1]), shown(None)
    ('true', 'the text "3"', 'a list', 'null')
    """
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return "the text " + (json.dumps(value) if len(value) <= 60 else json.dumps(value[:57] + "..."))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 200 else "an integer of many digits"
    return f"the number {text}" if isinstance(value, int | float) else f"{text[:60]}"
