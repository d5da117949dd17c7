"""The topology document's format, as data: `validation` checks documents by it, `durability.schemas` publishes it."""

from __future__ import annotations

import json

from durability.shapes import INT16, INT64, Constant, Flag, ListOf, MapOf, Member, Object, Shape, Text, Whole
from durability.topology.document import FORMAT, RFC3339, instant

TEXT = Text()
NAME = Text("text that isn't empty", least=1)
TOPIC_NAME = Text(
    "a topic name of Kafka's (1 to 249 of a-z A-Z 0-9 . _ -, not . or ..)",
    pattern="[a-zA-Z0-9._-]+",
    longest=249,
    but=(".", ".."),
)
TOPIC_ID = Text("an id as Kafka writes it (22 of a-z A-Z 0-9 _ -)", pattern="[a-zA-Z0-9_-]{22}")
MOMENT = Text(
    # Look-backs and pandas' nanoseconds (1677 to 2262) have to fit around it.
    "an RFC 3339 time with a zone, like 2026-11-21T02:00:00Z, of the years 2000 to 2199",
    pattern=f"(?=2[01]){RFC3339}",
    check=lambda text: instant(text) is not None,
    format="date-time",
)
POINTER = Text("a JSON Pointer like /brokers/0/configs", pattern=r"(?:/[\s\S]*)?")
BASE64 = Text(
    "bytes in base64", pattern="(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", format="base64"
)
FLAG = Flag()
ID = Whole("an integer from 0 to 2147483647")
BROKER_ID = Whole(f"a broker id ({ID.words})")
COUNT = Whole("an integer, 0 or more", high=INT64)
TEXTS = ListOf(TEXT, words="a list, each text")
CONFIGS = MapOf(TEXT, words="an object, each value text")
LEVELS = MapOf(Whole("an integer, 0 or more", high=INT16), words="an object, each value an integer, 0 or more")


def _maybe(shape: Shape, about: str = "") -> Member:
    """A member that may be missing, and null."""
    return Member(shape, optional=True, nullable=True, about=about)


_RACK = _maybe(TEXT, "null or missing: none is configured")
_SOURCES = Member(CONFIGS, optional=True, about="by setting: topic, cluster-default, broker-dynamic, broker or default")

