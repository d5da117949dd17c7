"""A topology as Arrow tables, one per fact table.

Everything at an `unreadable` path is NULL here, even if it is stated. An absent field has the value that its absence means in
the format. For example, an absent `consistent` is true, and a broker's version is the cluster's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue.model import CONTRADICTED, PROVIDERS
from durability.lake import tables
from durability.lake.facts import Facts
from durability.lake.partition_rows import partition_tables, replication_factors
from durability.streams.internal_topics import by_application
from durability.topology import platform, versions
from durability.topology.document import Topology
from durability.topology.observers import by_default, has_observers
from durability.topology.unreadable import pointer, tokens

CONTRADICTION = "CONTRADICTION"
"""The beginning of the reason if facts were read but contradict each other."""


def build(
    topology: Topology,
    snapshot_id: str,
    attempt_id: str,
    *,
    provider: str = "self",
    team: str | None = None,
    earlier_racks: Callable[[], Mapping[int, str]] = dict,
) -> dict[str, pa.Table]:
    """The rows of one topology by fact table name, with the columns and order of `tables.py`.

    provider: who runs the cluster. For "self" and "other", the document's provider counts if it has one.
    earlier_racks: gives racks by broker id. It is called if the rack of a broker that is down is unknown.
    """
    facts = Facts(topology)
    keys = {
        "cluster": topology.cluster,
        "captured_at": topology.captured_at,
        "snapshot_id": snapshot_id,
        "attempt_id": attempt_id,
    }
    brokers, topics = broker_rows(facts), topic_rows(facts)
    # Before grouping partitions, because a dead replica counts in the rack of its broker.
    _carry_racks(brokers, earlier_racks)
    partitions, groups = partition_tables(facts, keys, brokers)
    cluster = cluster_row(facts, _provider(facts, provider), team)
    cluster["unreadable"] += _contradictions(partitions) + _incomplete(facts, topics)
    factors = replication_factors(partitions, bool(cluster["reassignments_known"]))
    inherited = by_default(broker["configs"] for broker in brokers)
    for topic in topics:
        topic["replication_factor"] = _replication_factor(topic, factors, inherited)
    rows_of = {
        tables.CLUSTERS: [cluster],
        tables.BROKERS: brokers,
        tables.CONTROLLERS: controller_rows(facts),
        tables.TOPICS: topics,
        tables.GROUPS: group_rows(facts),
    }
    built = {t.name: pa.Table.from_pylist([keys | row for row in rows], t.arrow) for t, rows in rows_of.items()}
    return built | {tables.PARTITIONS.name: partitions, tables.PARTITION_GROUPS.name: groups}


KINDS = {"msk-express": "msk"}
"""Providers that answer like another one, so that only the clusters file can tell them apart."""


def _provider(facts: Facts, declared: str) -> str:
    """Who runs the cluster. declared: from the clusters file. The document's value may contradict it."""
    stated = _stated(facts)
    if CONTRADICTED in (declared, stated):
        return CONTRADICTED
    if declared in ("self", "other"):
        return CONTRADICTED if stated and _impossible(facts, stated) else stated or declared
    if stated == KINDS.get(declared, declared):
        return declared
    return CONTRADICTED if stated or _impossible(facts, declared) else declared


def _stated(facts: Facts) -> str | None:
    """The provider in the document. A recognized platform has precedence over the stated provider.

    A document that doesn't state its platform is recognized by what it has: the cluster's id, and names of settings.
    """
    stated = facts.cluster("provider")
    found = (facts.cluster("implementation") or {}).get("name") or _recognized(facts)
    if found not in PROVIDERS or found == KINDS.get(stated, stated):
        return stated
    return found if stated in (None, "self", "other") else CONTRADICTED


def _recognized(facts: Facts) -> str | None:
    described = chain(facts.document.get("brokers") or (), facts.document.get("topics") or ())
    settings = {name for resource in described for name in resource.get("configs") or ()}
    found = platform.recognized(facts.cluster("kafka_cluster_id"), (), settings)
    return found[0] if found else None


def _impossible(facts: Facts, declared: str) -> bool:
    """Does the cluster answer something that the declared platform can't? Such a platform makes controls inapplicable.

    Redpanda and Event Hubs have no KRaft quorum, and Event Hubs shows one broker.
    """
    kraft = bool(_quorum(facts)) and declared in ("redpanda", "event-hubs")
    return kraft or (declared == "event-hubs" and len(facts.document.get("brokers") or []) > 1)


def _replication_factor(topic: dict, factors: Mapping[str, int | None], inherited: bool) -> int | None:
    """The replicas of the topic's partition that has the fewest; None if unknown. Observers are among a partition's replicas.

    inherited: do topics without placement constraints of their own have observers?
    """
    countable = topic["partitions_known"] and not has_observers(topic["configs"], inherited)
    return factors.get(topic["topic"]) if countable else None


