"""Puts back what `durability.apply.outage_run` changed in a rack outage, as soon as it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durability.apply import outage, outage_run, outage_throttle
from durability.apply.cluster import Cluster
from durability.apply.outage import Key, Value
from durability.apply.outage_run import Known, Seen, batches, see
from durability.apply.record import Changes
from durability.plain import plain

PAUSE = 5.0
"""Seconds between the two looks that show a value of others."""
CHANGING = "its value changes just now"


@dataclass
class Back:
    """What is to be put back, as the cluster is now. put: values to restore, by key. waiting: why a topic has to wait.

    others: values that others set, which stay. moving: partitions whose replicas are on the way back.
    """

    put: dict[Key, Any] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    others: dict[Key, Any] = field(default_factory=dict)
    moving: set[Key] = field(default_factory=set)


def look(seen: Seen, values: Sequence[Value], known: Known) -> Back:
    """Sorts open values. values: of topics that were read."""
    back, facts = Back(), known.facts(seen.reading.live)
    for value in values:
        now, partitions, partition = seen.now(value.key), seen.partitions[value.topic], seen.partition(value.key)
        if value.returns(now, partition):
            if partition is not None and (partition.moving or now != value.was):
                back.moving.add(value.key)
        elif not value.is_own(now, partition):
            back.others[value.key] = now
        elif (why := outage.waits_for(value, partitions, facts)) is not None:
            back.waiting.setdefault(value.topic, why)
        else:
            back.put[value.key] = value.was
    return back


def is_ready(cluster: Cluster, changes: Changes, known: Known) -> bool:
    """Can anything be put back, or is nothing left to wait for?"""
    values = outage.open_values(changes.state())
    looks = ((topics, look(see(cluster, topics), of_batch, known)) for topics, of_batch in _by_topics(values))
    return not values or any(len(back.waiting) < len(topics) for topics, back in looks)


def _by_topics(values: Mapping[Key, Value]) -> Iterator[tuple[list[str], list[Value]]]:
    for topics in batches(sorted({value.topic for value in values.values()})):
        chosen = set(topics)
        yield topics, [value for value in values.values() if value.topic in chosen]


@dataclass
class Restored:
    """back: how many topics have their former values. waiting: why a topic has to wait. left: what stays as others set it.

    failed: errors by topic; these topics wait, too. throttles: what is said about throttles that stay.
    """

    back: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    throttles: list[str] = field(default_factory=list)


def restore(cluster: Cluster, changes: Changes, known: Known, throttle: int | None = None) -> Restored:
    """Puts back what can be put back now. The cluster must be claimed. Call it until nothing waits.

    A row is closed when none of its values waits. Replicas wait until they are in their former places. throttle: as of `change`.
    """
    restored = Restored()
    others: dict[Key, Any] = {}
    values = outage.open_values(changes.state())
    for topics, of_batch in _by_topics(values):
        changes.renew()
        seen = see(cluster, topics)
        back = look(seen, of_batch, known)
        if why := outage_run.throttled(cluster, changes, f"back:{len(changes.state()):08d}", back.put, seen, throttle):
            back.waiting |= {topic: why for topic, name in back.put if isinstance(name, int)}
            back.put = {key: value for key, value in back.put.items() if isinstance(key[1], str)}
        errors = outage_run.put(cluster, back.put)
        restored.failed |= errors
        restored.waiting |= back.waiting | errors
        moved = {topic for topic, name in (*back.put, *back.moving) if isinstance(name, int)}
        restored.waiting |= {topic: "its replicas are moved back" for topic in moved - restored.waiting.keys()}
        agreed = _agreed(cluster, topics, of_batch, known, back.others)
        restored.waiting |= {topic: CHANGING for topic, name in back.others.keys() - agreed.keys()}
        others |= agreed
    _close(changes, restored, others)
    restored.throttles = outage_throttle.lift(cluster, changes)
    restored.back = len({value.topic for value in values.values()} - restored.waiting.keys() - {t for t, _ in others})
    return restored


def _agreed(
    cluster: Cluster, topics: Sequence[str], values: Sequence[Value], known: Known, others: Mapping[Key, Any]
) -> Mapping[Key, Any]:
    """The values of others that a second look shows, too. A broker may have shown an old one at the first."""
    if not others:
        return {}
    time.sleep(PAUSE)
    again = look(see(cluster, topics), values, known).others
    return {key: value for key, value in others.items() if key in again and again[key] == value}


def _close(changes: Changes, restored: Restored, others: Mapping[Key, Any]) -> None:
    for name, row in outage.open_rows(changes.state()).items():
        values = outage.of_row(row)
        if any(value.topic in restored.waiting for value in values):
            continue
        left = [_left(value, others[value.key]) for value in values if value.key in others]
        restored.left += left
        if left:
            changes.left(name, "; ".join(left))
        else:
            changes.undone(name)


def _left(value: Value, now: Any) -> str:
    """What others set, as a sentence."""
    topic, name = value.key
    what = f"{topic}-{name}: replicas" if isinstance(name, int) else f"topic {topic}: {name}"
    was, is_now = (_text(v) for v in (value.was, now))
    return plain(f"{what} {is_now} was set by others and stays; before the outage it was {was}")


def _text(value: Any) -> str:
    if value is None:
        return "unset"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
