"""Puts back what `durability.apply.outage_run` changed in a rack outage, as soon as it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durability.apply import outage, outage_run, outage_throttle
from durability.apply.cluster import Cluster, Replicas
from durability.apply.outage import Key, Value
from durability.apply.outage_run import Known, Seen, batches, see
from durability.apply.record import Changes
from durability.errors import AuditError, Refused, Unreachable
from durability.plain import plain

PAUSE = 5.0
"""Seconds between the two looks that show a value of others."""
RECREATED: Any = object()
"""In place of a value of a topic that was deleted and created again: it isn't the one that was changed."""
DELETED: Any = object()
"""In place of a value of a topic that doesn't exist any more."""
UNREGISTERED: Any = object()
"""In place of replicas whose former brokers aren't all registered any more: one never comes back."""
MOVED_BACK = "its replicas are moved back"
CHANGING = "its value changes just now"
ENDED = "NO_REASSIGNMENT_IN_PROGRESS"
"""Kafka's error for the cancellation of a move that has ended."""


@dataclass
class Back:
    """What is to be put back, as the cluster is now. put: values to restore, by key. waiting: why a topic has to wait.

    others: values that others set, which stay. moving: partitions whose replicas are on the way back.
    failed: errors by topic that can't be read. former: topics with a value that is as before.
    """

    put: dict[Key, Any] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    others: dict[Key, Any] = field(default_factory=dict)
    moving: set[Key] = field(default_factory=set)
    failed: dict[str, AuditError] = field(default_factory=dict)
    former: set[str] = field(default_factory=set)

    def add(self, more: Back) -> None:
        """Adds what is known of other topics."""
        self.put |= more.put
        self.waiting |= more.waiting
        self.others |= more.others
        self.moving |= more.moving
        self.failed |= more.failed
        self.former |= more.former

    def stays(self) -> set[str]:
        """The topics that aren't as before yet, whatever is put back now."""
        return {*self.waiting, *self.failed, *(topic for topic, _ in self.moving)}


def look(seen: Seen, values: Sequence[Value], known: Known) -> Back:
    """Sorts open values. values: of topics that were read."""
    back, facts = Back(), known.facts(seen.reading.live)
    for value in values:
        now, partitions, partition = seen.now(value.key), seen.partitions[value.topic], seen.partition(value.key)
        own, returns = seen.own.get(value.topic, {}), value.returns(now, partition)
        if value.is_of_another(seen.reading.topic_ids):
            back.others[value.key] = RECREATED
        elif not partitions:
            back.others[value.key] = DELETED
        elif returns and not (partition is not None and _is_stuck(partition)):
            if partition is not None and (partition.moving or now != value.was):
                back.moving.add(value.key)
            else:
                back.former.add(value.topic)
        elif not returns and not value.is_own(now, partition):
            back.others[value.key] = now
        elif partition is not None and not partition.moving and any(map(seen.reading.is_gone, value.was)):
            back.others[value.key] = UNREGISTERED
        elif (why := outage.waits_for(value, partitions, own, facts)) is not None:
            if value.topic not in back.waiting or outage.needs_help(why):
                back.waiting[value.topic] = why
        else:
            back.put[value.key] = value.was
    return back


def survey(cluster: Cluster, changes: Changes, known: Known) -> tuple[Back, bool]:
    """What is to be put back; and can a restore put a value back, or close a row? Nothing is changed.

    Raises the error of a topic if none can be read.
    """
    rows = changes.state()
    values = outage.open_values(rows)
    total = Back()
    for of_some, seen in _seen(cluster, values):
        total.add(_looked(seen, of_some, known))
    if total.failed and total.failed.keys() == {value.topic for value in values.values()}:
        raise next(iter(total.failed.values()))
    stays = total.stays()
    closable = any(stays.isdisjoint(row.topics) for row in outage.open_rows(rows).values())
    return total, bool(total.put) or closable


def _looked(seen: Seen | AuditError, values: Sequence[Value], known: Known) -> Back:
    if isinstance(seen, AuditError):
        return Back(failed={value.topic: seen for value in values})
    return look(seen, values, known)


def _seen(cluster: Cluster, values: Mapping[Key, Value]) -> Iterator[tuple[list[Value], Seen | AuditError]]:
    """Reads the topics of values, many at once. Yields the values of some topics, and these topics, or why they can't be read."""
    of_topics: dict[str, list[Value]] = {}
    for value in values.values():
        of_topics.setdefault(value.topic, []).append(value)
    for topics in batches(sorted(of_topics)):
        for some, seen in _read(cluster, topics):
            yield [value for topic in some for value in of_topics[topic]], seen


def _read(cluster: Cluster, topics: list[str]) -> Iterator[tuple[list[str], Seen | AuditError]]:
    """Reads topics, in ever smaller parts if that fails: one topic with an error must not hide the others."""
    seen: Seen | AuditError
    try:
        seen = see(cluster, topics)
    except (Refused, Unreachable) as error:
        seen = error
    if isinstance(seen, Seen) or len(topics) == 1:
        yield topics, seen
        return
    see(cluster, [])  # raises if it is the cluster that doesn't answer
    half = len(topics) // 2
    yield from _read(cluster, topics[:half])
    yield from _read(cluster, topics[half:])


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


