"""A topology as Arrow tables, one per fact table, built column by column.

Whatever lies under an `unreadable` path is NULL here, stated or not; what the format lets out has the value that its
absence means (`consistent` is then true, a broker's version the cluster's).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from durability.lake import tables
from durability.lake.facts import Facts
from durability.lake.partition_rows import keyed, partition_table
from durability.lake.tables import Table
from durability.streams.internal_topics import by_application
from durability.topology.document import Topology
from durability.topology.unreadable import resolve, tokens


def build(
    topology: Topology,
    snapshot_id: str,
    attempt_id: str,
    *,
    provider: str = "self",
    team: str | None = None,
) -> dict[str, pa.Table]:
    """The rows of one topology, by fact table name, each with the columns of `tables.py` and sorted as it says.

    provider: who runs the cluster; where it is "self" and the document names one, the document's counts.
    """
    facts = Facts(topology)
    keys = {
        "cluster": topology.cluster,
        "captured_at": topology.captured_at,
        "snapshot_id": snapshot_id,
        "attempt_id": attempt_id,
    }
    stated, brokers, topics = facts.cluster("provider"), broker_rows(facts), topic_rows(facts)
    built = {
        tables.CLUSTERS: [cluster_row(facts, stated if provider == "self" and stated else provider, team)],
        tables.BROKERS: brokers,
        tables.CONTROLLERS: controller_rows(facts),
        tables.TOPICS: topics,
        tables.GROUPS: group_rows(facts),
    }
    result = {table.name: _from_rows(table, keys, rows) for table, rows in built.items()}
    result[tables.PARTITIONS.name] = partition_table(facts, keys, brokers, topics)
    return result


def cluster_row(facts: Facts, provider: str, team: str | None) -> dict:
    """The row of `clusters`."""
    document, unreadable = facts.document, facts.unreadable
    return {
        "kafka_version": facts.cluster("kafka_version"),
        "provider": provider,
        "team": team,
        "source": facts.topology.source,
        "sha256": facts.topology.sha256,
        "consistent": facts.cluster("consistent", True),
        "features": facts.cluster("features"),
        "quorum_mode": _quorum_mode(facts),
        "quorum_leader": _quorum(facts).get("leader")
        if not unreadable.touches("cluster", "quorum", "leader")
        else None,
        "controllers_stated": "controllers" in document["cluster"] or unreadable.touches("cluster", "controllers"),
        "controllers_known": not unreadable.touches("cluster", "controllers"),
        "brokers_known": facts.all_named("id", "brokers") and not _points_nowhere(facts, "/brokers/"),
        "topics_known": facts.all_named("name", "topics") and not _points_nowhere(facts, "/topics/"),
        "streams_known": facts.all_named("group", "streams") and facts.all_named("group", "groups"),
        "reassignments_known": not unreadable.touches("cluster", "reassignments"),
        **_declared(facts),
        "hidden_partitions": facts.cluster("hidden_partitions", None if facts.topology.live else 0),
        "unreadable": [{"path": path, "reason": reason} for path, reason in unreadable.paths],
    }


def _points_nowhere(facts: Facts, prefix: str) -> bool:
    """Is something unreadable that the document doesn't even name? Then there is more than it shows."""
    return any(path.startswith(prefix) for path in facts.unreadable.unresolved)


def _quorum(facts: Facts) -> dict:
    return facts.document["cluster"].get("quorum") or {}


def _quorum_mode(facts: Facts) -> str | None:
    unread = [("cluster", "quorum"), ("cluster", "quorum", "voters")]
    if any(facts.unreadable.covers(*place) for place in unread):
        return None
    return "kraft" if _quorum(facts) else "zookeeper"


def _declared(facts: Facts) -> dict:
    declared = facts.cluster("declared")
    if declared is None:
        topics = facts.document.get("topics") or []
        unread = any(facts.unreadable.covers("topics", index, "partitions") for index in range(len(topics)))
        declared = {
            "brokers": len(facts.document.get("brokers") or []) if facts.all_named("id", "brokers") else None,
            "topics": len(topics) if facts.all_named("name", "topics") else None,
            "partitions": None if unread else sum(len(topic["partitions"]) for topic in topics),
        }
    return {f"declared_{part}": declared.get(part) for part in ("brokers", "topics", "partitions")}