VOTER = Object(
    "voter",
    {
        "id": Member(ID),
        "rack": _RACK,
        "lag_ms": Member(COUNT, nullable=True, about="how far behind the leader; null: never caught up with it"),
        "live": _maybe(FLAG, "whether its listener was reached; null or missing: unknown"),
    },
)
QUORUM = Object(
    "quorum",
    {
        "leader": Member(ID, nullable=True),
        "voters": Member(ListOf(VOTER, identity="id")),
        "observers": Member(ListOf(Object("observer", VOTER.members), identity="id")),
    },
)
CONTROLLER = Object(
    "controller", {"id": Member(ID), "rack": _RACK, "configs": Member(CONFIGS), "config_sources": _SOURCES}
)
DECLARED = Object("declared", {part: _maybe(COUNT) for part in ("brokers", "topics", "partitions")})
IMPLEMENTATION = Object(
    "implementation", {"name": Member(TEXT), "evidence": Member(TEXT, about="the answer that it was recognized by")}
)
CLUSTER = Object(
    "cluster",
    {
        "id": Member(NAME, vital=True, about="history and waivers go by it"),
        "kafka_version": Member(TEXT, about="like 4.3.1; of a version without numbers what depends on it is UNKNOWN"),
        "captured_at": Member(MOMENT, vital=True),
        "features": Member(LEVELS, about="finalized feature levels"),
        "quorum": Member(QUORUM, nullable=True, about="KRaft's; null with ZooKeeper"),
        "consistent": Member(FLAG, optional=True, about="false: the cluster changed while it was read"),
        "controllers": Member(ListOf(CONTROLLER, identity="id"), optional=True),
        "source": _maybe(TEXT),
        "provider": _maybe(TEXT),
        "implementation": _maybe(IMPLEMENTATION, "a platform that isn't Kafka's own code"),
        "kafka_cluster_id": _maybe(TEXT, "the id that Kafka gave the cluster, as its brokers state it"),
        "hidden_partitions": _maybe(COUNT),
        "declared": _maybe(DECLARED, "how many the cluster says it has"),
    },
)
LOG_DIR = Object(
    "log-dir",
    {"path": Member(TEXT), "error": _maybe(TEXT), "total_bytes": _maybe(COUNT), "usable_bytes": _maybe(COUNT)},
)
BROKER = Object(
    "broker",
    {
        "id": Member(ID),
        "rack": _RACK,
        "live": Member(FLAG),
        "configs": Member(CONFIGS, about="what is absent has Kafka's default for that version"),
        "config_sources": _SOURCES,
        "kafka_version": _maybe(TEXT, "the cluster's, unless stated"),
        "offline_log_dirs": _maybe(
            ID, "how many; by default those of log_dirs with an error. Not evaluated if no broker states log dirs"
        ),
        "fenced": _maybe(FLAG),
        "described": Member(FLAG, optional=True),
        "max_metadata_version": _maybe(ID),
        "log_dirs": _maybe(ListOf(LOG_DIR)),
        "future_replicas": _maybe(ID, "how many replicas are being moved to another log dir of the broker (KIP-113)"),
    },
)
MOST_REPLICAS = 1000
"""Of one partition. Lists of replicas are compared as rows of equal length, so one long list would make all rows long."""
PARTITION_LISTS = ("replicas", "isr", "elr", "last_known_elr", "adding", "removing")
_ABOUT_LISTS = {
    "replicas": "at least one, unless the topic is diskless (KIP-1150)",
    "elr": "eligible leader replicas (KIP-966)",
    "adding": "by a running reassignment",
    "removing": "by a running reassignment",
}
PARTITION = Object(
    "partition",
    {
        "partition": Member(ID),
        "leader": Member(ID, nullable=True, about="null: there is none"),
        **{
            name: Member(ListOf(BROKER_ID, most=MOST_REPLICAS), about=_ABOUT_LISTS.get(name, ""))
            for name in PARTITION_LISTS
        },
        "bytes": _maybe(COUNT, "size on disk"),
    },
)
TOPIC = Object(
    "topic",
    {
        "name": Member(TOPIC_NAME),
        "id": _maybe(TOPIC_ID, "Kafka's id; null or missing: unknown. A topic that was created again has another one"),
        "internal": Member(FLAG, about="true for Kafka's own three only"),
        "configs": Member(CONFIGS, about="what is absent comes from the brokers"),
        "config_sources": _SOURCES,
        "partitions": Member(ListOf(PARTITION, least=1, identity="partition")),
    },
)
CLIENT = Object(
    "client", {"process": Member(TEXT), "tags": Member(CONFIGS), "active": Member(TEXTS), "standby": Member(TEXTS)}
)
STREAM = Object(
    "streams-group",
    {
        "group": Member(NAME),
        "type": Member(TEXT, about="classic or streams"),
        "state": Member(TEXT),
        "in_transition": Member(FLAG),
        "stateful_tasks": Member(TEXTS),
        "clients": Member(ListOf(CLIENT)),
        **{f"{part}_version": _maybe(ID) for part in ("subscription", "assignment")},
        "internal_topics": _maybe(TEXTS),
    },
)
GROUP_MEMBER = Object(
    "group-member",
    {
        **{name: _maybe(TEXT) for name in ("member_id", "client_id", "client_host")},
        **{name: _maybe(BASE64) for name in ("metadata", "assignment")},
    },
)
GROUP = Object(
    "group",
    {
        "group": Member(TEXT),
        **{name: _maybe(TEXT) for name in ("type", "state", "protocol_type", "protocol")},
        "members": Member(ListOf(GROUP_MEMBER)),
    },
)
UNREADABLE = Object(
    "unreadable", {"path": Member(POINTER, about="what lies under it is unknown"), "reason": Member(TEXT)}
)
ROOT = Object(
    "document",
    {
        "format": Member(Constant(FORMAT), vital=True),
        "cluster": Member(CLUSTER, vital=True),
        "brokers": Member(ListOf(BROKER, identity="id"), about="every broker that a replica is on, dead ones too"),
        "topics": Member(ListOf(TOPIC, identity="name")),
        "streams": Member(ListOf(STREAM, identity="group"), optional=True, about="Kafka Streams applications"),
        "groups": Member(ListOf(GROUP, identity="group"), optional=True, about="groups as described by the cluster"),
        "unreadable": Member(ListOf(UNREADABLE), optional=True, about="what could not be read, and why"),
    },
)


def shown(value: object) -> str:
    """A value as error messages show it: its JSON type and, if it is short, the value, without unprintable characters.

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