def waiting(back: Back) -> Restored:
    """What a restore would say if nothing can be put back."""
    failed = {topic: str(error) for topic, error in back.failed.items()}
    moving = {topic: MOVED_BACK for topic, _ in back.moving}
    former = back.former - back.stays() - {topic for topic, _ in back.others}
    return Restored(len(former), waiting=moving | back.waiting | failed, failed=failed)


def restore(cluster: Cluster, changes: Changes, known: Known, throttle: int | None = None) -> Restored:
    """Puts back what can be put back now. The cluster must be claimed. Call it until nothing waits.

    A row is closed when none of its values waits. Replicas wait until they are in their former places. throttle: as of `change`.
    """
    restored = Restored()
    others: dict[Key, Any] = {}
    values = outage.open_values(changes.state())
    changes.renew()
    for of_some, seen in _seen(cluster, values):
        back = _looked(seen, of_some, known)
        errors = waiting(back).failed
        if isinstance(seen, Seen):
            errors |= _put(cluster, changes, back, seen, throttle)
        restored.failed |= errors
        moved = {topic: MOVED_BACK for topic, name in back.put if isinstance(name, int)}
        restored.waiting |= moved | waiting(back).waiting | errors
        agreed = _agreed(cluster, of_some, known, back.others)
        restored.waiting |= {topic: CHANGING for topic, name in back.others.keys() - agreed.keys()}
        others |= agreed
        changes.renew()
    _close(changes, restored, others)
    restored.throttles = outage_throttle.lift(cluster, changes)
    restored.back = len({value.topic for value in values.values()} - restored.waiting.keys() - {t for t, _ in others})
    return restored


def _put(cluster: Cluster, changes: Changes, back: Back, seen: Seen, throttle: int | None) -> dict[str, str]:
    """Puts values back. Returns the errors by topic. Replicas that can't be throttled wait.

    Settings first: a throttle takes time, and a threshold must not rise on a reading of before.
    """
    settings = {key: value for key, value in back.put.items() if isinstance(key[1], str)}
    moves = {key: value for key, value in back.put.items() if isinstance(key[1], int)}
    errors = outage_run.put(cluster, settings)
    if why := outage_run.throttled(cluster, changes, f"back:{len(changes.state()):08d}", moves, seen, throttle):
        back.waiting |= {topic: why for topic, _ in moves}
        back.put = settings
        return errors
    errors |= outage_run.put(cluster, {key: _way(seen.partition(key), was) for key, was in moves.items()})
    # A move that ended since it was read can't be cancelled. The next look moves its replicas back.
    return {topic: said for topic, said in errors.items() if said != ENDED}


def _way(now: Replicas | None, was: Any) -> Any:
    """What Kafka is asked for so that replicas get back: None cancels the move that adds others.

    A new target that adds nothing leaves the former target's added replicas in place (Kafka 4.3: ReplicationControlManager), and
    these are removed at the same time: such a move never ends. After a cancellation only the order may differ, for the next look.
    """
    return None if now is not None and not {*now.adding} <= {*was} else was


def _is_stuck(now: Replicas) -> bool:
    """Does it add replicas that it removes? See `_way`."""
    return not {*now.adding}.isdisjoint(now.removing)


def _agreed(cluster: Cluster, values: Sequence[Value], known: Known, others: Mapping[Key, Any]) -> Mapping[Key, Any]:
    """The values of others that a second look shows, too. A broker may have shown an old one at the first."""
    if not others:
        return {}
    time.sleep(PAUSE)
    again = look(see(cluster, sorted({value.topic for value in values})), values, known).others
    return {key: value for key, value in others.items() if key in again and again[key] == value}


def _close(changes: Changes, restored: Restored, others: Mapping[Key, Any]) -> None:
    for name, row in outage.open_rows(changes.state()).items():
        values = outage.of_row(row)
        if any(value.topic in restored.waiting for value in values):
            continue
        left = [*dict.fromkeys(_left(value, others[value.key]) for value in values if value.key in others)]
        restored.left += left
        if left:
            changes.left(name, "; ".join(left))
        else:
            changes.undone(name)


def _left(value: Value, now: Any) -> str:
    """What others set, as a sentence."""
    topic, name = value.key
    if now is RECREATED:
        return plain(f"topic {topic}: {name} is left, because the topic was recreated since the outage")
    if now is DELETED:
        return plain(f"topic {topic} was deleted since the outage")
    if now is UNREGISTERED:
        was = _text(value.was)
        return plain(
            f"{topic}-{name}: its replicas stay, because one of its former brokers {was} isn't registered any more"
        )
    was, is_now = (_text(v) for v in (value.was, now))
    if isinstance(name, int):
        return plain(
            f"{topic}-{name}: replicas {is_now} were set by others and stay; before the outage they were {was}"
        )
    return plain(f"topic {topic}: {name} {is_now} was set by others and stays; before the outage it was {was}")


def _text(value: Any) -> str:
    if value is None:
        return "unset"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
