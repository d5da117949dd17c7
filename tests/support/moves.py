"""Judges plans of moves by brute force: tries every placement, every lost rack, and every rack that a broker may be in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import ceil, inf

from durability.remedies.moves.model import Broker, Partition, Problem, Solution, Target


def meets(replicas: Iterable[int], target: Target, brokers: Mapping[int, Broker]) -> bool:
    """Do these replicas meet the target? Racks count as far as the cluster has them."""
    racks = [brokers[b].rack if b in brokers else None for b in replicas]
    there = sorted({b.rack for b in brokers.values() if b.rack is not None})
    named = {rack for rack in racks if rack is not None}
    wanted = max(target.racks or 0, len(racks) if target.own_racks else 0)
    if len(racks) < target.replication_factor or len(named) < min(wanted, len(there)):
        return False
    if target.balanced and there:
        counts = [racks.count(rack) for rack in there]
        if None in racks or max(counts) - min(counts) > 1:
            return False
    if target.acked is not None:
        spanned, least = target.acked
        if any(len(set(of) - {None}) < spanned for of in combinations(racks, least)) or len(named) < spanned:
            return False
    if target.survives_rack:
        anywhere = there or ["only"]
        for assumed in product(anywhere, repeat=racks.count(None)):
            rest = iter(assumed)
            stands = [next(rest) if rack is None else rack for rack in racks]
            for lost in anywhere:
                left = sum(rack != lost for rack in stands)
                if left < target.min_isr or len(stands) - left >= target.min_isr:
                    return False
    return True


def asks_racks(target: Target, brokers: Mapping[int, Broker]) -> bool:
    asks = (target.racks or 1) > 1 or target.own_racks or target.balanced or target.acked or target.survives_rack
    return bool(asks) and any(b.rack is not None for b in brokers.values())


def receivers(problem: Problem, target: Target, room: bool = True) -> set[int]:
    """The brokers that may get new replicas of a topic, apart from the size of these."""
    brokers = {b.id: b for b in problem.brokers}
    return {
        b.id
        for b in problem.brokers
        if b.live
        and b.id not in problem.avoid
        and (b.rack is not None or not asks_racks(target, brokers))
        and (not room or (b.room and room_of(b, problem) > 0))
    }


def room_of(broker: Broker, problem: Problem) -> float:
    if broker.usable_bytes is None:
        return float("inf")
    total = broker.usable_bytes if broker.total_bytes is None else broker.total_bytes
    return broker.usable_bytes - problem.margin_disk * total


def largest_on(broker: Broker, problem: Problem) -> float:
    """The bytes of the largest replica that fits in each log dir."""
    dirs = [replace(broker, usable_bytes=usable, total_bytes=total) for usable, total in broker.log_dirs]
    return min((room_of(d, problem) for d in dirs), default=float("inf"))


def size_of(partition: Partition, target: Target) -> int:
    most = len(partition.replicas) if target.at_most is None else max(target.at_most, target.replication_factor)
    return max(min(len(partition.replicas), most), target.replication_factor)


def placements(problem: Problem, partition: Partition, target: Target, room: bool = True) -> Iterator[frozenset[int]]:
    """Every set of replicas that meets the target."""
    brokers = {b.id: b for b in problem.brokers}
    could = sorted(receivers(problem, target, room) | set(partition.replicas))
    for chosen in combinations(could, size_of(partition, target)):
        if meets(chosen, target, brokers):
            yield frozenset(chosen)


def fewest(problem: Problem, partition: Partition, target: Target, room: bool = True) -> int | None:
    """The fewest new replicas of a partition; None if none suffice. Counts no load."""
    new = [len(chosen - set(partition.replicas)) for chosen in placements(problem, partition, target, room)]
    return min(new, default=None)


def least_load(problem: Problem, topics: Iterable[str], *, bytes: bool = False) -> float:
    """The least load of the most loaded broker, of all plans with the fewest new replicas for these topics."""
    chosen = [p for p in problem.partitions if p.topic in topics]
    ways = [_fewest_ways(problem, p, room=False) for p in chosen]
    return _lowest(problem, list(zip(chosen, ways, strict=True)), bytes, None)


def least_within_limits(problem: Problem, solution: Solution) -> float:
    """The least bytes of the most loaded broker, of all plans that leave out the same topics and copy as little.

    Of the replicas that could go, those on brokers that are down go first. Limits and disks count, and no broker has more
    replicas than the one with the most in this plan. Infinite if there is no such plan.
    """
    out = {left.topic for left in solution.left_out}
    chosen = [p for p in problem.partitions if p.topic in problem.targets and p.topic not in out]
    live = {b.id for b in problem.brokers if b.live}
    ways = []
    for p in chosen:
        least = _fewest_ways(problem, p, room=True)
        down = {way: len(set(p.replicas) - way - live) for way in least}
        ways.append([way for way in least if down[way] == max(down.values())])
    top = max(solution.load.after.values())
    most = {b: min(n, top) for b, n in limits(problem, solution).items()}
    return _lowest(problem, list(zip(chosen, ways, strict=True)), True, most)


def _fewest_ways(problem: Problem, p: Partition, room: bool) -> list[frozenset[int]]:
    """The placements of a partition with the fewest new replicas."""
    brokers, target = {b.id: b for b in problem.brokers}, problem.targets[p.topic]
    found = list(placements(problem, p, target, room))
    if room:
        fits = [b for b, broker in brokers.items() if (p.bytes or 0) <= largest_on(broker, problem)]
        found = [way for way in found if way - set(p.replicas) <= set(fits)]
    least = min((len(way - set(p.replicas)) for way in found), default=0)
    return [way for way in found if len(way - set(p.replicas)) == least]


def _lowest(
    problem: Problem,
    chosen: list[tuple[Partition, list[frozenset[int]]]],
    bytes: bool,
    most: Mapping[int, float] | None,
) -> float:
    """The least load of the most loaded broker by branch and bound; infinite if there is no plan.

    chosen: partitions with their placements. most: the replicas that each broker may have; None if limits and disks don't count.
    """
    names = {p.name for p, _ in chosen}
    load: Counter[int] = Counter()
    count: Counter[int] = Counter()
    for p in problem.partitions:
        if p.name not in names:
            load.update(dict.fromkeys(p.replicas or (), (p.bytes or 0) if bytes else 1))
            count.update(p.replicas or ())
    free = {b.id: room_of(b, problem) for b in problem.brokers}
    order = sorted(chosen, key=lambda one: -(one[0].bytes or 0))
    best = inf

    def place(p: Partition, way: frozenset[int], sign: int) -> None:
        for b in way:
            load[b] += sign * ((p.bytes or 0) if bytes else 1)
            count[b] += sign
        for b in way - set(p.replicas):
            free[b] -= sign * (p.bytes or 0)

    def search(number: int) -> None:
        nonlocal best
        if max(load.values(), default=0) >= best:
            return
        if number == len(order):
            best = max(load.values(), default=0)
            return
        p, ways = order[number]
        for way in ways:
            place(p, way, 1)
            if most is None or (
                all(count[b] <= most[b] for b in way) and all(free[b] >= 0 for b in way - {*p.replicas})
            ):
                search(number + 1)
            place(p, way, -1)

    search(0)
    return best


def least_leaders(problem: Problem, solution: Solution) -> int:
    """The least number of partitions that the broker with the most preferred leaders has, of all orders of replicas."""
    brokers = {b.id: b for b in problem.brokers}
    topics = {topic for topic, _ in solution.replicas}
    fixed: Counter[int] = Counter()
    could = []
    for p in problem.partitions:
        replicas = solution.replicas.get(p.name, p.replicas)
        if p.topic not in topics:
            fixed[replicas[0]] += 1
            continue
        new = set(replicas) - set(p.replicas)
        if set(replicas) == set(p.replicas) and p.isr is not None and set(p.isr) < set(p.replicas):
            fixed[replicas[0]] += 1
            continue
        able = [b for b in replicas if b in brokers and brokers[b].live and (p.isr is None or b in p.isr or b in new)]
        stays = next((b for b in p.replicas if b in replicas), replicas[0])
        could.append({stays, *able})
    return min(max((fixed + Counter(leaders)).values(), default=0) for leaders in product(*could))


def broken(problem: Problem, solution: Solution) -> list[str]:
    """What a plan does wrong, whatever it costs."""
    brokers = {b.id: b for b in problem.brokers}
    wrong: list[str] = []
    out = {left.topic for left in solution.left_out}
    load: Counter[int] = Counter()
    arriving: Counter[int] = Counter()
    for p in problem.partitions:
        after = solution.replicas.get(p.name, p.replicas)
        load.update(after or ())
        if p.topic in out or p.topic not in problem.targets:
            wrong += [f"{p.name} changes"] if p.name in solution.replicas else []
            continue
        target = problem.targets[p.topic]
        new = [b for b in after if b not in p.replicas]
        arriving.update(dict.fromkeys(new, p.bytes or 0))
        wrong += [f"{p.name} doesn't fit on {b}" for b in new if p.bytes and p.bytes > largest_on(brokers[b], problem)]
        wrong += [f"{p.name} is on {b}" for b in new if b not in receivers(problem, target)]
        wrong += [] if meets(after, target, brokers) and len(after) == size_of(p, target) else [f"{p.name}: {after}"]
        wrong += [f"{p.name} has a broker twice"] if len(set(after)) < len(after) else []
        lagging = p.isr is not None and set(p.isr) < set(p.replicas)
        wrong += (
            [f"{p.name} is only reordered"] if lagging and after != p.replicas and not {*after} ^ {*p.replicas} else []
        )
        wrong += [] if _in_order(p.replicas, after, problem.reorder) else [f"{p.name}: order of {after}"]
    wrong += [
        f"{b} is full" for b in arriving if b in brokers and arriving[b] and arriving[b] > room_of(brokers[b], problem)
    ]
    most = limits(problem, solution)
    return wrong + [f"{b} has too many" for b in load if load[b] > most[b]]


def limits(problem: Problem, solution: Solution) -> dict[int, float]:
    """By broker, the most replicas that it may have. Those that the plan names as above the limit may keep that."""
    load: Counter[int] = Counter()
    now: Counter[int] = Counter()
    for p in problem.partitions:
        now.update(p.replicas or ())
        load.update(solution.replicas.get(p.name, p.replicas) or ())
    known = [t for t in problem.targets.values() if t.replication_factor is not None]
    could = {b for t in known for b in receivers(problem, t)}
    fair = sum(load[b] for b in could) / max(1, len(could))
    limit = max(ceil(fair), problem.limit * fair)
    brokers = {*now, *load, *(b.id for b in problem.brokers)}
    return {b: load[b] if b in solution.above_limit else max(now[b], limit) for b in brokers}


def _in_order(now: tuple[int, ...], after: tuple[int, ...], reorder: bool) -> bool:
    """Do replicas that stay keep their order, apart from a preferred leader that was put first?"""
    kept = [b for b in after if b in now]
    stays = [b for b in now if b in after]
    if not reorder:
        return kept == stays
    return any(kept == [first, *(b for b in stays if b != first)] for first in (*stays[:1], *stays)) or not kept