def _contradictions(partitions: pa.Table) -> list[dict]:
    """Entries for `unreadable`: topics with unknown parts because facts contradict each other, with the first readings."""
    found = partitions.filter(pc.is_valid(partitions["contradiction"])).select(["topic", "partition", "contradiction"])
    by_topic: dict[str, list[tuple[int, str]]] = {}
    for row in found.to_pylist():
        by_topic.setdefault(row["topic"], []).append((row["partition"], row["contradiction"]))
    entries = []
    for topic, stated in by_topic.items():
        number, reading = stated[0]
        several = f" in {len(stated)} partitions, first in {number}" if len(stated) > 1 else ""
        path: tuple[str | int, ...] = ("topics", topic, "partitions", *(() if several else (number,)))
        entries.append({"path": pointer(path), "reason": f"{CONTRADICTION}{several}: {reading}"})
    return entries


def _incomplete(facts: Facts, topics: list[dict]) -> list[dict]:
    """Entries for `unreadable`: topics of a live cluster with gaps in their partition numbers, which start at 0 in Kafka.

    Also sets `partitions_known`. A document may be an excerpt, so its gaps are accepted.
    """
    entries: list[dict] = []
    by_name = {row["topic"]: row for row in topics}
    for _, topic in facts.named("name", "topics") if facts.topology.live else ():
        numbers = sorted(partition["partition"] for partition in topic.get("partitions") or ())
        row = by_name[topic["name"]]
        if numbers != list(range(len(numbers))) and row["partitions_known"]:
            row["partitions_known"] = False
            path = pointer(("topics", topic["name"], "partitions"))
            reason = f"{CONTRADICTION}: {len(numbers)} partitions, the last of which is {numbers[-1]}"
            entries.append({"path": path, "reason": reason})
    return entries


def cluster_row(facts: Facts, provider: str, team: str | None) -> dict:
    """The row of `clusters`."""
    document, unreadable = facts.document, facts.unreadable
    mode: str | None = "kraft" if _quorum(facts) else None if _without_zookeeper(facts) else "zookeeper"
    if unreadable.covers("cluster", "quorum", "voters"):
        mode = None
    return {
        "kafka_version": facts.cluster("kafka_version"),
        "provider": provider,
        "team": team,
        "source": facts.topology.source,
        "sha256": facts.topology.sha256,
        "consistent": facts.cluster("consistent", True),
        "features": facts.cluster("features"),
        "quorum_mode": mode,
        "quorum_leader": facts.value(("cluster", "quorum"), _quorum(facts), "leader"),
        "controllers_stated": "controllers" in document["cluster"] or unreadable.touches("cluster", "controllers"),
        "controllers_known": not unreadable.touches("cluster", "controllers"),
        "brokers_known": facts.all_named("id", "brokers") and not _points_nowhere(facts, "/brokers/"),
        "topics_known": facts.all_named("name", "topics") and not _points_nowhere(facts, "/topics/"),
        "streams_known": facts.all_named("group", "streams") and facts.all_named("group", "groups"),
        "reassignments_known": not unreadable.touches("cluster", "reassignments"),
        **_declared(facts),
        "hidden_partitions": facts.cluster("hidden_partitions", None if facts.topology.live else 0),
        "kafka_cluster_id": facts.cluster("kafka_cluster_id"),
        "collection": facts.topology.collection and json.dumps(facts.topology.collection),
        "unreadable": [{"path": path, "reason": reason} for path, reason in unreadable.paths],
    }


def _points_nowhere(facts: Facts, prefix: str) -> bool:
    """Whether an unreadable path has no element in the document. Then the cluster has more than the document shows."""
    return any(path.startswith(prefix) for path in facts.unreadable.unresolved)


def _quorum(facts: Facts) -> dict:
    return facts.document["cluster"].get("quorum") or {}


def _without_zookeeper(facts: Facts) -> bool:
    """Does the version exclude ZooKeeper, although no quorum is stated? Kafka 4.0 removed it (KIP-833). MSK names its clusters in
    KRaft mode, such as 3.7.x.kraft."""
    version = facts.cluster("kafka_version")
    return bool(versions.at_least(version, "4.0")) or str(version).endswith(".kraft")


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
    version = facts.cluster("kafka_version")
    rows = []
    for place, broker in facts.named("id", "brokers"):
        rack, state = _rack(facts, place, broker)
        own = facts.value(place, broker, "kafka_version")
        version_unread = facts.unreadable.touches(*place, "kafka_version")
        configs, sources, unread = facts.configs(place, broker)
        rows.append(
            {
                "broker": broker["id"],
                "rack": rack,
                "rack_state": state,
                "described": facts.value(place, broker, "described", True),
                "live": facts.value(place, broker, "live"),
                "fenced": facts.value(place, broker, "fenced", None if facts.topology.live else False),
                "kafka_version": version if own is None and not version_unread else own,
                "max_metadata_version": facts.value(place, broker, "max_metadata_version"),
                "offline_log_dirs": _offline_log_dirs(facts, place, broker),
                "log_dirs": facts.value(place, broker, "log_dirs"),
                "future_replicas": facts.value(place, broker, "future_replicas"),
                "configs": configs,
                "config_sources": sources,
                "unreadable_configs": unread,
            }
        )
    return rows


