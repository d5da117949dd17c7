"""Throttles of a batch: they name only its moving partitions and their brokers, and are put back afterwards.

A throttle is never put on where others have one. It is put back only where its value is still the one that was set here.
kafka-reassign-partitions with --verify isn't used: it deletes the throttles of others too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from durability.apply.cluster import Cluster, Resource, ResourceType, SettingChange
from durability.apply.partitions import listed
from durability.apply.record import THROTTLE, Changes, Row, is_open
from durability.apply.settings import Overrides, described, make, of_topic
from durability.apply.stop import Stopped
from durability.plain import plain
from durability.remedies.change.model import Move, Step

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)


def of_moves(moves: Iterable[Move], rate: int) -> list[SettingChange]:
    """The throttles of moves. Those that copy nothing need none. rate: bytes per second and broker.

    >>> for change in of_moves([Move("t", 0, (1, 2), (3, 2))], 500): print(change.resource.name, change.name, change.value)
    1 leader.replication.throttled.rate 500
    2 leader.replication.throttled.rate 500
    3 follower.replication.throttled.rate 500
    t leader.replication.throttled.replicas 0:1,0:2
    t follower.replication.throttled.replicas 0:3
    """
    rates: dict[tuple[int, str], str] = {}
    lists: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for move in moves:
        if move.added:
            for name, setting, brokers in (
                (LEADER_RATE, LEADER_REPLICAS, move.before),
                (FOLLOWER_RATE, FOLLOWER_REPLICAS, move.added),
            ):
                rates |= {(broker, name): str(rate) for broker in brokers}
                lists[move.topic, setting] += [f"{move.partition}:{broker}" for broker in brokers]
    of_brokers = [
        SettingChange(Resource(ResourceType.BROKER, str(broker)), name, value)
        for (broker, name), value in sorted(rates.items())
    ]
    return of_brokers + [
        SettingChange(of_topic(topic), name, ",".join(values)) for (topic, name), values in lists.items()
    ]


def foreign(overrides: Overrides, rows: Mapping[str, Row], topics: Iterable[str]) -> list[str]:
    """The throttles of others: rates of brokers and of the whole cluster, and lists of these topics."""
    ours, lists = _ours(rows), {of_topic(name) for name in topics}
    return [
        f"{described(resource)} has {name}={plain(value)}, which this plan didn't set"
        for resource, values in sorted(overrides.items())
        for name, value in sorted(values.items())
        if (name in RATES or (name in LISTS and resource in lists)) and (resource, name, value) not in ours
    ]


def put_on(cluster: Cluster, changes: Changes, step: Step, rate: int) -> None:
    """Throttles the moves of a step. A throttle of an earlier run with another rate is put back first.

    Raises Stopped if others have a throttle there, or if the cluster refuses this one.
    """
    id, wanted = f"{THROTTLE}:{step.id}", of_moves(step.moves, rate)
    if not wanted:
        return
    rows = changes.state()
    begun = id in rows and is_open(rows[id], rows)
    if begun and rows[id].becomes != _json(wanted):
        if stays := put_back(cluster, changes, rows[id], cluster.read([]).live):
            raise Stopped(listed(stays))
        begun = False
    if not begun:
        was = [SettingChange(change.resource, change.name, None) for change in wanted]
        changes.intend(step.id, id, THROTTLE, step.topics, _json(was), _json(wanted))
    own = cluster.overrides(dict.fromkeys(change.resource for change in wanted))
    if others := foreign(own, changes.state(), step.topics):
        raise Stopped(f"others throttle brokers or topics of this step: {listed(others)}")
    if refused := make(cluster, wanted):
        raise Stopped(f"the cluster refuses a throttle: {listed(refused)}")
    changes.done(id)


def put_back(cluster: Cluster, changes: Changes, row: Row, live: frozenset[int]) -> list[str]:
    """Puts a throttle back where its value is still the one of the row. Returns sentences about what stays.

    live: brokers whose settings can be read. The row stays open if a broker is down or refuses.
    """
    was = {(change.resource, change.name): change.value for change in _changes(row.was)}
    ours = _changes(row.becomes)
    down = {c.resource for c in ours if c.resource.type is ResourceType.BROKER and int(c.resource.name) not in live}
    own = cluster.overrides(dict.fromkeys(c.resource for c in ours if c.resource not in down))
    back, others = [], []
    for change in ours:
        if change.resource not in own:  # the broker is down, or the topic is gone
            continue
        value, former = own[change.resource].get(change.name), was[change.resource, change.name]
        if value == change.value:
            back.append(SettingChange(change.resource, change.name, former))
        elif value != former:
            now = "deleted" if value is None else f"set to {plain(value)}"
            others.append(f"{change.name} of {described(change.resource)} was {now} by others, and is left")
    stays = [f"{described(resource)} is down: its throttle stays until the next restore" for resource in sorted(down)]
    stays += [f"a throttle stays, because the cluster refuses to delete it: {text}" for text in make(cluster, back)]
    if others and not stays:
        changes.left(row.change, listed(others))
    elif not stays:
        changes.undone(row.change)
    return stays + others


def _ours(rows: Mapping[str, Row]) -> set[tuple[Resource, str, str | None]]:
    """The values that throttles of this plan have, or had: a broker may show an old one for a while."""
    return {
        (change.resource, change.name, change.value)
        for row in rows.values()
        if row.kind == THROTTLE
        for change in _changes(row.becomes)
    }


def _json(changes: Sequence[SettingChange]) -> list[dict[str, Any]]:
    return [
        {"type": str(c.resource.type), "name": c.resource.name, "setting": c.name, "value": c.value} for c in changes
    ]


def _changes(rows: Iterable[Mapping[str, Any]]) -> list[SettingChange]:
    return [
        SettingChange(Resource(ResourceType(row["type"]), row["name"]), row["setting"], row["value"]) for row in rows
    ]
