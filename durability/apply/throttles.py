"""Throttles of a batch: they name only its moving partitions and their brokers, and are put back afterwards.

A throttle is never put on where others have one. It is put back only where its value is still the one that was set here.
kafka-reassign-partitions with --verify isn't used: it deletes the throttles of others too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from durability.apply.cluster import Cluster, Reading, Resource, ResourceType, SettingChange
from durability.apply.partitions import listed
from durability.apply.record import THROTTLE, Changes, Row, is_open
from durability.apply.settings import Overrides, described, make, of_topic
from durability.apply.stop import Stopped
from durability.errors import Unreachable
from durability.plain import plain
from durability.remedies.change.model import Move, Step

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
PAUSE = 1.0
"""Seconds between two readings of others' throttles."""
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)
SETTINGS = (*RATES, *LISTS)


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


def foreign(cluster: Cluster, overrides: Overrides, rows: Mapping[str, Row], topics: Iterable[str]) -> list[str]:
    """The throttles of others: rates of brokers and of the whole cluster, and lists of these topics.

    overrides: a reading. What it shows must be in a second one, too: a broker may still show a throttle that was put back.
    """
    found = _foreign(overrides, rows, topics)
    if not found:
        return []
    time.sleep(PAUSE)
    throttled = [resource for resource, values in overrides.items() if any(name in values for name in SETTINGS)]
    again = _foreign(cluster.overrides(throttled, SETTINGS), rows, topics)
    return [text for text in found if text in again]


def _foreign(overrides: Overrides, rows: Mapping[str, Row], topics: Iterable[str]) -> list[str]:
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
        if stays := put_back(cluster, changes, rows[id], cluster.read([])):
            raise Stopped(listed(stays))
        begun = False
    if not begun:
        # Before the row is written, all that is there is others', even with the same value.
        _alone(cluster, changes, wanted, step.topics)
        was = [SettingChange(change.resource, change.name, None) for change in wanted]
        changes.intend(step.id, id, THROTTLE, step.topics, _json(was), _json(wanted))
    _alone(cluster, changes, wanted, step.topics)
    if refused := make(cluster, wanted):
        raise Stopped(f"the cluster refuses a throttle: {listed(refused)}")
    changes.done(id)


def _alone(cluster: Cluster, changes: Changes, wanted: Iterable[SettingChange], topics: Iterable[str]) -> None:
    """Raises Stopped if others have a throttle where one is wanted."""
    own = cluster.overrides(dict.fromkeys(change.resource for change in wanted))
    if others := foreign(cluster, own, changes.state(), topics):
        raise Stopped(f"others throttle its brokers or topics: {listed(others)}")


def put_back(
    cluster: Cluster, changes: Changes, row: Row, reading: Reading, recreated: Collection[str] = ()
) -> list[str]:
    """Puts a throttle back where its value is still the one of the row. Returns sentences about what stays.

    reading: a fresh one. The row stays open if a broker is down, doesn't answer or refuses. A broker that was unregistered
    doesn't come back, and only it takes its settings.
    recreated: topics that were deleted and created again. What they have is others'.
    """
    was = {(change.resource, change.name): change.value for change in _changes(row.was)}
    new = {of_topic(name) for name in recreated}
    all_of_row = [change for change in _changes(row.becomes) if change.resource not in new]
    gone = {change.resource for change in all_of_row if _is_gone(change.resource, reading)}
    ours = [change for change in all_of_row if change.resource not in gone]
    own, unread = _shown(cluster, ours, reading.live)
    back: list[SettingChange] = []
    others = [
        f"{described(broker)} isn't registered any more: its throttle is left, and limits a later broker with its id"
        for broker in sorted(gone)
    ]
    for change in ours:
        if change.resource not in own:  # it can't be read, or the topic is gone
            continue
        value, former = own[change.resource].get(change.name), was[change.resource, change.name]
        if value in (change.value, former):  # if it is the former one, ours may not be shown yet
            back.append(SettingChange(change.resource, change.name, former))
        else:
            now = "deleted" if value is None else f"set to {plain(value)}"
            others.append(f"{change.name} of {described(change.resource)} was {now} by others, and is left")
    refused = make(cluster, back)
    if refused and _are(back, cluster, reading.live):
        refused = []  # what the cluster refuses to delete, it refused to set
    stays = [f"{described(broker)} {why}: its throttle stays until the next restore" for broker, why in unread.items()]
    stays += [f"a throttle stays, because the cluster refuses to delete it: {text}" for text in refused]
    if others and not stays:
        changes.left(row.change, listed(others))
    elif not stays:
        changes.undone(row.change)
    return stays + others


def can_put_back(cluster: Cluster, row: Row, reading: Reading) -> bool:
    """Would `put_back` change a setting, or close the row? What is left may be on brokers that are down. reading: a fresh one."""
    changes = [change for change in _changes(row.becomes) if not _is_gone(change.resource, reading)]
    own, unread = _shown(cluster, changes, reading.live)
    return not unread or any(own[c.resource].get(c.name) == c.value for c in changes if c.resource in own)


def _is_gone(resource: Resource, reading: Reading) -> bool:
    return _is_broker(resource) and reading.is_gone(int(resource.name))


def _is_broker(resource: Resource) -> bool:
    return resource.type is ResourceType.BROKER


def _shown(
    cluster: Cluster, changes: Iterable[SettingChange], live: Collection[int]
) -> tuple[Overrides, dict[Resource, str]]:
    """The settings of the resources of changes, and why those of a broker can't be read."""
    resources = sorted({change.resource for change in changes})
    brokers = [resource for resource in resources if _is_broker(resource)]
    unread = {broker: "is down" for broker in brokers if int(broker.name) not in live}
    readable = [resource for resource in resources if resource not in unread]
    try:
        return cluster.overrides(readable), unread
    except Unreachable:  # one broker doesn't hide the others
        own = dict(cluster.overrides([resource for resource in readable if resource not in brokers]))
    for broker in [resource for resource in readable if resource in brokers]:
        try:
            own |= cluster.overrides([broker])
        except Unreachable:
            unread[broker] = "doesn't answer"
    return own, unread


def _are(changes: Sequence[SettingChange], cluster: Cluster, live: Collection[int]) -> bool:
    """Does the cluster show all these values?"""
    time.sleep(PAUSE)
    own, unread = _shown(cluster, changes, live)
    return not unread and all(own[c.resource].get(c.name) == c.value for c in changes if c.resource in own)


def _ours(rows: Mapping[str, Row]) -> set[tuple[Resource, str, str | None]]:
    """The values that throttles of this plan have. One that was put back counts no more: others may set its value."""
    return {
        (change.resource, change.name, change.value)
        for row in rows.values()
        if row.kind == THROTTLE and is_open(row, rows)
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
