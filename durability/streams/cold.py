"""The tasks of a Streams application that a lost rack leaves without a warm copy.

Kafka knows racks of brokers, not of clients. A client tag tells its rack only if the tag's values are names of brokers' racks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durability.streams.judgement import Client, clients_of, hosts_of, unknown_reason
from durability.streams.tasks import in_order


@dataclass(frozen=True)
class Cold:
    """tags: that name the clients' racks. cold: tasks whose active and standbys all run in lost racks, so they are restored from
    the changelog. unsure: tasks for which that is unknown, because a client's rack is. untold: why nothing is known; None if it
    is."""

    tags: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    untold: str | None = None


def cold_tasks(group: Mapping[str, Any], racks: Collection[str], lost: Collection[str]) -> Cold:
    """What the loss of racks does to the stateful tasks of a row of `groups` that is a Streams application.

    racks: the names of the brokers' racks. lost: those that are lost.
    """
    reason = unknown_reason(group)
    if reason:
        return Cold(untold=reason)
    clients = clients_of(group["clients"])
    hosts = hosts_of(clients, in_order(group["stateful_tasks"]))
    if not hosts:
        return Cold()
    tags = rack_tags(clients, racks)
    if not tags:
        stated = any(client.tags for client in clients)
        why = "the values of its client tags aren't names of racks" if stated else "its clients state no tags"
        return Cold(untold=why)
    places = [_rack(client, tags) for client in clients]
    cold: list[str] = []
    unsure: list[str] = []
    for task, (active, standbys) in hosts.items():
        copies = {places[n] for n in (*active, *standbys)}
        if not copies - {None, *lost}:
            (cold if active and None not in copies else unsure).append(task)
    return Cold(tags, tuple(cold), tuple(unsure))


def rack_tags(clients: Sequence[Client], racks: Collection[str]) -> tuple[str, ...]:
    """The tags whose values are all names of racks, sorted.

    >>> clients = [Client("p1", {"zone": "az1", "cell": "a"}, frozenset(), frozenset())]
    >>> rack_tags(clients, {"az1", "az2"})
    ('zone',)
    """
    values: dict[str, set[str]] = {}
    for client in clients:
        for tag, value in (client.tags or {}).items():
            values.setdefault(tag, set()).add(value)
    return tuple(sorted(tag for tag, found in values.items() if found <= set(racks)))


def _rack(client: Client, tags: Sequence[str]) -> str | None:
    """The client's rack; None if it states none, or if its tags name different racks."""
    named = {client.tags[tag] for tag in tags if tag in client.tags} if client.tags is not None else set()
    return named.pop() if len(named) == 1 else None
