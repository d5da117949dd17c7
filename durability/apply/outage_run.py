"""Carries out what `durability.apply.outage` decides: changes topics in a rack outage, and puts them back afterwards.

Each change is in the lake's table `changes` before it is made. A run that was killed at any point is continued by the next one.
All runs of a cluster share one plan, OUTAGE: what one run changed, any later run puts back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durability.apply import outage, outage_throttle
from durability.apply.cluster import (
    Cluster,
    Reading,
    Replicas,
    Resource,
    ResourceType,
    SettingChange,
    TopicPartition,
)
from durability.apply.outage import Decision, Facts, Key, Value
from durability.apply.record import REASSIGN, SET_CONFIG, Changes
from durability.errors import Unreachable
from durability.plain import plain
from durability.remedies.plans import Broker, Placement

OUTAGE = "rack-outage"
"""The plan of all changes of this kind to a cluster."""
TOPICS_AT_ONCE = 100
ROUNDS = 3
"""How often a topic is decided again if it changed between the decision and the change."""
OF_PLAN = (
    "plan {} changed it and isn't taken back yet: clear the task `restore` of its run of `remediate`, then run again"
)
ADD, LOWER, BACK = "add-replicas", "lower", "restore"

Entries = Mapping[str, Sequence[Mapping[str, Any]]]
"""By topic, its `rack_outage` in `topic_posture`."""


@dataclass(frozen=True)
class Known:
    """What the last snapshot knows of the cluster: its brokers, and the number of replicas on each.

    elr, knows_racks: see `outage.Facts`.
    """

    brokers: Sequence[Broker]
    load: Mapping[int, int]
    elr: bool | None
    knows_racks: bool

    def facts(self, live: frozenset[int]) -> Facts:
        return Facts({b.id: b.rack for b in self.brokers}, live, self.elr, self.knows_racks)

    def placement(self, live: frozenset[int]) -> Placement:
        brokers = [Broker(b.id, b.rack, b.id in live, b.room) for b in self.brokers]
        return Placement(brokers, Counter(self.load))


@dataclass(frozen=True)
class Seen:
    """Topics as the cluster states them now. partitions, own: by topic; own: the topic's own settings."""

    reading: Reading
    partitions: Mapping[str, dict[int, Replicas]]
    own: Mapping[str, Mapping[str, str]]

    def now(self, key: Key) -> Any:
        """The value now: a setting's text, or the replicas. None: no own value, or the topic or partition doesn't exist."""
        topic, name = key
        if isinstance(name, str):
            return self.own.get(topic, {}).get(name)
        partition = self.partitions.get(topic, {}).get(name)
        return None if partition is None else outage.target(partition)


def see(cluster: Cluster, topics: Sequence[str]) -> Seen:
    """Reads topics. Unreachable if no controller leads: nothing can be changed then."""
    reading = cluster.read(topics)
    if not reading.led:
        raise Unreachable("no controller leads, so nothing can be changed: bring back a majority of the controllers")
    own = cluster.overrides([_resource(topic) for topic in topics])
    partitions: dict[str, dict[int, Replicas]] = {topic: {} for topic in topics}
    for (topic, number), replicas in reading.partitions.items():
        if topic in partitions:
            partitions[topic][number] = replicas
    return Seen(reading, partitions, {resource.name: values for resource, values in own.items()})


def _resource(topic: str) -> Resource:
    return Resource(ResourceType.TOPIC, topic)


