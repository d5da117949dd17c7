"""Compares a cluster with what a plan rests on. It runs before each step, and changes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from durability.apply import throttles
from durability.apply.cluster import Cluster, Disks, Reading, Replicas, Resource, ResourceType, TopicPartition
from durability.apply.partitions import Place, named, place, recreated
from durability.apply.plan_files import PlanFiles
from durability.apply.record import DONE, SET_CONFIG, Row, topic_ids
from durability.apply.settings import CLUSTER_WIDE, Key, Overrides, described, minimums, of_topic, values
from durability.plain import plain
from durability.remedies.change.model import MIN_ISR, Move, Step

NOT_LED = "no controller leads, or only a minority of the quorum is up"
DISK_MARGIN = 0.1
"""The part of a broker's usable bytes that stays free: partitions grow while they are copied. The plan has its own margin."""
PAUSE = 1.0
"""Seconds until a partition that differs is looked at again."""


@dataclass(frozen=True)
class Checked:
    """A fresh reading of all topics, without ELRs.

    least: the configured min.insync.replicas by topic; None if unknown. problems: why nothing may change.
    """

    reading: Reading
    least: Mapping[str, int | None] = field(default_factory=dict)
    problems: Sequence[str] = ()


def check(plan: PlanFiles, pending: Sequence[Step], cluster: Cluster, rows: Mapping[str, Row]) -> Checked:
    """Compares the cluster with the plan. All differences are reported together.

    pending: the steps that aren't complete, in order. Brokers that one of them waits for may be down. If there are none, only
    what the plan made is compared.
    rows: newest row by change. Steps that a killed run began may be complete, partly complete or running.
    """
    reading = cluster.read(None)
    if reading.cluster_id != plan.cluster_id:
        now = "unknown" if reading.cluster_id is None else plain(reading.cluster_id)
        text = f"this is another cluster: its Kafka cluster id is {now}, and the plan is for {plain(plan.cluster_id)}"
        return Checked(reading, problems=[text])
    ids = {**plan.topic_ids, **topic_ids(rows)}
    if [*_moved(plan.steps, reading, rows), *stale_topics(ids, reading)]:  # a broker may show an old state for a while
        time.sleep(PAUSE)
        reading = cluster.read(None)
    stale = [*stale_topics(ids, reading), *_moved(plan.steps, reading, rows)]
    stale += changed(plan, plan.steps, cluster, rows)
    if not pending:
        return Checked(reading, problems=stale)
    waited = {broker for step in pending if step.kind == "wait" for broker in step.brokers}
    moves = [move for step in pending for move in step.moves]
    brokers = [Resource(ResourceType.BROKER, str(broker)) for broker in sorted(reading.live)]
    overrides, least = configured(plan, cluster, reading, brokers, throttles.SETTINGS)
    problems = [] if reading.led else [f"{NOT_LED}: wait until it is back"]
    problems += _down(moves, reading.live, waited)
    problems += _foreign_moves(reading, plan.steps, rows)
    problems += stale
    problems += throttles.foreign(cluster, overrides, rows, _throttled(moves, reading))
    unknown = sorted({move.topic for move in moves if least[move.topic] is None and of_topic(move.topic) in overrides})
    problems += [f"the min.insync.replicas of topic {plain(name)} is unknown: make a new plan" for name in unknown]
    arriving = [move for move in moves if waited.isdisjoint((*move.before, *move.after))]
    problems += disks(arriving, reading, cluster)
    return Checked(reading, least, problems)


def configured(
    plan: PlanFiles, cluster: Cluster, reading: Reading, others: Iterable[Resource] = (), names: Iterable[str] = ()
) -> tuple[Overrides, dict[str, int | None]]:
    """Overrides of all topics, cluster-wide and of `others`, of MIN_ISR and `names`; and min.insync.replicas by topic."""
    topics = sorted({*plan.topics, *(name.topic for name in reading.partitions)})
    overrides = cluster.overrides([*map(of_topic, topics), CLUSTER_WIDE, *others], (MIN_ISR, *names))
    return overrides, minimums(overrides, topics, plan.inherited)


def _down(moves: Iterable[Move], live: Collection[int], waited: Collection[int]) -> Iterator[str]:
    of_moves = {broker for move in moves for broker in (*move.before, *move.after)}
    for broker in sorted(of_moves - {*live} - {*waited}):
        yield f"broker {broker} is down or fenced: bring it back, or make a new plan"


def _foreign_moves(reading: Reading, steps: Iterable[Step], rows: Mapping[str, Row]) -> Iterator[str]:
    """Running reassignments that no step of this plan began."""
    begun = {
        (move.topic, move.partition): move for step in steps if step.moves and step.id in rows for move in step.moves
    }
    for name, now in sorted(reading.moving.items()):
        move = begun.get(name)
        if move is None or place(now, move.before, move.after) is not Place.RUNNING:
            yield f"a reassignment of {named(name)} is running that isn't this plan's: wait until it ends, or cancel it"


