"""Takes back what is left of a run that stopped or was killed: moves in flight, settings on the way, and throttles.

What is complete stays. So does a topic that was deleted and created again: it isn't the one that was changed. It needs only the
rows of `changes`, not the plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from durability.apply import throttles
from durability.apply.cluster import Cluster, Reading, Replicas, SettingChange, TopicPartition
from durability.apply.partitions import Place, elr_at_risk, listed, named, out_of_sync, place, recreated
from durability.apply.record import (
    ELECT,
    INTENDED,
    REASSIGN,
    SET_CONFIG,
    STOP,
    THROTTLE,
    Changes,
    Row,
    is_open,
    on_the_way,
    topic_ids,
)
from durability.apply.recorded import same_cluster
from durability.apply.settings import Key, described, make, of_topic, values
from durability.errors import Unreachable
from durability.plain import plain
from durability.remedies.change.model import MIN_ISR

LOOKS, PAUSE = 10, 1.0
"""How often to look whether moves are cancelled, and seconds between two looks. A broker may show an old state for a while."""
ORDER = (REASSIGN, ELECT, SET_CONFIG, THROTTLE)
"""Kinds of changes, in the order in which they are taken back: a move is throttled until it is cancelled. Of one kind, the newest
comes first: it may turn out to be complete, and then an earlier value isn't put back."""
RECREATED = "topic {} was recreated since it was changed, and is left"
FEWER = "without the replicas that are added, fewer would be in sync than acks=all requires"


def take_back(cluster: Cluster, changes: Changes) -> list[str]:
    """Takes back all open changes. Returns sentences about what stays, and why. A stop stays open: `run.restore` ends it.

    It can be repeated. Raises Unreachable if no controller leads: nothing can be changed then. Raises Refused for another cluster
    than the one that was changed.
    """
    rows = changes.state()
    opened = [row for row in rows.values() if is_open(row, rows) and row.kind != STOP]
    if not opened:
        return []
    ids = topic_ids(rows)
    reading = cluster.read({topic for row in opened for topic in row.topics})
    same_cluster(changes, reading.cluster_id)
    if not reading.led:
        raise Unreachable(
            f"cluster {changes.cluster}: no controller leads, so nothing can be taken back. Try again later"
        )
    left: list[str] = []
    for row in sorted(opened, key=lambda row: (-ORDER.index(row.kind), row.captured_at), reverse=True):
        rows = changes.state()
        if not is_open(row, rows):
            continue  # a later change of the same values turned out to be complete
        if row.kind == REASSIGN:
            left += _moves(cluster, changes, row, ids)
        elif row.kind == SET_CONFIG:
            left += _settings(cluster, changes, row, rows, ids)
        elif row.kind == THROTTLE:
            left += throttles.put_back(cluster, changes, row, reading, recreated(ids, reading))
        else:
            changes.undone(row.change, "an election isn't taken back")
    return left


def _moves(cluster: Cluster, changes: Changes, row: Row, ids: Mapping[str, str]) -> list[str]:
    """Cancels the moves of a row that run. Partitions that were moved stay.

    A cancellation leaves the former replicas, with those last that were to go. A second reassignment, which copies nothing,
    restores their order, and so the preferred leader.
    """
    before, after = ({_name(p): p["replicas"] for p in side["placements"]} for side in (row.was, row.becomes))
    errors: Mapping[TopicPartition, str] = {}
    cancelled: set[TopicPartition] = set()
    earlier: set[TopicPartition] = set()
    for look in range(LOOKS + 1):
        reading = cluster.read(row.topics)
        others = recreated({topic: ids[topic] for topic in row.topics if topic in ids}, reading)
        now = {name: replicas for name, replicas in reading.partitions.items() if name.topic not in others}
        places = {name: place(now[name], before[name], after[name]) for name in after if name in now}
        running = [name for name, where in places.items() if where is Place.RUNNING]
        clean = [name for name in running if _clean(now[name], row.was.get("min_isr", {}).get(name.topic))]
        reverted = {name for name, where in places.items() if where is Place.REVERTED}
        back: dict[TopicPartition, list[int] | None] = {
            **dict.fromkeys(clean),
            **{name: before[name] for name in sorted(reverted & earlier)},
        }
        # A broker may still show old replicas of these.
        unsure = [n for n, p in places.items() if p is None or (n in cancelled and p is Place.AFTER)]
        unsure += reverted - earlier
        earlier = reverted
        if not (back or unsure) or look == LOOKS:
            break
        time.sleep(PAUSE if look or unsure else 0)
        errors = cluster.reassign(back) if back else {}
        cancelled |= {*clean} - errors.keys()
    if running or reverted:
        refused = {name: f"Kafka refuses to cancel it ({plain(text)})" for name, text in errors.items()}
        return [
            f"{named(name)} is still moved: {refused.get(name, FEWER)}. The next restore looks again"
            for name in sorted({*running, *reverted})
        ]
    left = [RECREATED.format(plain(topic)) for topic in others]
    left += [f"{named(name)} was moved by others, and is left" for name, where in places.items() if where is None]
    complete = sum(where is Place.AFTER for where in places.values())
    if left:
        changes.left(row.change, listed(left))
    elif complete == len(after):
        changes.done(row.change)
    else:
        changes.undone(row.change, f"{complete:,} of {len(after):,} partitions were moved, and stay")
    return left


