"""Kafka's own commands that show the facts of a snapshot again, for an auditor who reperforms it."""

from __future__ import annotations

import shlex

from durability.remedies.commands import BOOTSTRAP, ZOOKEEPER
from durability.topology.versions import at_least

# What a command shows, the first release that has it, the command.
_COMMANDS = (
    ("the cluster's id", "2.8", f"kafka-cluster cluster-id {BOOTSTRAP}"),
    ("brokers, and the APIs of each with versions", "0.10.2", f"kafka-broker-api-versions {BOOTSTRAP}"),
    ("topics and partitions: leader, replicas, ISR", "2.2", f"kafka-topics {BOOTSTRAP} --describe"),
    ("settings of topics", "2.5", f"kafka-configs {BOOTSTRAP} --describe --all --entity-type topics"),
    ("settings of brokers", "2.5", f"kafka-configs {BOOTSTRAP} --describe --all --entity-type brokers"),
    ("log dirs, and the partitions in them", "1.0", f"kafka-log-dirs {BOOTSTRAP} --describe"),
    ("running reassignments", "2.6", f"kafka-reassign-partitions {BOOTSTRAP} --list"),
    ("members of groups", "2.5", f"kafka-consumer-groups {BOOTSTRAP} --describe --all-groups --members --verbose"),
)
_OF_KRAFT = (
    ("the quorum's voters and their lag", "3.3", f"kafka-metadata-quorum {BOOTSTRAP} describe --replication"),
    ("finalized features", "3.3", f"kafka-features {BOOTSTRAP} describe"),
)
_BY_ZOOKEEPER = {"2.2": f"kafka-topics {ZOOKEEPER} --describe"}


def commands(kafka_version: str | None, kraft: bool | None = None) -> list[dict[str, str]]:
    """What each command `shows`, and the `command`. If the release isn't known, those of today's release.

    kraft: does the cluster have a KRaft quorum? None if that isn't known.

    >>> [c["shows"] for c in commands("2.1.0")][-1], len(commands("4.3.1", True)) - len(commands("4.3.1", False))
    ('log dirs, and the partitions in them', 2)
    """
    found = []
    for shows, since, command in (*_COMMANDS, *(() if kraft is False else _OF_KRAFT)):
        known: str | None = command
        if at_least(kafka_version, since) is False:
            known = _BY_ZOOKEEPER.get(since)
        if known:
            found.append({"shows": shows, "command": known})
    return found


def of_resource(
    kind: str, name: str, kafka_version: str | None, kraft: bool | None = None, live: bool | None = None
) -> list[dict[str, str]]:
    """The commands that show one resource again: what each `shows`, and the `command`. Names are quoted for a shell.

    kind: resource_type of a finding. A waiver has none, nor has a name that a terminal can't show.
    live: is the broker up? A broker that is down answers no question about itself.

    >>> [c["command"] for c in of_resource("topic", "a b", "4.3.1")][0]
    'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --topic \\'a b\\''
    """
    if not name.isprintable():
        return []
    word, since = shlex.quote(name), {"topics": "2.2", "configs": "2.5"}
    server = {
        tool: ZOOKEEPER if at_least(kafka_version, first) is False else BOOTSTRAP for tool, first in since.items()
    }
    everything = "" if server["configs"] == ZOOKEEPER else " --all"
    racks = {"shows": "brokers that are up, with their racks", "command": f"kafka-broker-api-versions {BOOTSTRAP}"}
    if kind == "topic":
        return [
            {
                "shows": "leader, replicas and ISR of its partitions",
                "command": f"kafka-topics {server['topics']} --describe --topic {word}",
            },
            {
                "shows": "its settings and their sources",
                "command": f"kafka-configs {server['configs']} --describe{everything} --entity-type topics --entity-name {word}",
            },
            racks,
        ]
    if kind == "tier" or (kind == "broker" and live is False):
        return [racks]
    if kind == "broker":
        settings = f"--describe{everything} --entity-type brokers --entity-name {word}"
        of_disks = f"kafka-log-dirs {BOOTSTRAP} --describe --broker-list {word}"
        log_dirs = [{"shows": "its log dirs, and the errors of offline ones", "command": of_disks}]
        return [
            racks,
            {"shows": "its settings and their sources", "command": f"kafka-configs {server['configs']} {settings}"},
            *(log_dirs if at_least(kafka_version, "1.0") is not False else ()),
        ]
    if kind == "application":
        members = f"kafka-consumer-groups {BOOTSTRAP} --describe --group {word} --members --verbose"
        return [{"shows": "its members", "command": members}]
    return commands(kafka_version, kraft) if kind == "cluster" else []