def batches(topics: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        yield list(topics[first : first + TOPICS_AT_ONCE])


def decided(cluster: Cluster, entries: Entries, known: Known, give_up_elr: bool) -> list[Decision]:
    """What would be done now, by topic. Nothing is changed."""
    found: list[Decision] = []
    placement: Placement | None = None
    for batch in batches(sorted(entries)):
        seen = see(cluster, batch)
        placement = placement or known.placement(seen.reading.live)
        found += _decide(seen, batch, entries, known, placement, give_up_elr)
    return found


def _decide(
    seen: Seen, topics: Sequence[str], entries: Entries, known: Known, placement: Placement, give_up_elr: bool
) -> list[Decision]:
    facts = known.facts(seen.reading.live)
    return [
        outage.decide(t, entries[t], seen.partitions[t], seen.own.get(t, {}), facts, placement, give_up_elr)
        for t in topics
    ]


@dataclass
class Outcome:
    """topics: how many were changed, by what was done. held: by topic, what isn't done, and why. failed: errors by topic."""

    topics: Counter[str] = field(default_factory=Counter)
    held: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def change(
    cluster: Cluster, changes: Changes, entries: Entries, known: Known, give_up_elr: bool, throttle: int | None = None
) -> Outcome:
    """Changes the topics that still need it. The cluster must be claimed. throttle: bytes per second and broker; None: none.

    A topic with a change of another plan is held: what either puts back would undo what the other did.
    """
    plans = _plans(cluster, changes)
    outcome = Outcome(held={topic: OF_PLAN.format(plans[topic]) for topic in sorted(plans.keys() & entries.keys())})
    entries = {topic: entry for topic, entry in entries.items() if topic not in plans}
    placement: Placement | None = None
    for batch in batches(sorted(entries)):
        changes.renew()
        waiting = batch
        for _ in range(ROUNDS):
            if waiting:
                seen = see(cluster, waiting)
                placement = placement or known.placement(seen.reading.live)
                made = _decide(seen, waiting, entries, known, placement, give_up_elr)
                waiting = _make(cluster, changes, seen, made, throttle, outcome)
        for topic in waiting:
            outcome.failed[topic] = "it changes all the time, so nothing was done. Run again"
    return outcome


def _plans(cluster: Cluster, changes: Changes) -> dict[str, str]:
    """The topics with values or moves of a plan that isn't taken back yet, and the plan's id."""
    plans = changes.others(cluster.read([]).cluster_id)
    return {
        topic: p.plan for p in plans for row in p.rows if row.kind in (REASSIGN, SET_CONFIG) for topic in row.topics
    }


def _make(
    cluster: Cluster,
    changes: Changes,
    seen: Seen,
    made: Sequence[Decision],
    throttle: int | None,
    outcome: Outcome,
) -> list[str]:
    """Makes the decided changes. Returns the topics that changed since they were decided."""
    wanted = [d for d in made if d.act != outage.HOLD]
    before = outage.open_values(changes.state())
    ours = {value.topic for value in before.values() if value.is_replicas()}
    outcome.held |= {d.topic: d.why for d in made if d.why and not (d.why == outage.MOVING and d.topic in ours)}
    rows: dict[str, list[Value]] = {}
    for act in (LOWER, ADD):
        values = [
            value
            for d in wanted
            if d.act == act
            for value in outage.changed(d, seen.partitions[d.topic], seen.own.get(d.topic, {}), before)
        ]
        if values:
            rows[_intend(changes, act, values)] = values
    if not rows:
        return []
    # Read again: writing the rows took time, and a threshold must not change while there is an ELR.
    again = see(cluster, sorted(d.topic for d in wanted))
    same = {d.topic for d in wanted if _unchanged(d, seen, again)}
    for name, values in rows.items():
        put = {v.key: v.becomes[-1] for v in values if v.topic in same}
        why = _throttle(cluster, changes, name, put, again, throttle)
        if why is not None or not put:
            outcome.failed |= {topic: why for topic, _ in put if why}
            changes.undone(name, why or "the topics changed since they were read")
            continue
        errors = _set(cluster, put)
        outcome.failed |= errors
        # A change with an error may be made later: its row is closed when it is put back.
        changes.done(name, "; ".join(sorted(set(errors.values()))) or None)
        outcome.topics[ADD if values[0].is_replicas() else LOWER] += len({topic for topic, _ in put} - errors.keys())
    return sorted({d.topic for d in wanted} - same)


def _throttle(
    cluster: Cluster, changes: Changes, name: str, put: Mapping[Key, Any], seen: Seen, throttle: int | None
) -> str | None:
    """Throttles the moves among these values, if they are to be. Returns why not."""
    live = seen.reading.live
    moves = {
        TopicPartition(topic, name): ([b for b in seen.now((topic, name)) or () if b in live], replicas)
        for (topic, name), replicas in put.items()
        if isinstance(name, int)
    }
    return outage_throttle.put_on(cluster, changes, name, moves, throttle) if moves and throttle else None


def _intend(changes: Changes, step: str, values: Sequence[Value]) -> str:
    name = f"{len(changes.state()) + 1:08d}"
    was, becomes = outage.as_json(values)
    changes.intend(step, name, outage.kind_of(values), sorted({v.topic for v in values}), was, becomes)
    return name


def _unchanged(decision: Decision, before: Seen, now: Seen) -> bool:
    topic = decision.topic
    live = all(b in now.reading.live for replicas in decision.moves.values() for b in replicas)
    same = before.partitions[topic] == now.partitions[topic] and before.own.get(topic) == now.own.get(topic)
    return live and same


def _set(cluster: Cluster, values: Mapping[Key, Any]) -> dict[str, str]:
    """Sets settings and replicas. Returns the errors by topic."""
    settings = [
        SettingChange(_resource(topic), name, value) for (topic, name), value in values.items() if isinstance(name, str)
    ]
    moves = {TopicPartition(topic, name): value for (topic, name), value in values.items() if isinstance(name, int)}
    errors: dict[str, str] = {}
    if settings:
        errors |= {resource.name: said for resource, said in cluster.change(settings).items()}
    if moves:
        errors |= {place.topic: said for place, said in cluster.reassign(moves).items()}
    return errors


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
        now, partitions = seen.now(value.key), seen.partitions[value.topic]
        if now == value.was:
            if value.is_replicas() and partitions[int(value.key[1])].moving:
                back.moving.add(value.key)
        elif not value.is_own(now):
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
        if why := _throttle(cluster, changes, f"back:{len(changes.state()):08d}", back.put, seen, throttle):
            back.waiting |= {topic: why for topic, name in back.put if isinstance(name, int)}
            back.put = {key: value for key, value in back.put.items() if isinstance(key[1], str)}
        errors = _set(cluster, back.put)
        restored.failed |= errors
        restored.waiting |= back.waiting | errors
        moved = {topic for topic, name in (*back.put, *back.moving) if isinstance(name, int)}
        restored.waiting |= {topic: "its replicas are moved back" for topic in moved - restored.waiting.keys()}
        others |= back.others
    _close(changes, restored, others)
    restored.throttles = outage_throttle.lift(cluster, changes)
    restored.back = len({value.topic for value in values.values()} - restored.waiting.keys() - {t for t, _ in others})
    return restored


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
