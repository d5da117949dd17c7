"""The assembly: facts -> a `kafka-topology/1` document, sorted, with what could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from durability.collect.brokers import Registered, Version
from durability.collect.configs import Configs
from durability.collect.groups import Groups
from durability.collect.log_dirs import LogDirs, TopicPartition
from durability.collect.notes import Notes
from durability.collect.quorum import Member, Quorum
from durability.collect.topics import Reading
from durability.streams.groups import classic_entries
from durability.topology.document import FORMAT
from durability.topology.versions import parse

NOT_DESCRIBED = "BROKER_NOT_AVAILABLE"
FENCED = "BROKER_NOT_AVAILABLE: it is fenced"
NEVER_CAUGHT_UP = "NEVER_CAUGHT_UP: it has not caught up with the quorum's leader since that one leads"
NO_RACK = "UNKNOWN_RACK: the quorum's answer has no racks, and nothing says where this node is"
SHOWN_CHANGES = 20
# What only the broker itself says: member of the document -> member of Facts.
_ASKED = {
    "configs": "broker_configs",
    "kafka_version": "versions",
    "max_metadata_version": "versions",
    "log_dirs": "log_dirs",
    "offline_log_dirs": "log_dirs",
}


@dataclass
class Facts:
    """What was read of one cluster. By broker or topic where a mapping; absent: noted as unreadable.

    brokers None, reading None, quorum_read False: that part could not be read, as noted.
    declared: how many brokers, topics and partitions the cluster said it has, by Metadata and DescribeCluster.
    changes: what two consecutive readings still disagreed on; empty: the document is consistent.
    hidden: partitions on log dirs that metadata doesn't show; None: log dirs of a live broker couldn't be read.
    """

    cluster_id: str
    captured_at: str = ""
    brokers: list[Registered] = field(default_factory=list)
    versions: dict[int, Version] = field(default_factory=dict)
    broker_configs: dict[int, Configs] = field(default_factory=dict)
    log_dirs: dict[int, LogDirs] = field(default_factory=dict)
    reading: Reading | None = None
    topic_configs: dict[str, Configs] = field(default_factory=dict)
    quorum: Quorum | None = None
    controllers: dict[int, Configs] = field(default_factory=dict)
    groups: Groups = field(default_factory=Groups)
    declared: dict[str, int] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    hidden: int | None = None
    notes: Notes = field(default_factory=Notes)


def assemble(facts: Facts, controller_racks: Mapping[int, str]) -> dict:
    """The document. Everything is sorted, so that the same state gives the same document."""
    brokers = _brokers(facts)
    racks = {b["id"]: b["rack"] for b in brokers if b["rack"]} | dict(controller_racks)
    document = {
        "format": FORMAT,
        "cluster": _cluster(facts, racks),
        "brokers": brokers,
        "topics": _topics(facts),
        "streams": _streams(facts),
        "groups": sorted(facts.groups.rows, key=lambda g: g["group"]),
    }
    document["unreadable"] = facts.notes.listed(document)
    return document


def _streams(facts: Facts) -> list[dict]:
    """Streams groups: the classic ones from their members' bytes, those of type streams as the broker told them."""
    unread = {g["group"]: facts.notes.reason(("groups", g["group"], "members")) for g in facts.groups.rows}
    topics = facts.reading.topics if facts.reading is not None else ()
    found = classic_entries(facts.groups.rows, topics, {name: why for name, why in unread.items() if why})
    found += facts.groups.streams.values()
    for decoded in found:
        for place, reason in decoded.unread.items():
            facts.notes.add(("streams", decoded.entry["group"], *place), reason)
    return sorted((decoded.entry for decoded in found), key=lambda entry: entry["group"])


# -- Cluster -----------------------------------------------------------------------------------------------------------


def _cluster(facts: Facts, racks: Mapping[int, str]) -> dict:
    releases = [v.release for v in facts.versions.values()]
    finalized = next((v.finalized for _, v in sorted(facts.versions.items()) if v.finalized is not None), None)
    if not releases:
        facts.notes.add(("cluster", "kafka_version"), "BROKER_NOT_AVAILABLE: no broker said its version")
    if finalized is None:
        facts.notes.add(("cluster", "features"), "UNSUPPORTED_VERSION" if releases else "BROKER_NOT_AVAILABLE")
    cluster: dict[str, Any] = {
        "id": facts.cluster_id,
        "kafka_version": min(releases, key=lambda release: parse(release) or ()) if releases else None,
        "captured_at": facts.captured_at,
        "consistent": not facts.changes,
        "source": "live",
        "features": dict(sorted(finalized.items())) if finalized is not None else None,
        "quorum": _quorum(facts, racks),
        "hidden_partitions": facts.hidden,
        "declared": facts.declared,
    }
    if facts.changes:
        more = len(facts.changes) - SHOWN_CHANGES
        rest = [f"and {more} more"] if more > 0 else []
        cluster["changed_while_read"] = facts.changes[:SHOWN_CHANGES] + rest
    if ("cluster", "controllers") not in facts.notes and facts.quorum is not None:
        cluster["controllers"] = [_controller(facts, m.id, racks) for m in _sorted(facts.quorum.voters)]
    return cluster