def _clean(now: Replicas, least: int | None) -> bool:
    """Can a running move be cancelled without harm? Kafka takes those that it adds out of the ISR, and refuses if none remains.

    Enough must remain in sync for acks=all, unless none of those is in sync yet. least: min.insync.replicas.

    >>> _clean(Replicas((1, 2, 3), (1, 3), 1, adding=(3,)), 2), _clean(Replicas((1, 2, 3), (1, 2, 3), 1, adding=(3,)), 2)
    (False, True)
    """
    kept = [broker for broker in now.isr if broker not in now.adding]
    remaining = [broker for broker in now.replicas if broker not in now.adding]
    enough = least is not None and len(kept) >= min(least, len(remaining))
    return bool(kept) and (len(kept) == len(now.isr) or enough)


def _settings(
    cluster: Cluster, changes: Changes, row: Row, rows: Mapping[str, Row], ids: Mapping[str, str]
) -> list[str]:
    """Puts back values that a later change was to replace, unless it did. Final values stay, as far as they are set.

    min.insync.replicas is put back only while all replicas of the topic are in sync. Else the row stays open.
    """
    if row.state != INTENDED:  # else a kill after a value is put back would leave one that no row explains
        changes.intend(row.step, row.change, row.kind, row.topics, row.was, row.becomes)
    was, becomes = _by_key(row.was), _by_key(row.becomes)
    until = {_key(setting): setting.get("until") for setting in row.becomes}
    reading = cluster.read(row.topics)
    new = recreated({topic: ids[topic] for topic in row.topics if topic in ids}, reading)
    # Last, so that what others change is seen.
    now = values(cluster, [(topic, name) for topic, name in becomes if topic not in new])
    back, stays, others = [], [], [RECREATED.format(plain(topic)) for topic in new]
    interim = [key for key in now if on_the_way(until[key], rows)]
    for key in interim:
        (topic, name), value = key, now[key]
        about = f"{name} of {described(of_topic(topic))}"
        if value == was[key] or (until[key] in rows and value == _by_key(rows[until[key]].becomes)[key]):
            continue
        if value != becomes[key]:
            others.append(f"{about} was changed by others to {plain(str(value))}, and is left")
        elif topic is not None and name == MIN_ISR and (why := _unsafe(reading, topic)):
            stays.append(f"{about} stays {plain(str(value))}: {listed(why)}. The next restore looks again")
        else:
            back.append(SettingChange(of_topic(topic), name, was[key]))
    if stays := stays + make(cluster, back):
        return stays + others
    if others:
        changes.left(row.change, listed(others))
    elif not interim and all(now.get(key) == value for key, value in becomes.items()):
        changes.done(row.change)
    else:
        changes.undone(row.change)
    return others


def _unsafe(reading: Reading, topic: str) -> list[str]:
    """Why min.insync.replicas of a topic can't be put back now."""
    return elr_at_risk(reading, [topic]) or out_of_sync(reading, [topic])


def _key(setting: Mapping[str, Any]) -> Key:
    return setting["topic"], setting["name"]


def _by_key(settings: list[dict[str, Any]]) -> dict[Key, str | None]:
    return {_key(setting): setting["value"] for setting in settings}


def _name(placement: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(placement["topic"], placement["partition"])
