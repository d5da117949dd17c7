"""Which min.insync.replicas a step may set now: no less than what is enforced, and no more than what is in sync."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from durability.apply.cluster import Reading, TopicPartition
from durability.apply.partitions import Place, named, place
from durability.plain import plain
from durability.remedies.change.model import Setting, Step


def moving(steps: Iterable[Step], reading: Reading) -> set[str]:
    """The topics with a move that isn't complete."""
    return {
        move.topic
        for step in steps
        for move in step.moves
        if (now := reading.partitions.get(TopicPartition(move.topic, move.partition))) is not None
        and place(now, move.before, move.after) is not Place.AFTER
    }


def weakened(
    lowered: Collection[Setting], steps: Iterable[Step], reading: Reading, least: Mapping[str, int | None]
) -> list[str]:
    """The partitions that enforce more than a value that is set only while replicas move.

    Brokers enforce no more than the number of replicas (KAFKA-15583). A partition that the plan moves counts with its replicas
    before the move: so it was approved. least: the configured min.insync.replicas by topic; None if unknown.
    """
    before = {(move.topic, move.partition): len(move.before) for step in steps for move in step.moves}
    to = {setting.topic: int(setting.value or 0) for setting in lowered}
    found = []
    for name, now in sorted(reading.partitions.items()):
        if name.topic in to:
            most, configured = before.get(name, len(now.replicas)), least.get(name.topic)
            enforced = most if configured is None else min(most, configured)
            if to[name.topic] < enforced:
                found.append(
                    f"stale: {named(name)} enforces {enforced}, and would enforce {to[name.topic]}. Make a new plan"
                )
    return found


def higher(raised: Mapping[str, int | None], least: Mapping[str, int | None]) -> list[str]:
    """The topics whose min.insync.replicas is above the value that a step raises it to: others have raised it since.

    raised: the new value by topic. least: the configured one, inherited or not; None if unknown.
    """
    return [
        f"stale: topic {plain(name)} has a min.insync.replicas of {now}, above {value}. Make a new plan"
        for name, value in sorted(raised.items())
        if value is not None and (now := least.get(name)) is not None and now > value
    ]


def without_headroom(further: Iterable[Setting], steps: Iterable[Step], reading: Reading) -> list[str]:
    """The partitions that no more acks=all writes would reach after the loss of any replica, because of a new value.

    The plan gives each of its partitions more replicas than that. One may have been added since, with fewer.
    further: settings that raise min.insync.replicas above its value from before the plan.
    """
    moved = {(move.topic, move.partition) for step in steps for move in step.moves}
    to = {setting.topic: int(setting.value or 0) for setting in further}
    return [
        f"stale: {named(name)} has {len(now.replicas)} replicas: with min.insync.replicas={to[name.topic]} the loss of any would"
        " stop acks=all writes. Make a new plan"
        for name, now in sorted(reading.partitions.items())
        if name not in moved and len(now.replicas) <= to.get(name.topic, 0)
    ]


def too_few(reading: Reading, least: Mapping[str, int | None], *, caps: bool = False) -> list[str]:
    """The partitions with fewer replicas in sync than min.insync.replicas is to be. least: by topic; None if unknown.

    caps: brokers take it for at most the number of replicas (`PlanFiles`).
    """
    found = [f"what min.insync.replicas of topic {plain(t)} would be is unknown" for t, n in least.items() if n is None]
    for name, now in sorted(reading.partitions.items()):
        stated = least.get(name.topic)
        wanted = stated if stated is None or not caps else min(stated, len(now.replicas))
        if wanted is not None and len(now.isr) < wanted:
            found.append(f"{named(name)} has {len(now.isr)} of {wanted} replicas in sync that the new value requires")
    return found
