"""Which clients a loss stops: groups by coordinator, tools by their topics, Streams tasks by their racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durability.report.data.losses import CLASSES, DATA, Counts, client_of
from durability.streams.cold import Cold, cold_tasks
from durability.streams.internal_topics import application_of
from durability.streams.judgement import is_streams

LISTED = 20
"""The most groups, topics, applications and tasks that are named. Others are counted."""
OFFSETS = "__consumer_offsets"
STOPPED = tuple(name for name in CLASSES if name not in (*DATA, "accepts"))
"""Classes in which a partition serves no client, or may not, worst first."""
GROUPS, STREAMS = "consumer groups", "Kafka Streams"
IDLE = ("Empty", "Dead")
CONSUMERS = (None, "", "consumer", "streams")
Group = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """What the snapshot knows of clients. groups: rows of `groups`. all_groups: were all groups listed? racks: names of the
    brokers' racks. unread: topics whose partitions could not be read."""

    groups: Sequence[Group] = ()
    all_groups: bool = True
    racks: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()


def coordinator_partition(name: str, partitions: int) -> int:
    """The partition of `__consumer_offsets` that a group's id belongs to, or of `__transaction_state` for a transactional.id.

    It is `Utils.abs(name.hashCode()) % partitions` (GroupCoordinatorService, TransactionStateManager). String.hashCode adds up
    UTF-16 units in 32 bits. Utils.abs is the absolute value, but 0 for the smallest int.

    >>> coordinator_partition("orders", 50), coordinator_partition("polygenelubricants", 50)
    (31, 0)
    """
    hashed = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    signed = hashed - (hashed >> 31 << 32)
    return 0 if signed == -(2**31) else abs(signed) % partitions


def stopped(counts: Counts, known: Known, lost_racks: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By kind of client what stops: partitions by class, of how many (`of`), their topics, and who is known to use them.

    lost_racks: racks that are lost as racks. Clients aren't brokers, so a lost broker says nothing about them.
    """
    found: dict[str, dict[str, Any]] = {}
    for who, classes in counts.clients.items():
        if classes.total():
            topics = sorted(topic for topic in counts.stopped if client_of(topic) == who)
            of = sum(counts.sizes[topic] for topic in topics)
            found[who] = {**classes, "of": of, "topics": topics[:LISTED], "topics_count": len(topics)}
    if GROUPS in found:
        found[GROUPS] |= _groups(counts, known)
    if applications := _applications(counts, known, frozenset(lost_racks)):
        named = {"applications": applications[:LISTED], "applications_count": len(applications)}
        found[STREAMS] = found.get(STREAMS, {}) | named
    return found


def _groups(counts: Counts, known: Known) -> dict[str, Any]:
    """The groups whose coordinator's partition stops, worst first, those with members before others."""
    size, classes = counts.sizes[OFFSETS], counts.stopped[OFFSETS]
    # A partition that isn't described would change every group's partition.
    complete = OFFSETS not in known.unread
    rows = []
    for group in known.groups if complete else ():
        partition = coordinator_partition(group["group"], size)
        if partition in classes:
            rows.append({"group": group["group"], "partition": partition, "now": classes[partition], **_state(group)})
    rows.sort(key=lambda row: (STOPPED.index(row["now"]), row["state"] in IDLE, row["group"]))
    return {
        "groups": rows[:LISTED],
        "groups_count": len(rows) if complete else None,
        "all_groups_known": complete and known.all_groups,
    }


def _state(group: Group) -> dict[str, Any]:
    return {name: group.get(name) for name in ("type", "state")}


def _applications(counts: Counts, known: Known, lost_racks: frozenset[str]) -> list[dict[str, Any]]:
    """The Streams applications with changelogs that stop, or with tasks that lost racks leave cold, most cold tasks first."""
    names = {group["group"] for group in known.groups}
    changelogs: dict[str, Counter[str]] = {}
    for topic, classes in counts.stopped.items():
        if client_of(topic) == STREAMS and (name := application_of(topic, names)):
            changelogs.setdefault(name, Counter()).update(classes.values())
    rows = []
    for group in known.groups:
        name = group["group"]
        streams = group.get("protocol_type") in CONSUMERS and is_streams(group)
        cold = cold_tasks(group, known.racks, lost_racks) if streams and lost_racks else Cold()
        if cold != Cold(tags=cold.tags) or name in changelogs:
            rows.append({"application": name, **_of_racks(cold), "changelogs": dict(changelogs.get(name, {}))})
    return sorted(rows, key=lambda row: (-row["cold"], row["untold"] is not None, row["application"]))


def _of_racks(cold: Cold) -> dict[str, Any]:
    return {
        "tags": list(cold.tags),
        "cold": len(cold.cold),
        "tasks": list(cold.cold[:LISTED]),
        "unsure": len(cold.unsure),
        "untold": cold.untold,
    }
