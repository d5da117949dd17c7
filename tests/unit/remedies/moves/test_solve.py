"""Plans of tiny clusters against brute force, and small ones whose best plan is known."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isinf
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from durability.remedies.moves.model import Broker, LeftOut, Partition, Problem, Target
from durability.remedies.moves.solve import solve
from tests.support.moves import broken, fewest, least_leaders, least_load, least_within_limits, placements

GB = 10**9
TINY = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def targets(draw, racks):
    copies = draw(st.integers(1, 4))
    least = draw(st.integers(1, copies))
    return Target(
        copies,
        racks=draw(st.sampled_from([None, 1, 2, 3])),
        own_racks=draw(st.booleans()) and draw(st.booleans()),
        balanced=draw(st.booleans()) and draw(st.booleans()),
        acked=draw(st.sampled_from([None, None, (2, least)])) if racks else None,
        survives_rack=bool(racks) and draw(st.booleans()),
        min_isr=least,
        at_most=draw(st.sampled_from([None, None, copies, copies + 1])),
    )


@st.composite
def problems(draw, sizes=(1, 5, 40), partitions=4):
    """A few brokers in up to three racks, two topics with targets, and one without."""
    ids = list(range(1, draw(st.integers(2, 6)) + 1))
    racks = draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", None], [None]]))
    brokers = [Broker(id, draw(st.sampled_from(racks)), draw(st.sampled_from([True, True, True, False]))) for id in ids]
    named = any(b.rack for b in brokers)
    wanted = {topic: draw(targets(named)) for topic in ("orders", "stock")}
    made = []
    for number in range(draw(st.integers(1, partitions))):
        replicas = tuple(draw(st.permutations(ids))[: draw(st.integers(1, min(4, len(ids))))])
        topic = draw(st.sampled_from(["orders", "orders", "stock", "other"]))
        isr = draw(st.sampled_from([None, replicas, replicas[:1]]))
        made.append(Partition(topic, number, replicas, replicas[0], isr, draw(st.sampled_from(sizes))))
    avoid = frozenset(draw(st.sampled_from([(), (), (), (1,)])))
    return Problem(brokers, made, wanted, {"orders": 2, "stock": 1, "other": 1}, avoid, reorder=draw(st.booleans()))


@TINY
@given(problems())
def test_a_plan_copies_the_fewest_and_leaves_out_what_is_impossible(problem):
    solution = solve(problem)
    assert broken(problem, solution) == []
    least = {
        p.name: fewest(problem, p, problem.targets[p.topic]) for p in problem.partitions if p.topic in problem.targets
    }
    impossible = {topic for (topic, _), new in least.items() if new is None}
    assert {out.topic for out in solution.left_out} == impossible
    planned = [p for p in problem.partitions if p.name in least and p.topic not in impossible]
    new = {p.name: len(set(solution.replicas.get(p.name, p.replicas)) - set(p.replicas)) for p in planned}
    assert new == {p.name: least[p.name] for p in planned}
    assert solution.moved.replicas == solution.moved.bound_replicas == sum(new.values())
    assert solution.moved.bytes == solution.moved.bound_bytes == sum(new[p.name] * p.bytes for p in planned)
    assert solution.moved.why_not_bound == ()


@TINY
@given(problems(partitions=3))
def test_the_load_is_near_the_best_and_never_below_its_bound(problem):
    solution = solve(problem)
    topics = problem.targets.keys() - {out.topic for out in solution.left_out}
    best, best_bytes = (least_load(problem, topics, bytes=bytes) for bytes in (False, True))
    assert solution.load.bound <= best + 1e-9
    assert solution.load_bytes is None or solution.load_bytes.bound <= best_bytes + 1e-9
    most = max(solution.load.after.values())
    assert best <= most <= best + 1


@TINY
@given(problems(partitions=5))
def test_leaders_are_as_even_as_orders_allow(problem):
    solution = solve(replace(problem, reorder=True))
    most = max(solution.leaders.after.values())
    assert most == least_leaders(problem, solution)
    assert most == ceil(solution.leaders.bound)


@TINY
@given(problems(), st.data())
def test_disks_and_limits_hold(problem, data):
    rooms = [data.draw(st.sampled_from([None, 0, 30, 45, 100])) for _ in problem.brokers]
    totals = [data.draw(st.sampled_from([100, 100, None])) for _ in problem.brokers]
    brokers = [
        replace(b, usable_bytes=room, total_bytes=total, room=data.draw(st.sampled_from([True, True, False])))
        for b, room, total in zip(problem.brokers, rooms, totals, strict=True)
    ]
    dirs = st.sampled_from([((30, 40), (60, 60)), ((100, 100), (12, None)), ()])
    brokers = [replace(b, log_dirs=data.draw(dirs)) for b in brokers]
    tight = replace(problem, brokers=brokers)
    solution = solve(tight)
    assert broken(tight, solution) == []
    assert solution == solve(tight)
    for out in solution.left_out:
        p = next(p for p in problem.partitions if (p.topic, p.partition) == (out.topic, out.partition))
        possible = any(True for _ in placements(tight, p, problem.targets[p.topic], room=False))
        assert (out.why == "no-room") == possible


def few_large(seed: int) -> Problem:
    """A cluster of four to six brokers with three to eight partitions of very different sizes."""
    rng = Random(seed)
    ids = range(1, rng.randint(4, 6) + 1)
    number, named = rng.randint(3, 8), rng.random() < 0.85
    sizes = [int(rng.lognormvariate(20, rng.choice([0.5, 1.5, 2.5]))) for _ in range(number)]
    disk = 3 * max(sum(sizes), 1)
    racks = rng.choice([2, 3])
    brokers = [
        Broker(
            id,
            "abc"[id % racks] if named and rng.random() < 0.95 else None,
            rng.random() < 0.95,
            int(disk * rng.uniform(0.25, 1)) if seed % 3 == 0 else None,
            disk,
            room=rng.random() < 0.97,
        )
        for id in ids
    ]
    partitions = []
    for n, size in enumerate(sizes):
        replicas = tuple(rng.sample(ids, rng.choice([1, 2, 3])))
        partitions.append(Partition(f"t{n % 3}", n, replicas, replicas[0], replicas, size))
    wanted = {
        topic: Target(3, rng.choice([1, 2, 3]), survives_rack=named and rng.random() < 0.5, min_isr=2)
        for topic in ("t0", "t1", "t2")
        if rng.random() < 0.9
    }
    return Problem(brokers, partitions, wanted, avoid=frozenset({1} if rng.random() < 0.1 else ()))


def test_few_large_partitions_reach_the_best_load():
    judged = 0
    for seed in range(300):
        problem = few_large(seed)
        solution = solve(problem)
        assert broken(problem, solution) == [], seed
        if solution.load_bytes is None or solution.moved.why_not_bound:
            continue
        judged += 1
        best = least_within_limits(problem, solution)
        assert solution.load_bytes.bound <= best == max(solution.load_bytes.after.values()), seed
        if solution.above_limit:
            assert isinf(least_within_limits(problem, replace(solution, above_limit=()))), seed
    assert judged > 200


def very_different_sizes(seed: int) -> Problem:
    """A cluster of eight to eleven brokers, one of them empty, in two or three racks, with partitions of very different sizes."""
    rng = Random(seed)
    racks, ids = rng.randint(2, 3), range(1, rng.randint(8, 11) + 1)
    brokers = [Broker(id, "abc"[id % racks] if id < 8 else "b") for id in ids]
    old = ids[:-1]
    partitions = []
    for topic in range(20):
        start, copies, neighbours = rng.randrange(len(old)), rng.choice([1, 1, 2, 3]), rng.random() < 0.5
        for n in range(rng.choice([3, 6, 12])):
            ordered = tuple(old[(start + n + i) % len(old)] for i in range(copies))
            replicas = ordered if neighbours else tuple(rng.sample(old, copies))
            size = int(rng.lognormvariate(21, 2.5))
            partitions.append(Partition(f"t{topic}", n, replicas, replicas[0], replicas, size))
    return Problem(brokers, partitions, {p.topic: Target(3, 2) for p in partitions})


@pytest.mark.parametrize("seed", [19, 55])
def test_many_partitions_change_together_where_single_ones_gain_little(seed):
    problem = very_different_sizes(seed)
    solution = solve(problem)
    assert broken(problem, solution) == []
    assert max(solution.load_bytes.after.values()) <= 1.03 * solution.load_bytes.bound


def cluster(racks: str, **usable: int) -> list[Broker]:
    """Brokers from 1 on, one for each letter; "-" has no rack, a capital letter is down."""
    return [
        Broker(id, None if c == "-" else c.lower(), not c.isupper(), usable.get(f"b{id}"), 100 * GB)
        for id, c in enumerate(racks, 1)
    ]


def topic(*replicas: tuple[int, ...], name: str = "orders", size: int = GB, isr=None) -> list[Partition]:
    return [Partition(name, n, ids, ids[0], isr or ids, size) for n, ids in enumerate(replicas)]


THREE = Target(3, racks=3)


@pytest.mark.parametrize(
    ("racks", "replicas", "target", "expected"),
    [
        pytest.param("abc", [(1,)], THREE, [(1, 2, 3)], id="one to three"),
        pytest.param("aabbcc", [(1, 3)], THREE, [(1, 3, 5)], id="two to three"),
        pytest.param(
            "aabbcc", [(1, 3), (1, 3), (3, 5)], THREE, [(1, 3, 6), (1, 3, 5), (3, 5, 2)], id="on the emptiest"
        ),
        pytest.param("aabbc-", [(6, 1, 3)], THREE, [(1, 3, 5)], id="the broker without a rack goes"),
        pytest.param("aabc", [(1, 2, 3), (1, 3, 4)], THREE, [(2, 3, 4), None], id="of two in a rack the one with more"),
        pytest.param("aaBc", [(1, 2, 3)], Target(3, racks=3), [(1, 3, 4)], id="a replica that is down can stay"),
        pytest.param("Aabc", [(2, 1, 3)], THREE, [(2, 3, 4)], id="of two in a rack the one that is down goes"),
        pytest.param("abc", [(2, 1, 3)], THREE, [None], id="nothing to do"),
        pytest.param("----", [(1, 2)], Target(3, racks=3), [(1, 2, 3)], id="no racks at all"),
        pytest.param("aabb", [(1, 2, 3, 4)], Target(2, racks=2, at_most=3), [(1, 3, 4)], id="too many"),
        pytest.param(
            "aaabc", [(1, 2, 3)], Target(3, survives_rack=True, min_isr=2), [(1, 4, 5)], id="no rack has min ISR"
        ),
        pytest.param("aabbcc", [(1, 2, 3)], Target(3, acked=(2, 2)), [(1, 3, 5)], id="acknowledged in two racks"),
        pytest.param("aabb", [(1, 2)], Target(4, balanced=True), [(1, 2, 3, 4)], id="evenly over two racks"),
    ],
)
def test_the_best_plan_of_a_small_cluster(racks, replicas, target, expected):
    problem = Problem(cluster(racks), topic(*replicas), {"orders": target}, reorder=False)
    found = solve(problem)
    got = [found.replicas.get(("orders", n)) for n in range(len(replicas))]
    assert [None if ids is None else ids for ids in got] == expected
    assert broken(problem, found) == []


@pytest.mark.parametrize(
    ("brokers", "replicas", "target", "avoid", "why"),
    [
        (cluster("ab"), (1, 2), THREE, (), "few-brokers"),
        (cluster("aab"), (1, 2), Target(3, survives_rack=True, min_isr=2), (), "few-racks"),
        (cluster("abC"), (1, 2), THREE, (), "few-brokers"),
        (cluster("abC", b1=1), (1,), Target(2, racks=2), (2,), "avoided"),
        (cluster("abc", b3=20 * GB), (1, 2), THREE, (), "no-room"),
        (cluster("abc", b3=int(20.5 * GB)), (1, 2), THREE, (), "no-room"),
        ([*cluster("ab"), Broker(3, "c", room=False)], (1, 2), THREE, (), "no-room"),
        ([*cluster("ab"), Broker(3, "c", live=None)], (1, 2), THREE, (), "few-brokers"),
        (cluster("ab"), None, THREE, (), "unknown-replicas"),
        (cluster("ab"), (1, 2), Target(None), (), "unknown-target"),
        (cluster("abc"), (1, 2), Target(3, survives_rack=True), (), "unknown-target"),
    ],
)
def test_why_a_topic_is_left_out(brokers, replicas, target, avoid, why):
    partitions = [Partition("orders", 0, replicas, bytes=GB), *topic((1, 2), name="other")]
    found = solve(Problem(brokers, partitions, {"orders": target}, avoid=frozenset(avoid)))
    whole = why == "unknown-target"
    assert found.left_out == (LeftOut("orders", why, None if whole else 0),)
    assert not found.replicas and found.moved.replicas == 0


def test_a_topic_that_is_left_out_doesnt_change_at_all_and_makes_room_for_others():
    partitions = [*topic((1, 2), (1, 2), name="large", size=30 * GB), *topic((1, 2), name="small", size=25 * GB)]
    brokers = cluster("abc", b3=55 * GB)
    found = solve(Problem(brokers, partitions, {"large": THREE, "small": THREE}))
    assert [(out.topic, out.why) for out in found.left_out] == [("large", "no-room")]
    assert set(found.replicas[("small", 0)]) == {1, 2, 3} and found.moved.bytes == 25 * GB


def test_more_is_copied_where_a_disk_is_full():
    # Broker 3 is the only one in rack c, and it is full. So each replica needs another rack.
    brokers = [*cluster("abc", b3=0), Broker(4, "d")]
    found = solve(Problem(brokers, topic((1, 2)), {"orders": Target(3, racks=3)}))
    assert set(found.replicas["orders", 0]) == {1, 2, 4} and found.moved.why_not_bound == ()


def test_a_new_empty_rack_gets_the_third_replica_of_all():
    partitions = topic(*[(1 + n % 2, 3 + n % 2) for n in range(40)])
    problem = Problem(cluster("aabbcc"), partitions, {"orders": THREE})
    found = solve(problem)
    assert broken(problem, found) == []
    assert found.moved.replicas == found.moved.bound_replicas == 40
    assert set(found.load.after.values()) == {20} and found.load.bound == 20
    assert max(found.leaders.after.values()) == 7


def test_racks_can_force_more_than_the_limit():
    partitions = topic(*[(1 + n % 3, 4 + n % 2) for n in range(30)])
    problem = Problem(cluster("aaabbc"), partitions, {"orders": THREE})
    found = solve(problem)
    assert found.above_limit == (6,) and found.load.after[6] == 30 == found.load.bound
    assert broken(problem, found) == [] and found.left_out == ()


def test_a_broker_or_a_partition_that_is_named_twice_is_an_error():
    with pytest.raises(ValueError, match="broker 1 is named twice"):
        solve(Problem([Broker(1), Broker(1)], [], {}))
    with pytest.raises(ValueError, match=r"partition .+orders.+ is named twice"):
        solve(Problem([Broker(1)], topic((1,)) * 2, {}))


def test_copysets_count_what_pairs_and_triples_break():
    found = solve(Problem(cluster("aabbcc"), topic((1,), (1,), (1, 3)), {"orders": THREE}, {"orders": 1}))
    assert (found.copysets.before, found.copysets.after) == (2, len({frozenset(r) for r in found.replicas.values()}))
    pairs, triples = found.copysets.losses_before
    # Broker 1 is in 5 of the 15 pairs, and in 10 of the 20 triples.
    assert (pairs.k, pairs.writes, pairs.data) == (2, pytest.approx(5 / 15), pytest.approx(5 / 15))
    assert triples.data == pytest.approx(10 / 20)
    assert [loss.data for loss in found.copysets.losses_after] == [0, pytest.approx(found.copysets.after / 20)]