def broker_rows(facts: Facts) -> list[dict]:
    """The rows of `brokers`, by id."""
    live_source = facts.topology.live
    version = facts.cluster("kafka_version")
    rows = []
    for place, broker in facts.named("id", "brokers"):
        rack, state = _rack(facts, place, broker)
        up = facts.value(place, broker, "live")
        own = facts.value(place, broker, "kafka_version", version)
        own = version if own is None and not facts.unreadable.touches(*place, "kafka_version") else own
        configs, sources, unread = facts.configs(place, broker)
        dirs_unread = facts.unreadable.touches(*place, "log_dirs")
        rows.append(
            {
                "broker": broker["id"],
                "rack": rack,
                "rack_state": state,
                "described": facts.value(place, broker, "described", True),
                "live": up,
                "fenced": facts.value(place, broker, "fenced", None if live_source else False),
                "kafka_version": own,
                "max_metadata_version": facts.value(place, broker, "max_metadata_version"),
                "offline_log_dirs": None if dirs_unread else facts.value(place, broker, "offline_log_dirs"),
                "log_dirs": facts.value(place, broker, "log_dirs"),
                "configs": configs,
                "config_sources": sources,
                "unreadable_configs": unread,
            }
        )
    return rows


def _rack(facts: Facts, place: tuple, broker: dict) -> tuple[str | None, str]:
    """A broker's rack and whether it is named, none or unknown; an empty name configures none."""
    if facts.unreadable.touches(*place, "rack"):
        return None, "unknown"
    if broker.get("rack"):
        return broker["rack"], "named"
    return None, "unknown" if broker.get("described") is False else "none"


def unknown_racks(brokers: pa.Table) -> set[int]:
    """The brokers that are down (or can't be told to be up) and whose rack isn't known."""
    columns = (brokers[name].to_pylist() for name in ("broker", "live", "rack_state"))
    return {broker for broker, live, state in zip(*columns, strict=True) if state == "unknown" and live is not True}


def racks_of(brokers: pa.Table) -> dict[int, str]:
    """The racks that rows of `brokers` name, by broker id."""
    columns = (brokers[name].to_pylist() for name in ("broker", "rack"))
    return {broker: rack for broker, rack in zip(*columns, strict=True) if rack is not None}


def racks_named(topology: Topology) -> dict[int, str]:
    """The racks that a topology names, by broker id."""
    return {row["broker"]: row["rack"] for row in broker_rows(Facts(topology)) if row["rack"] is not None}


def carry(brokers: pa.Table, racks: dict[int, str]) -> pa.Table:
    """Rows of `brokers` in which those of `unknown_racks` have the rack given for them, marked as carried."""
    wanting = unknown_racks(brokers) & set(racks)
    ids = brokers["broker"].to_pylist()
    for name, value_of in (("rack", racks.get), ("rack_state", lambda broker: "carried")):
        column = brokers[name].to_pylist()
        carried = [value_of(broker) if broker in wanting else old for broker, old in zip(ids, column, strict=True)]
        position = brokers.schema.get_field_index(name)
        brokers = brokers.set_column(position, tables.BROKERS.arrow.field(name), pa.array(carried, pa.string()))
    return brokers


def controller_rows(facts: Facts) -> list[dict]:
    """The rows of `controllers`: quorum voters, observers and described controllers, merged by node id."""
    racks = {broker["id"]: _rack(facts, place, broker)[0] for place, broker in facts.named("id", "brokers")}
    leader_unread = facts.unreadable.touches("cluster", "quorum", "leader")
    leader = None if leader_unread else _quorum(facts).get("leader")
    rows: dict[int, dict] = {}
    for role, *place in (
        ("voter", "cluster", "quorum", "voters"),
        ("observer", "cluster", "quorum", "observers"),
        ("controller", "cluster", "controllers"),
    ):
        if facts.unreadable.covers(*place):
            continue
        for where, node in facts.named("id", *place):
            number = node["id"]
            row = rows.setdefault(
                number,
                {
                    "controller": number,
                    "role": role,
                    "leader": None if leader_unread else number == leader,
                    "rack": None,
                },
            )
            row["rack"] = row["rack"] or facts.value(where, node, "rack") or racks.get(number)
            row["rack_state"] = "named" if row["rack"] else "unknown"
            if role != "controller":
                row.setdefault("lag_ms", facts.value(where, node, "lag_ms"))
            else:
                row["configs"], row["config_sources"], _ = facts.configs(where, node)
    return [rows[number] for number in sorted(rows)]


