"""Carries out what `durability.apply.outage` decides: changes topics in a rack outage. `outage_back` puts them back.

Each change is in the lake's table `changes` before it is made. A run that was killed at any point is continued by the next one.
All runs of a cluster share one plan, OUTAGE: what one run changed, any later run puts back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from durability.apply import outage, outage_disks, outage_throttle, recorded
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
from durability.apply.record import BEGIN, REASSIGN, SET_CONFIG, Changes
from durability.errors import Unreachable
from durability.remedies.change.model import Move
from durability.remedies.plans import Broker, Placement

OUTAGE = "rack-outage"
"""The plan of all changes of this kind to a cluster."""
TOPICS_AT_ONCE = 100
ROUNDS = 3
"""How often a topic is decided again if it changed between the decision and the change."""
OF_PLAN = (
    "plan {} changed it and isn't taken back yet: clear the task `restore` of its run of `remediate`, then run again"
)
ADD, LOWER = "add-replicas", "lower"

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

    def placement(self, live: frozenset[int], earlier: Placement | None) -> Placement:
        """earlier: the one before, with the replicas that it chose. Brokers may have died since."""
        brokers = [Broker(b.id, b.rack, b.id in live, b.room) for b in self.brokers]
        return Placement(brokers, Counter(self.load if earlier is None else earlier.load))


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
        partition = self.partition(key)
        return None if partition is None else outage.target(partition)

    def partition(self, key: Key) -> Replicas | None:
        """The partition whose replicas the key names. None for a setting, or if it doesn't exist."""
        topic, name = key
        return self.partitions.get(topic, {}).get(name) if isinstance(name, int) else None


def see(cluster: Cluster, topics: Sequence[str]) -> Seen:
    """Reads topics. Unreachable if no controller leads: nothing can be changed then."""
    reading = cluster.read(topics)
    if not reading.led:
        raise Unreachable("no controller leads, so nothing can be changed: restore the controller quorum")
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


def decided(
    cluster: Cluster, entries: Entries, known: Known, give_up_elr: bool, before: Mapping[Key, Value]
) -> list[Decision]:
    """What would be done now, by topic. Nothing is changed. before: open changes."""
    found: list[Decision] = []
    planned: list[Move] = []
    placement: Placement | None = None
    for batch in batches(sorted(entries)):
        seen = see(cluster, batch)
        placement = known.placement(seen.reading.live, placement)
        made = _decide(seen, batch, entries, known, placement, give_up_elr, before)
        fitting, moves = outage_disks.fitting(cluster, seen.reading, made, planned)
        found += fitting
        planned += moves
    return found