def _moved(steps: Iterable[Step], reading: Reading, rows: Mapping[str, Row]) -> Iterator[str]:
    """Partitions that have neither the replicas from before the plan nor those that a step of it gives, or gave them."""
    for step in steps:
        done = step.id in rows and rows[step.id].state == DONE
        expected = [Place.AFTER] if done else [*Place] if step.id in rows else [Place.BEFORE]
        for move in step.moves:
            name = TopicPartition(move.topic, move.partition)
            now = reading.partitions.get(name)
            if now is None:
                yield f"stale: {named(name)} doesn't exist any more. Make a new plan"
            elif place(now, move.before, move.after) not in expected:
                rests = f"gave it {[*move.after]}" if done else f"rests on {[*move.before]}"
                yield f"stale: {named(name)} has {_replicas(now)}, and the plan {rests}. Make a new plan"


def stale_topics(ids: Mapping[str, str], reading: Reading) -> list[str]:
    """The topics that were deleted and created again since the plan was made. ids: Kafka's, of that time."""
    return [
        f"stale: topic {plain(name)} was recreated since the plan was made. Make a new plan"
        for name in recreated(ids, reading)
    ]


def _throttled(moves: Iterable[Move], reading: Reading) -> set[str]:
    """The topics of moves, and those with a replica on a broker that gets a rate: it limits whatever their own lists name."""
    moves = [move for move in moves if move.added]
    brokers = {broker for move in moves for broker in (*move.before, *move.added)}
    others = {name.topic for name, now in reading.partitions.items() if not brokers.isdisjoint(now.replicas)}
    return others | {move.topic for move in moves}


def _replicas(now: Replicas) -> str:
    return f"the replicas {[*now.replicas]}" + (" and is being reassigned" if now.moving else "")


def changed(plan: PlanFiles, steps: Iterable[Step], cluster: Cluster, rows: Mapping[str, Row]) -> list[str]:
    """Settings of the steps that have neither the value from before the plan nor one that a step of it sets, or has set."""
    keys = dict.fromkeys((setting.topic, setting.name) for step in steps for setting in step.settings)
    expected, now = _expected(plan, rows), values(cluster, keys)
    found = []
    for topic, name in keys:
        about = f"{name} of {described(of_topic(topic))}"
        if (topic, name) not in now:
            found.append(f"stale: {about}: the topic doesn't exist any more. Make a new plan")
        elif (value := now[topic, name]) not in expected[topic, name]:
            wanted = " or ".join(sorted(_shown(each) for each in expected[topic, name]))
            found.append(f"stale: {about} is {_shown(value)}, and the plan rests on {wanted}. Make a new plan")
    return found


def _expected(plan: PlanFiles, rows: Mapping[str, Row]) -> dict[Key, set[str | None]]:
    """The values that each setting of the plan may have now, by topic and name."""
    found = {key: {value} for key, value in plan.before.items()}
    for step in plan.steps:
        row = rows.get(step.id)
        if row is None or row.kind != SET_CONFIG:
            continue
        taken = {(value["topic"], value["name"]) for value in row.becomes}  # maybe not all that the step has
        for setting in step.settings:
            key = (setting.topic, setting.name)
            if key in taken:
                found[key] = {setting.value} if row.state == DONE else found[key] | {setting.was, setting.value}
    return found


def _shown(value: str | None) -> str:
    return "not set" if value is None else plain(value)


def disks(moves: Sequence[Move], reading: Reading, cluster: Disks) -> Iterator[str]:
    """Brokers without room for what arrives. Bytes that leave a broker don't count as free: they leave at the end."""
    moves = [move for move in moves if move.added]
    if not moves:
        return
    brokers = sorted({broker for move in moves for broker in (*move.before, *move.after)} & reading.live)
    sizes = cluster.sizes(brokers, {move.topic for move in moves})
    arriving: Counter[int] = Counter()
    for move in moves:
        name = TopicPartition(move.topic, move.partition)
        size = max((sizes[broker, name] for broker in move.before if (broker, name) in sizes), default=None)
        if size is None and name in reading.partitions:
            yield f"the size of {named(name)} is unknown, so it isn't known whether it has room on its new brokers"
        for broker in move.added:
            arriving[broker] += max(0, (size or 0) - sizes.get((broker, name), 0))
    usable = cluster.usable_bytes([broker for broker in sorted(arriving) if arriving[broker]])
    for broker, room in sorted(usable.items()):
        if room is None:
            yield f"the usable bytes of the disks of broker {broker} are unknown, and {arriving[broker]:,} bytes arrive there"
        elif arriving[broker] > room * (1 - DISK_MARGIN):
            yield f"the disks of broker {broker} have {room:,} usable bytes, and {arriving[broker]:,} bytes arrive there"
