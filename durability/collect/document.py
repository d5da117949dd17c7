"""Builds a `kafka-topology/1` document from the facts that were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from durability.collect.brokers import Registered, Version
from durability.collect.configs import Configs
from durability.collect.groups import Groups
from durability.collect.log_dirs import LogDirs
from durability.collect.notes import Notes
from durability.collect.quorum import Member, Quorum
from durability.collect.topics import OF_ELR, Reading, Topic
from durability.streams.groups import classic_entries
from durability.topology import platform
from durability.topology.document import FORMAT
from durability.topology.kinds import PARTITION_LISTS
from durability.topology.versions import parse

NOT_DESCRIBED = "BROKER_NOT_AVAILABLE"
FENCED = "BROKER_NOT_AVAILABLE: it is fenced"
NO_LEADER = "LEADER_NOT_AVAILABLE: no controller leads, so its lag is unknown"
NO_LAG = "UNSUPPORTED_VERSION: the quorum's leader doesn't state when its members caught up"
NO_ELR = "UNSUPPORTED_VERSION: the broker doesn't state eligible leader replicas"
NO_RACK = "UNKNOWN_RACK: the quorum's answer has no racks, and neither brokers nor configuration state this node's"
OF_BROKERS = {
    "versions": ("kafka_version", "max_metadata_version"),
    "broker_configs": ("configs",),
    "log_dirs": ("log_dirs", "offline_log_dirs"),
}
"""Facts that only a broker itself states: member of Facts -> members of the document."""


@dataclass
class Facts:
    """Facts about one cluster. Brokers or topics that are missing in a mapping are noted as unreadable.

    reading, quorum: None if that part could not be read, as noted.
    declared: how many brokers, topics and partitions the cluster states, in Metadata and DescribeCluster.
    consistent: True if everything was read twice, except for noted changes. None if a further reading failed, as noted.
    unreachable: brokers that don't answer while no controller leads, which could fence them; with the reason.
    kafka_cluster_id: Kafka's id of the cluster; None if no broker stated one.
    hosts: the host names of its brokers.
    reached: whether a voter that is no broker answered, or nothing listens there. Other voters are unknown.
    setting_names: of all settings of one topic, read or not.
    hidden: partitions on log dirs that metadata doesn't show; None if log dirs of a broker couldn't be read.
    """

    cluster_id: str
    captured_at: str = ""
    brokers: list[Registered] = field(default_factory=list)
    versions: dict[int, Version] = field(default_factory=dict)
    broker_configs: dict[int, Configs] = field(default_factory=dict)
    log_dirs: dict[int, LogDirs] = field(default_factory=dict)
    reading: Reading | None = None
    topic_configs: dict[str, Configs] = field(default_factory=dict)
    setting_names: frozenset[str] = frozenset()
    quorum: Quorum | None = None
    controllers: dict[int, Configs] = field(default_factory=dict)
    reached: dict[int, bool] = field(default_factory=dict)
    groups: Groups = field(default_factory=Groups)
    declared: dict[str, int] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    consistent: bool | None = True
    unreachable: dict[int, str] = field(default_factory=dict)
    hidden: int | None = None
    kafka_cluster_id: str | None = None
    notes: Notes = field(default_factory=Notes)


def assemble(facts: Facts, controller_racks: Mapping[int, str]) -> dict:
    """The document, sorted so that the same state gives the same document. controller_racks: by node id."""
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
    """Streams groups. Classic ones are decoded from members' bytes. For groups of type streams, brokers state them."""
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
        facts.notes.add(("cluster", "kafka_version"), "BROKER_NOT_AVAILABLE: no broker stated its version")
    if finalized is None:
        facts.notes.add(("cluster", "features"), "UNSUPPORTED_VERSION" if releases else "BROKER_NOT_AVAILABLE")
    cluster: dict[str, Any] = {
        "id": facts.cluster_id,
        "kafka_version": min(releases, key=lambda release: parse(release) or ()) if releases else None,
        "captured_at": facts.captured_at,
        "source": "live",
        "kafka_cluster_id": facts.kafka_cluster_id,
        "features": dict(sorted(finalized.items())) if finalized is not None else None,
        "quorum": _quorum(facts, racks),
        "hidden_partitions": facts.hidden,
        "declared": facts.declared,
    }
    if found := _platform(facts):
        cluster["provider"], cluster["implementation"] = found[0], {"name": found[0], "evidence": found[1]}
    if facts.consistent is not None:
        cluster["consistent"] = facts.consistent
    if facts.notes.reason(("cluster", "controllers")) is None and facts.quorum is not None:
        cluster["controllers"] = [_controller(facts, m.id, racks) for m in _by_id(facts.quorum.voters)]
    return cluster


def _platform(facts: Facts) -> tuple[str, str] | None:
    described = chain(facts.broker_configs.values(), facts.topic_configs.values())
    settings = facts.setting_names.union(name for configs in described for name in configs.values)
    apis = {key: newest for version in facts.versions.values() for key, newest in version.apis.items()}
    topics = facts.reading.topics.values() if facts.reading else ()
    replicas = max((len(row["replicas"]) for topic in topics for row in topic.partitions.values()), default=0)
    return platform.recognized(
        facts.kafka_cluster_id, facts.hosts, settings, apis=apis, brokers=len(facts.brokers), replicas=replicas
    )


