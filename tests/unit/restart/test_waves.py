"""The search for few waves, and bounds, on random rules and on layouts as Kafka makes them."""

import random
from itertools import combinations

import numpy as np
import pytest

from durability.restart.cliques import largest_clique, largest_without_three
from durability.restart.constraints import Partitions
from durability.restart.cover import cover_bound
from durability.restart.plan import Limits, plan
from durability.restart.rules import bits, rules
from durability.restart.tabu import Tabu
from durability.restart.waves import exact, fewest, greedy
from tests.unit.restart.test_plan import cluster, same, valid


def unaware(brokers: int, partitions: int, replicas: int, minimum: int, per_topic: int = 100) -> list[Partitions]:
    """Placed as Kafka places replicas without racks (AdminUtils.assignReplicasToBrokersRackUnaware)."""
    draw, made = random.Random(0), []
    while len(made) < partitions:
        start, shift = draw.randrange(brokers), draw.randrange(brokers)
        for p in range(per_topic):
            shift += p > 0 and p % brokers == 0
            first = (p + start) % brokers
            others = [(first + 1 + (shift + n) % (brokers - 1)) % brokers for n in range(replicas - 1)]
            made.append(same([first + 1, *(other + 1 for other in others)], minimum, topic=f"t{len(made)}"))
    return made[:partitions]


def drawn_rules(drawn, nodes):
    draw = random.Random(drawn)
    sets = {frozenset(draw.sample(range(nodes), draw.randint(2, 4))): draw.randint(1, 2) for _ in range(nodes)}
    return rules(range(nodes), sets | {frozenset(range(nodes)): nodes - 2})


def obeys(found, made):
    whole = sum(found) == (1 << len(made.ids)) - 1
    return whole and all(made.allows(wave & ~(1 << n), n) for wave in found for n in bits(wave))


def test_where_a_solver_left_a_gap_the_fewest_waves_are_found_and_proven():
    # CP-SAT found 14 waves on such a cluster, with a clique of 11; greedy colouring 19.
    partitions = unaware(60, 1_000, 3, 2)
    made = plan(partitions, cluster(60, racks=0), Limits())
    assert valid(made.waves, partitions)
    assert (len(made.waves), made.bound.waves, made.bound.why, made.proven) == (13, 13, "cover", True)


def test_where_two_replicas_may_stop_fewer_waves_are_found_than_by_greedy_choices():
    draw = random.Random(0)
    partitions = [same(draw.sample(range(1, 21), 4), 2, topic=f"t{n}") for n in range(200)]
    first = greedy(rules(range(1, 21), {p.replicas: 2 for p in partitions}), [1 << n for n in range(20)])
    made = plan(partitions, cluster(20, racks=0), Limits())
    assert valid(made.waves, partitions) and len(made.waves) < len(first)


def test_one_cluster_has_one_plan():
    partitions = unaware(40, 300, 3, 2)
    plans = [plan(partitions[::order], cluster(40), Limits()).waves for order in (1, 1, -1)]
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("drawn", range(8))
def test_the_search_obeys_the_rules(drawn):
    made = drawn_rules(drawn, 20)
    first = greedy(made, [1 << n for n in range(20)])
    found = fewest(made, first, 1, 0.1)
    assert obeys(first, made) and obeys(found, made) and len(found) <= len(first)


@pytest.mark.parametrize("drawn", range(10))
def test_violations_stay_counted_while_nodes_move(drawn):
    draw = random.Random(drawn)
    made = drawn_rules(drawn, 12)
    search, wave_of = Tabu(made, draw), np.array([draw.randrange(3) for _ in range(12)])
    kept = search._violations(wave_of, 3)
    for _ in range(40):
        node = draw.randrange(12)
        to = draw.choice([wave for wave in range(3) if wave != wave_of[node]])
        expected = search._total(wave_of, 3) + kept[node, to] - kept[node, wave_of[node]]
        search._move(kept, wave_of, node, to)
        assert search._total(wave_of, 3) == expected
        assert (search._violations(wave_of, 3) == kept).all()


@pytest.mark.parametrize("drawn", range(10))
def test_bounds_hold(drawn):
    draw = random.Random(drawn)
    pairs = [pair for pair in combinations(range(9), 2) if draw.random() < 0.5]
    made = rules(range(9), {frozenset(pair): 1 for pair in pairs})
    waves = exact(made, greedy(made, [1 << n for n in range(9)]), 0)
    clique = list(bits(largest_clique(made, len(waves))))
    assert all(frozenset(pair) in {frozenset(p) for p in pairs} for pair in combinations(clique, 2))
    largest = max(
        size
        for size in range(1, 10)
        for some in combinations(range(9), size)
        if all(p in pairs for p in combinations(some, 2))
    )
    assert len(clique) == largest <= cover_bound(made, 9) <= len(waves)


def test_a_ring_of_five_needs_three_waves():
    made = rules(range(5), {frozenset([n, (n + 1) % 5]): 1 for n in range(5)})
    assert (largest_clique(made, 3).bit_count(), cover_bound(made, 5)) == (2, 3)


@pytest.mark.parametrize("drawn", range(6))
def test_no_three_of_the_nodes_of_a_bound_may_stop_together(drawn):
    draw = random.Random(drawn)
    sets = {frozenset(draw.sample(range(9), draw.randint(3, 5))): 2 for _ in range(25)}
    sets |= {frozenset(draw.sample(range(9), 2)): 1 for _ in range(3)}
    made = rules(range(9), sets)
    found = list(bits(largest_without_three(made)))
    for some in combinations(found, 3):
        assert any(len(members & set(some)) > most for members, most in sets.items()), some
    assert len(found) >= 3 and -(-len(found) // 2) <= len(exact(made, greedy(made, [1 << n for n in range(9)]), 0))