def _decide(
    seen: Seen,
    topics: Sequence[str],
    entries: Entries,
    known: Known,
    placement: Placement,
    give_up_elr: bool,
    before: Mapping[Key, Value],
) -> list[Decision]:
    facts = known.facts(seen.reading.live)
    return [
        outage.decide(t, entries[t], seen.partitions[t], seen.own.get(t, {}), facts, placement, give_up_elr, before)
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
    _name_cluster(cluster, changes)
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
                placement = known.placement(seen.reading.live, placement)
                before = {
                    key: value
                    for key, value in outage.open_values(changes.state()).items()
                    if not value.is_of_another(seen.reading.topic_ids)
                }
                made = _decide(seen, waiting, entries, known, placement, give_up_elr, before)
                made, _ = outage_disks.fitting(cluster, seen.reading, made, [])
                waiting = _make(cluster, changes, seen, made, before, throttle, outcome)
        for topic in waiting:
            outcome.failed[topic] = "it changes all the time, so nothing was done. Run again"
    return outcome


def _name_cluster(cluster: Cluster, changes: Changes) -> None:
    """Records Kafka's id of the cluster. Only if nothing is left to put back may it be another one than before.

    An unknown id doesn't replace a known one: `recorded.same_cluster` would take any cluster for this one then.
    """
    begun, now = changes.state().get(BEGIN), cluster.read([]).cluster_id
    if begun is None or now not in (None, begun.was["kafka_cluster_id"]):
        changes.begin(now, [])


def _plans(cluster: Cluster, changes: Changes) -> dict[str, str]:
    """The topics with values or moves of a plan that isn't taken back yet, and the plan's id."""
    plans = recorded.others(changes, cluster.read([]).cluster_id)
    return {
        topic: p.plan for p in plans for row in p.rows if row.kind in (REASSIGN, SET_CONFIG) for topic in row.topics
    }


def _make(
    cluster: Cluster,
    changes: Changes,
    seen: Seen,
    made: Sequence[Decision],
    before: Mapping[Key, Value],
    throttle: int | None,
    outcome: Outcome,
) -> list[str]:
    """Makes the decided changes. Returns the topics that changed since they were decided."""
    wanted = [d for d in made if d.act != outage.HOLD]
    outcome.held |= {d.topic: d.why for d in made if d.why}
    rows: dict[str, list[Value]] = {}
    for act in (LOWER, ADD):
        values = [
            replace(value, topic_id=seen.reading.topic_ids.get(value.topic))
            for d in wanted
            if d.act == act
            for value in outage.changed(d, seen.partitions[d.topic], seen.own.get(d.topic, {}), before)
        ]
        if values:
            rows[_intend(changes, act, values)] = values
    if not rows:
        return []
    again, rows, skipped = _still_wanted(cluster, changes, seen, {d.topic: d for d in wanted}, rows)
    for name, values in rows.items():
        chosen = {v.key: v.becomes[-1] for v in values}
        if why := throttled(cluster, changes, name, chosen, again, throttle):
            outcome.failed |= {topic: why for topic, _ in chosen}
            changes.undone(name, why)
            continue
        errors = put(cluster, chosen)
        outcome.failed |= errors
        # A change with an error may be made later: its row is closed when it is put back.
        changes.done(name, "; ".join(sorted(set(errors.values()))) or None)
        outcome.topics[ADD if values[0].is_replicas() else LOWER] += len({topic for topic, _ in chosen} - errors.keys())
    return skipped


def _still_wanted(
    cluster: Cluster, changes: Changes, seen: Seen, wanted: Mapping[str, Decision], rows: Mapping[str, list[Value]]
) -> tuple[Seen, dict[str, list[Value]], list[str]]:
    """Reads again, since writing rows takes time, and a threshold must not change while there is an ELR.

    A topic that changed since it was decided is taken out of its row: what others set there must not be taken for ours later.
    Returns the last reading, the rows that are left, and the topics that were taken out.
    """
    rows, skipped = dict(rows), set[str]()
    while True:
        again = see(cluster, sorted(wanted.keys() - skipped))
        changed = {topic for topic in wanted.keys() - skipped if not _unchanged(wanted[topic], seen, again)}
        if not changed:
            return again, rows, sorted(skipped)
        skipped |= changed
        for name, values in list(rows.items()):
            rows[name] = [value for value in values if value.topic not in skipped]
            if not rows[name]:
                changes.undone(name, "the topics changed since they were read")
                del rows[name]
            elif rows[name] != values:
                _write(changes, changes.state()[name].step, name, rows[name])


def throttled(
    cluster: Cluster, changes: Changes, name: str, values: Mapping[Key, Any], seen: Seen, throttle: int | None
) -> str | None:
    """Throttles the moves among these values, if they are to be. Returns why not."""
    live = seen.reading.live
    moves = {
        TopicPartition(topic, name): ([b for b in seen.now((topic, name)) or () if b in live], replicas)
        for (topic, name), replicas in values.items()
        if isinstance(name, int)
    }
    return outage_throttle.put_on(cluster, changes, name, moves, throttle, live) if moves and throttle else None


def _intend(changes: Changes, step: str, values: Sequence[Value]) -> str:
    name = f"{len(changes.state()) + 1:08d}"
    _write(changes, step, name, values)
    return name


def _write(changes: Changes, step: str, name: str, values: Sequence[Value]) -> None:
    was, becomes = outage.as_json(values)
    changes.intend(step, name, outage.kind_of(values), sorted({v.topic for v in values}), was, becomes)


def _unchanged(decision: Decision, before: Seen, now: Seen) -> bool:
    topic = decision.topic
    live = all(b in now.reading.live for replicas in decision.moves.values() for b in replicas)
    same = before.partitions[topic] == now.partitions[topic] and before.own.get(topic) == now.own.get(topic)
    return live and same


def put(cluster: Cluster, values: Mapping[Key, Any]) -> dict[str, str]:
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