def _by_id(members: list[Member]) -> list[Member]:
    return sorted(members, key=lambda m: m.id)


def _quorum(facts: Facts, racks: Mapping[int, str]) -> dict | None:
    if facts.quorum is None:
        return None
    described = {broker.id for broker in facts.brokers}
    rows: dict[str, list[dict]] = {}
    for role, members in (("voters", facts.quorum.voters), ("observers", facts.quorum.observers)):
        rows[role] = []
        for member in _by_id(members):
            row = {"id": member.id, "rack": racks.get(member.id), "lag_ms": member.lag_ms}
            rows[role].append(row | ({"live": facts.reached[member.id]} if member.id in facts.reached else {}))
            # If times are known, null is a fact: the member never caught up with this leader.
            if member.lag_ms is None and not facts.quorum.times_known:
                reason = NO_LEADER if facts.quorum.leader is None else NO_LAG
                facts.notes.add(("cluster", "quorum", role, member.id, "lag_ms"), reason)
            if member.id not in racks and member.id not in described:  # a described broker without a rack has none
                facts.notes.add(("cluster", "quorum", role, member.id, "rack"), NO_RACK)
    return {"leader": facts.quorum.leader, **rows}


def _controller(facts: Facts, node: int, racks: Mapping[int, str]) -> dict:
    row: dict = {"id": node}
    if node in racks:
        row["rack"] = racks[node]
    if node in facts.controllers:
        return row | facts.controllers[node].members()
    facts.notes.add(("cluster", "controllers", node, "configs"), NOT_DESCRIBED)
    return row


# -- Brokers -----------------------------------------------------------------------------------------------------------


def _brokers(facts: Facts) -> list[dict]:
    described = {b.id: b for b in facts.brokers}
    ids = set(described)
    for topic in facts.reading.topics.values() if facts.reading else ():
        for row in topic.partitions.values():
            ids.update(*(row[name] for name in PARTITION_LISTS))
            if row["leader"] is not None:
                ids.add(row["leader"])
    return [_broker(facts, described[i]) if i in described else _dead(facts, i) for i in sorted(ids)]


def _broker(facts: Facts, broker: Registered) -> dict:
    row: dict = {
        "id": broker.id,
        "rack": broker.rack,
        "live": broker.live and broker.id not in facts.unreachable,
        "fenced": broker.fenced,
        "described": True,
    }
    for read, members in OF_BROKERS.items() if broker.fenced else ():
        if broker.id not in getattr(facts, read):  # the broker was asked if it was live a moment ago
            for name in members:
                facts.notes.add(("brokers", broker.id, name), FENCED)
    if version := facts.versions.get(broker.id):
        row |= {"kafka_version": version.release, "max_metadata_version": version.max_metadata_version}
    if configs := facts.broker_configs.get(broker.id):
        row |= configs.members()
    if dirs := facts.log_dirs.get(broker.id):
        row |= {"offline_log_dirs": dirs.offline, "log_dirs": dirs.dirs, "future_replicas": len(dirs.future)}
    return row


def _dead(facts: Facts, broker: int) -> dict:
    """A broker seen only as a replica. It isn't live, and nothing else is known about it."""
    for name in ("rack", *chain.from_iterable(OF_BROKERS.values())):
        facts.notes.add(("brokers", broker, name), NOT_DESCRIBED)
    return {"id": broker, "rack": None, "live": False, "fenced": None, "described": False}


# -- Topics ------------------------------------------------------------------------------------------------------------


def _topics(facts: Facts) -> list[dict]:
    if facts.reading is None:
        return []
    return [_topic(facts, name, topic) for name, topic in sorted(facts.reading.topics.items())]


def _topic(facts: Facts, name: str, topic: Topic) -> dict:
    row: dict = {"name": name, "internal": topic.internal} | ({"id": topic.id} if topic.id else {})
    if name in facts.topic_configs:
        row |= facts.topic_configs[name].members()
    else:
        facts.notes.add(("topics", name, "configs"), "UNKNOWN_TOPIC_OR_PARTITION")
    if topic.error or not topic.partitions:
        reason = topic.error or "UNKNOWN_TOPIC_OR_PARTITION: no partition was shown"
        facts.notes.add(("topics", name, "partitions"), reason)
    row["partitions"] = [partition for _, partition in sorted(topic.partitions.items())]
    for index, partition in enumerate(row["partitions"]):
        number, dirs = partition["partition"], facts.log_dirs.get(partition["leader"])
        if dirs and (name, number) in dirs.sizes:
            partition["bytes"] = dirs.sizes[name, number]
        if number in topic.hidden_leaders:
            facts.notes.add(("topics", name, "partitions", index, "leader"), "LISTENER_NOT_FOUND")
        if number in topic.unstated_elrs:
            for member in OF_ELR:
                facts.notes.add(("topics", name, "partitions", index, member), NO_ELR)
    return row