def _sorted(members: list[Member]) -> list[Member]:
    return sorted(members, key=lambda m: m.id)


def _quorum(facts: Facts, racks: Mapping[int, str]) -> dict | None:
    quorum = facts.quorum
    if quorum is None:
        return None
    rows: dict[str, list[dict]] = {}
    for role, members in (("voters", quorum.voters), ("observers", quorum.observers)):
        rows[role] = []
        for member in _sorted(members):
            rows[role].append({"id": member.id, "rack": racks.get(member.id), "lag_ms": member.lag_ms})
            if member.lag_ms is None:
                facts.notes.add(("cluster", "quorum", role, member.id, "lag_ms"), NEVER_CAUGHT_UP)
            if member.id not in racks:
                _note_rack_of_node(facts, role, member.id)
    return {"leader": quorum.leader, **rows}


def _note_rack_of_node(facts: Facts, role: str, node: int) -> None:
    """A node without a known rack: none is configured if it is a described broker, else it is unknown."""
    if not any(b.id == node for b in facts.brokers):
        facts.notes.add(("cluster", "quorum", role, node, "rack"), NO_RACK)


def _controller(facts: Facts, node: int, racks: Mapping[int, str]) -> dict:
    row: dict = {"id": node}
    if node in racks:
        row["rack"] = racks[node]
    found = facts.controllers.get(node)
    if found is not None:
        row |= {"configs": _ordered(found.values), "config_sources": _ordered(found.sources)}
    else:
        facts.notes.add(("cluster", "controllers", node, "configs"), NOT_DESCRIBED)
    return row


# -- Brokers -----------------------------------------------------------------------------------------------------------


def _brokers(facts: Facts) -> list[dict]:
    described = {b.id: b for b in facts.brokers}
    ids = set(described)
    for topic in facts.reading.topics.values() if facts.reading else ():
        for row in topic.partitions.values():
            ids.update(row["replicas"], row["isr"], row["elr"], row["last_known_elr"], row["adding"], row["removing"])
            if row["leader"] is not None:
                ids.add(row["leader"])
    return [_broker(facts, described[i]) if i in described else _dead(facts, i) for i in sorted(ids)]


def _broker(facts: Facts, broker: Registered) -> dict:
    row: dict = {
        "id": broker.id,
        "rack": broker.rack,
        "live": broker.live,
        "fenced": broker.fenced,
        "described": True,
    }
    if broker.fenced:  # not asked, unless it was live a moment ago
        for part, read in _ASKED.items():
            if broker.id not in getattr(facts, read):
                facts.notes.add(("brokers", broker.id, part), FENCED)
    version = facts.versions.get(broker.id)
    if version is not None:
        row |= {"kafka_version": version.release, "max_metadata_version": version.max_metadata_version}
    found = facts.broker_configs.get(broker.id)
    if found is not None:
        row |= {"configs": _ordered(found.values), "config_sources": _ordered(found.sources)}
        if found.synonyms:
            row["config_synonyms"] = _ordered(found.synonyms)
    dirs = facts.log_dirs.get(broker.id)
    if dirs is not None:
        row |= {"offline_log_dirs": dirs.offline, "log_dirs": dirs.dirs}
    return row


def _dead(facts: Facts, broker: int) -> dict:
    """A broker seen only as a replica: nothing about it is known but that it isn't live."""
    for part in ("rack", *_ASKED):
        facts.notes.add(("brokers", broker, part), NOT_DESCRIBED)
    return {"id": broker, "rack": None, "live": False, "fenced": None, "described": False}


# -- Topics ------------------------------------------------------------------------------------------------------------


def _topics(facts: Facts) -> list[dict]:
    if facts.reading is None:
        return []
    rows = []
    for name, topic in sorted(facts.reading.topics.items()):
        row: dict = {"name": name, "internal": topic.internal}
        found = facts.topic_configs.get(name)
        if found is not None:
            row |= {"configs": _ordered(found.values), "config_sources": _ordered(found.sources)}
        else:
            facts.notes.add(("topics", name, "configs"), "UNKNOWN_TOPIC_OR_PARTITION")
        if topic.error or not topic.partitions:
            reason = topic.error or "UNKNOWN_TOPIC_OR_PARTITION: no partition was shown"
            facts.notes.add(("topics", name, "partitions"), reason)
        row["partitions"] = [topic.partitions[number] for number in sorted(topic.partitions)]
        for index, partition in enumerate(row["partitions"]):
            size = _bytes(facts, (name, partition["partition"]), partition["leader"])
            if size is not None:
                partition["bytes"] = size
            if partition["partition"] in topic.hidden_leaders:
                facts.notes.add(("topics", name, "partitions", index, "leader"), "LISTENER_NOT_FOUND")
        rows.append(row)
    return rows


def _bytes(facts: Facts, partition: TopicPartition, leader: int | None) -> int | None:
    dirs = facts.log_dirs.get(leader) if leader is not None else None
    return dirs.sizes.get(partition) if dirs else None


def _ordered(values: dict) -> dict:
    return dict(sorted(values.items()))