def topic_rows(facts: Facts) -> list[dict]:
    """The rows of `topics`, by name."""
    rows = []
    for place, topic in facts.named("name", "topics"):
        configs, sources, unread = facts.configs(place, topic)
        where = (*place, "partitions")
        known = facts.all_named("partition", *where) if facts.unreadable.touches(*where) else True
        count = len(topic.get("partitions") or []) if known else None
        rows.append(
            {
                "topic": topic["name"],
                "internal": facts.value(place, topic, "internal"),
                "configs": configs,
                "config_sources": sources,
                "unreadable_configs": unread,
                "partitions_known": known,
                "declared_partitions": facts.value(place, topic, "declared_partitions", count),
            }
        )
    return rows


_STREAM = ("type", "state", "in_transition", "stateful_tasks", "subscription_version", "assignment_version")


def group_rows(facts: Facts) -> list[dict]:
    """The rows of `groups`, by name: what `streams` says of a group beside what `groups` says of it.

    A group of which the document says nothing but that it couldn't be read has a row too.
    """
    rows: dict[str, dict] = {}
    streams = facts.named("group", "streams")
    topics = (topic["name"] for _, topic in facts.named("name", "topics")) if streams else ()
    internal = by_application(topics, {stream["group"] for _, stream in streams})
    for place, stream in streams:
        row = {name: facts.value(place, stream, name) for name in (*_STREAM, "internal_topics")}
        row["clients"] = _clients(facts, (*place, "clients"), stream)
        row["unread"] = "; ".join(facts.unreadable.reasons(*place)) or None
        if row["internal_topics"] is None:
            row["internal_topics"] = internal.get(stream["group"], [])
        rows[stream["group"]] = {"group": stream["group"]} | row
    for place, group in facts.named("group", "groups"):
        row = rows.setdefault(group["group"], {"group": group["group"]})
        row["unread"] = row.get("unread") or "; ".join(facts.unreadable.reasons(*place)) or None
        for name in ("type", "state", "protocol_type", "protocol"):
            value = facts.value(place, group, name)
            row[name] = row.get(name) if value is None else value
        members = facts.value(place, group, "members")
        row["members"] = None if members is None else [_member(member) for member in members]
    for name, reason in _unlisted_groups(facts):
        rows.setdefault(name, {"group": name, "unread": reason})
    return [rows[name] for name in sorted(rows)]


def _unlisted_groups(facts: Facts) -> Iterator[tuple[str, str]]:
    """Group and reason of each unreadable path that names a group of neither list.

    A number is an index only where the list is that long: groups may be named in digits.
    """
    for path, reason in facts.unreadable.paths:
        named = tokens(path) or ()
        if len(named) > 1 and named[0] in ("streams", "groups"):
            place = resolve(facts.document, path)
            if place is None or isinstance(place[1], str):
                yield named[1], reason


def _clients(facts: Facts, place: tuple, stream: dict) -> list[dict] | None:
    """A group's clients, of each what could be read; None unless all of them are there."""
    if facts.unreadable.covers(*place) or any(isinstance(part, str) for part in facts.unreadable.parts(*place)):
        return None
    clients = [client or {} for client in stream.get("clients") or []]
    names = ("process", "tags", "active", "standby")
    return [{n: facts.value((*place, i), client, n) for n in names} for i, client in enumerate(clients)]


def _member(member: dict) -> dict:
    """A group's member with its bytes decoded; bytes that aren't stated are unknown."""
    decoded = {
        name: None if member.get(name) is None else base64.b64decode(member[name])
        for name in ("metadata", "assignment")
    }
    return {**{name: member.get(name) for name in ("member_id", "client_id", "client_host")}, **decoded}


def _from_rows(table: Table, keys: dict, rows: list[dict]) -> pa.Table:
    """Few rows as an Arrow table; a column that a row leaves out is NULL in it."""
    kinds = dict(table.columns)
    columns = {
        name: pa.array([_arrow(row.get(name), kind) for row in rows], kind)
        for name, kind in kinds.items()
        if name not in keys
    }
    return keyed(table, keys, columns, len(rows))


def _arrow(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow wants it: maps as pairs, also inside lists of objects."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return sorted(value.items())
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return [
            {field.name: _arrow(element.get(field.name), field.type) for field in kind.value_type} for element in value
        ]
    return value
