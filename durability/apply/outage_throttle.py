"""Throttles of the replicas that a rack outage adds, or moves back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from durability.apply import outage, partitions, throttles
from durability.apply.cluster import Cluster, Reading, Resource, ResourceType, TopicPartition
from durability.apply.record import THROTTLE, Changes, Row, is_open
from durability.apply.settings import CLUSTER_WIDE, of_topic
from durability.apply.stop import Stopped
from durability.remedies.change.model import Move, Step

Moves = Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]]
"""By partition, its live replicas and the new ones."""


def put_on(cluster: Cluster, changes: Changes, id: str, moves: Moves, rate: int, live: Collection[int]) -> str | None:
    """Throttles moves before they start. Returns why not: others have a throttle there, or the cluster refuses this one.

    id: of the throttle, unique in the plan. rate: bytes per second and broker. live: the brokers that are up.
    """
    listed = [Move(*place, tuple(before), tuple(after)) for place, (before, after) in sorted(moves.items())]
    step = Step(id, "reassign", "", tuple(listed))
    # Looked at before a row is written, since a restore may meet the same throttle every 30 seconds.
    brokers = [Resource(ResourceType.BROKER, str(broker)) for broker in sorted(live)]
    own = cluster.overrides([CLUSTER_WIDE, *brokers, *map(of_topic, step.topics)])
    if others := throttles.foreign(cluster, own, changes.state(), step.topics):
        return f"others throttle brokers or topics: {partitions.listed(others)}"
    try:
        throttles.put_on(cluster, changes, step, rate)
    except Stopped as stopped:
        return str(stopped)
    return None


def open_rows(changes: Changes) -> list[Row]:
    """The throttles that are to be put back, in the order of their rows."""
    rows = changes.state()
    throttled = [row for row in rows.values() if row.kind == THROTTLE and is_open(row, rows)]
    return sorted(throttled, key=lambda row: row.captured_at)


def last_rate(changes: Changes) -> int | None:
    """The bytes per second and broker of the last throttle of an open move, also if it was put back; None if there was none.

    All outages of a cluster share one plan. The throttle of an earlier one says nothing of what this one's approver chose.
    """
    state = changes.state()
    opened = outage.open_rows(state)
    rows = [row for row in state.values() if row.kind == THROTTLE and row.step in opened]
    last = max(rows, key=lambda row: row.captured_at, default=None)
    rates = [int(one["value"]) for one in last.becomes if one["setting"] in throttles.RATES] if last else []
    return max(rates, default=None)


def are_over(cluster: Cluster, changes: Changes) -> bool:
    """Can throttles be put back now, since none of their topics is being moved? Nothing is changed."""
    rows = open_rows(changes)
    reading = _ended(cluster, rows) if rows else None
    return reading is not None and any(throttles.can_put_back(cluster, row, reading) for row in rows)


def _ended(cluster: Cluster, rows: Sequence[Row]) -> Reading | None:
    """A reading that shows that none of their topics is being moved; None if one is."""
    topics = {topic for row in rows for topic in row.topics}
    reading = cluster.read(topics)
    moving = any(p.moving for p in reading.partitions.values()) or any(
        place.topic in topics for place in reading.moving
    )
    return None if moving else reading


def lift(cluster: Cluster, changes: Changes) -> list[str]:
    """Puts the throttles back if none of their topics is being moved. The cluster must be claimed. Returns what stays."""
    rows = open_rows(changes)
    reading = _ended(cluster, rows) if rows else None
    if reading is None:
        return []
    # The last one first: where two name a topic or a broker, its value is in force.
    return [text for row in reversed(rows) for text in throttles.put_back(cluster, changes, row, reading)]
