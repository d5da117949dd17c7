"""Plans the moves of a cluster: the fewest bytes copied, then the least load of the most loaded broker, then even leaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from durability.remedies.moves import copysets, leaders, topics
from durability.remedies.moves.bounds import Bounds
from durability.remedies.moves.choose import Chooser
from durability.remedies.moves.cluster import Cluster, Floats, Growth, Ints, Loads, Moving
from durability.remedies.moves.model import Copysets, LeftOut, Load, Moved, Name, Problem, Solution
from durability.remedies.moves.place import Placer

TOO_LOADED, NO_ROOM = "too-loaded", "no-room"


def solve(problem: Problem) -> Solution:
    """The plan that takes each topic to its target with the fewest bytes copied, or leaves the topic out with the reason.

    Equal problems have equal plans. Raises ValueError if a broker or a partition is named twice.
    """
    _check(problem)
    cluster = Cluster(problem)
    asked = topics.read(problem, cluster)
    bounds = Bounds(cluster, asked.rules)
    moving, left_out = topics.possible(asked, bounds, cluster)
    placer = _placed(problem, cluster, asked, bounds, moving)
    while True:
        left_out += [LeftOut(topic, "no-room", m.partition.partition) for topic, m in placer.without.items()]
        moving, loads = placer.placed, placer.loads
        most, most_bytes = (_bound(bounds, loads, moving, bytes=bytes) for bytes in (False, True))
        placer.even_out(most, most_bytes)
        placer.exchange(most, most_bytes)
        if not placer.without or not loads.are_too_many():
            break
        # The fair share fell by the topics that are left out.
        placer = _placed(problem, cluster, asked, bounds, moving)
    after = {m.name: m.after() for m in moving}
    order, leading = _led(problem, cluster, asked.moving, after)
    ids = cluster.ids
    changed = {
        name: tuple(ids[b] for b in replicas) for name, replicas in sorted(order.items()) if replicas != asked.now[name]
    }
    bytes_known = any(p.bytes is not None for p in problem.partitions)
    return Solution(
        replicas=changed,
        moved=_moved(moving, bounds, loads, cluster),
        load=Load(_by_id(cluster, loads.before[0]), _by_id(cluster, loads.count), most),
        load_bytes=Load(_by_id(cluster, loads.before[1]), _by_id(cluster, loads.bytes), most_bytes)
        if bytes_known
        else None,
        leaders=leading,
        copysets=_copysets(problem, cluster, {**asked.now, **order}, {out.topic for out in left_out}),
        above_limit=tuple(ids[b] for b in np.flatnonzero(loads.count > loads.allowed)),
        left_out=tuple(sorted(left_out, key=lambda out: out.topic)),
    )


def _placed(
    problem: Problem, cluster: Cluster, asked: topics.Asked, bounds: Bounds, moving: Sequence[Moving]
) -> Placer:
    """These partitions with the choices that they get one after the other, as if they had none."""
    for m in moving:
        m.dropped, m.added = None, ()
    more = sum(max(0, asked.rules[m.rule].size(len(m.replicas)) - len(m.replicas)) for m in moving)
    any_rack = not all(rule.by_rack for rule in asked.rules)
    receivers = cluster.with_room & (any_rack | (cluster.racks >= 0))
    loads = Loads(cluster, problem.partitions, Growth(more, receivers, bounds.by_rack(moving)), problem.limit)
    return Placer(moving, Chooser(cluster, asked.rules, loads))


def _check(problem: Problem) -> None:
    for what, named in (
        ("broker", [b.id for b in problem.brokers]),
        ("partition", [p.name for p in problem.partitions]),
    ):
        twice = [name for name, times in Counter[Any](named).items() if times > 1]
        if twice:
            raise ValueError(f"{what} {twice[0]} is named twice")


def _moved(moving: Iterable[Moving], bounds: Bounds, loads: Loads, cluster: Cluster) -> Moved:
    replicas = size = least_replicas = least_size = unknown = 0
    why: set[str] = set()
    for m in moving:
        least = bounds.fewest(m)
        replicas, size = replicas + len(m.added), size + len(m.added) * m.bytes
        least_replicas, least_size = least_replicas + least, least_size + least * m.bytes
        unknown += len(m.added) if m.partition.bytes is None else 0
        if len(m.added) > least:
            why.add(NO_ROOM if (np.minimum(loads.room, cluster.largest) < m.bytes).any() else TOO_LOADED)
    return Moved(replicas, size, least_replicas, least_size, unknown, tuple(sorted(why)))


def _bound(bounds: Bounds, loads: Loads, moving: Sequence[Moving], *, bytes: bool) -> float:
    before, after = (loads.before[1], loads.bytes) if bytes else (loads.before[0], loads.count)
    return bounds.load(before.astype(np.float64), after.astype(np.float64), moving, bytes=bytes)


def _by_id(cluster: Cluster, numbers: Floats | Ints) -> dict[int, int]:
    return {id: int(n) for id, n in zip(cluster.ids, numbers.tolist(), strict=True)}


def _led(
    problem: Problem, cluster: Cluster, asked: Sequence[Moving], after: Mapping[Name, tuple[int, ...]]
) -> tuple[dict[Name, tuple[int, ...]], Load]:
    """The replicas of the partitions that change, the preferred leader first; and the number of preferred leaders by broker.

    Only partitions of topics that move get another preferred leader, those that move before the others. Another one is live, and
    in sync unless it is new. A partition that doesn't move keeps its order while a replica is out of sync.
    """
    count = np.zeros(len(cluster.ids), np.int64)
    before = count.copy()
    chosen: list[tuple[Name, tuple[int, ...]]] = []
    choices: list[tuple[int, list[int]]] = []
    topics_moving = {topic for topic, _ in after} if problem.reorder else set()
    stays = [m for m in asked if m.partition.topic in topics_moving and m.name not in after and _in_sync(m)]
    moves = [m for m in asked if m.name in after]
    for m in [*stays, *moves]:
        replicas = after.get(m.name, m.replicas)
        able = [b for b in replicas[1:] if cluster.live[b] and (b in m.added or m.isr is None or b in m.isr)]
        could = _leaders(m, [replicas[0], *able], problem, cluster) if problem.reorder else [replicas[0]]
        chosen.append((m.name, replicas))
        choices.append((could[0], could))
    free = {name for name, _ in chosen}
    for p in problem.partitions:
        if p.replicas:
            first = cluster.place[p.replicas[0]]
            before[first] += 1
            count[first] += p.name not in free
    leading, bound = leaders.even(count, choices)
    order = {
        name: (leader, *(b for b in replicas if b != leader))
        for (name, replicas), leader in zip(chosen, leading, strict=True)
    }
    after_count = count + np.bincount(np.array(leading, np.int64), minlength=len(count))
    return order, Load(_by_id(cluster, before), _by_id(cluster, after_count), bound)


def _leaders(moving: Moving, able: list[int], problem: Problem, cluster: Cluster) -> list[int]:
    """Those of the replicas that could be the preferred leader.

    If a broker outside a set of `not_led` leads, or is preferred, none of the set could.
    """
    partition = moving.partition
    for barred in problem.not_led.get(partition.topic, ()):
        if {partition.leader, cluster.ids[moving.replicas[0]]} - {None, *barred}:
            able = [b for b in able if cluster.ids[b] not in barred] or able
    return able


def _in_sync(moving: Moving) -> bool:
    """Is no replica of the partition known to be out of sync?"""
    return moving.isr is None or moving.isr >= set(moving.replicas)


def _copysets(
    problem: Problem, cluster: Cluster, after: Mapping[Name, tuple[int, ...]], left_out: set[str]
) -> Copysets:
    then: list[copysets.Placed] = []
    now: list[copysets.Placed] = []
    sorted_ids: dict[tuple[int, ...], tuple[int, ...]] = {}
    target_isr = {topic: t.min_isr for topic, t in problem.targets.items() if topic not in left_out}
    for p in problem.partitions:
        if not p.replicas:
            continue
        least = problem.min_isr.get(p.topic)
        ids = p.replicas
        if ids not in sorted_ids:
            sorted_ids[ids] = tuple(sorted(cluster.place[b] for b in ids))
        now.append((sorted_ids[ids], least))
        replicas = after.get(p.name)
        wanted = target_isr.get(p.topic)
        then.append(
            (sorted_ids[ids] if replicas is None else tuple(sorted(replicas)), least if wanted is None else wanted)
        )
    before, of_now = copysets.losses(now, len(cluster.ids))
    afterwards, of_then = copysets.losses(then, len(cluster.ids))
    return Copysets(before, afterwards, of_now, of_then)