def _offline_log_dirs(facts: Facts, place: tuple, broker: dict) -> int | None:
    """How many of a broker's log dirs are offline; None if unknown.

    A document may state the number, the log dirs, or both. If they differ, the larger number counts.
    """
    if facts.unreadable.touches(*place, "log_dirs"):
        return None
    number, dirs = (facts.value(place, broker, name) for name in ("offline_log_dirs", "log_dirs"))
    if dirs is None or facts.unreadable.touches(*place, "offline_log_dirs"):
        return number
    return max(number or 0, sum(1 for each in dirs if each.get("error")))


def _rack(facts: Facts, place: tuple, broker: dict) -> tuple[str | None, str]:
    """A broker's rack, and whether it is named, none or unknown. An empty name means none."""
    if facts.unreadable.touches(*place, "rack"):
        return None, "unknown"
    if broker.get("rack"):
        return broker["rack"], "named"
    return None, "unknown" if broker.get("described") is False else "none"


def _carry_racks(brokers: list[dict], earlier_racks: Callable[[], Mapping[int, str]]) -> None:
    """Give brokers of unknown rack that aren't known to be up the rack that they had earlier."""
    unknown = [row for row in brokers if row["rack_state"] == "unknown" and row["live"] is not True]
    racks = earlier_racks() if unknown else {}
    for row in unknown:
        if row["broker"] in racks:
            row.update(rack=racks[row["broker"]], rack_state="carried")


def named_racks(brokers: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """The racks in rows of `brokers`, by broker id."""
    return {row["broker"]: row["rack"] for row in brokers if row["rack"] is not None}


def controller_rows(facts: Facts) -> list[dict]:
    """The rows of `controllers`: quorum voters, observers and described controllers, merged by node id."""
    racks = {broker["id"]: _rack(facts, place, broker)[0] for place, broker in facts.named("id", "brokers")}
    leader_unread = facts.unreadable.touches("cluster", "quorum", "leader")
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
            led = None if leader_unread else number == _quorum(facts).get("leader")
            row = rows.setdefault(number, {"controller": number, "role": role, "leader": led})
            row["rack"] = row.get("rack") or facts.value(where, node, "rack") or racks.get(number)
            row["rack_state"] = "named" if row["rack"] else "unknown"
            if role != "controller":
                row.setdefault("lag_ms", facts.value(where, node, "lag_ms"))
                row.setdefault("caught_up", _caught_up(facts, where, node))
                row.setdefault("live", facts.value(where, node, "live"))
            else:
                row["configs"], row["config_sources"], _ = facts.configs(where, node)
    return [rows[number] for number in sorted(rows)]


def _caught_up(facts: Facts, place: tuple, member: dict) -> bool | None:
    """Has a quorum member ever caught up with the leader? None if its lag could not be read, or if there is no leader."""
    if member.get("lag_ms") is not None:
        return None if facts.unreadable.touches(*place, "lag_ms") else True
    led = _quorum(facts).get("leader") is not None and not facts.unreadable.touches("cluster", "quorum", "leader")
    return False if led and not facts.unreadable.touches(*place, "lag_ms") else None


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
    """The rows of `groups`, by name, from `streams` and `groups`.

    A group that only an unreadable path names has a row, too.
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
    """Group and reason of each unreadable path to a group in neither list.

    A group's name may be a number. A number is an index only if the list is long enough.
    """
    for path, reason in facts.unreadable.paths:
        named = tokens(path) or ()
        if len(named) > 1 and named[0] in ("streams", "groups"):
            place = facts.unreadable.places[path]
            if place is None or isinstance(place[1], str):
                yield named[1], reason


def _clients(facts: Facts, place: tuple, stream: dict) -> list[dict] | None:
    """A group's clients with their readable members; None if a client is missing."""
    if not facts.whole(*place):
        return None
    clients = [client or {} for client in stream.get("clients") or []]
    names = ("process", "tags", "active", "standby")
    return [{n: facts.value((*place, i), client, n) for n in names} for i, client in enumerate(clients)]


def _member(member: dict) -> dict:
    """A group's member with its bytes decoded. Bytes that aren't stated are NULL."""
    stated = {name: member.get(name) for name in ("member_id", "client_id", "client_host")}
    encoded = {name: member.get(name) for name in ("metadata", "assignment")}
    return stated | {name: None if text is None else base64.b64decode(text) for name, text in encoded.items()}
