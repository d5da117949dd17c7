"""Minimal killing sets and their counts, against brute force and published figures."""

from __future__ import annotations

import time
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.losses.counting import bad, estimate, larger, probability
from durability.losses.killing_sets import KillingSets, killing_sets, minimal


def made(nodes: int, sets: list[tuple[frozenset[int], int]]) -> KillingSets:
    """Killing sets from sets with their numbers of partitions."""
    rows = [(np.array([list(members)], np.int64), np.array([count], np.int64)) for members, count in sets]
    return killing_sets(nodes, rows)


def listed(sets: KillingSets) -> dict[frozenset[int], int]:
    return {frozenset(members): count for members, count in sets.first(len(sets))}


@st.composite
def hypergraphs(draw, sizes=(1, 5)):
    """Nodes, and sets of 1 to 5 of them with numbers of partitions; some sets occur twice."""
    nodes = draw(st.integers(sizes[1], 11))
    members = st.frozensets(st.integers(0, nodes - 1), min_size=sizes[0], max_size=sizes[1])
    return nodes, draw(st.lists(st.tuples(members, st.integers(1, 9)), max_size=25))


@settings(max_examples=300, deadline=None)
@given(hypergraphs())
def test_sets_are_minimal_and_none_is_missing(drawn):
    nodes, sets = drawn
    counts: dict[frozenset[int], int] = {}
    for members, count in sets:
        counts[members] = counts.get(members, 0) + count
    expected = {s: n for s, n in counts.items() if not any(other < s for other in counts)}
    assert listed(minimal(made(nodes, sets))) == expected


@settings(max_examples=300, deadline=None)
@given(hypergraphs() | hypergraphs(sizes=(2, 5)) | hypergraphs(sizes=(2, 3)))
def test_bad_sets_are_counted_as_enumeration_counts_them(drawn):
    nodes, sets = drawn
    killers = [members for members, _ in sets]
    counted = bad(minimal(made(nodes, sets)))
    for k in (1, 2, 3):
        enumerated = sum(any(s <= set(chosen) for s in killers) for chosen in combinations(range(nodes), k))
        assert counted[k] == enumerated


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_few_nodes_have_few_sets(nodes):
    assert bad(KillingSets(nodes)) == {1: 0, 2: 0, 3: 0}
    everything = minimal(made(nodes, [(frozenset([n]), 1) for n in range(nodes)]))
    assert bad(everything) == {k: comb(nodes, k) for k in (1, 2, 3)}


def test_sets_wider_than_64_bits_and_larger_than_the_sets_to_look_for():
    wide = frozenset(range(100, 4900, 300))
    part = frozenset(list(wide)[:7])
    other = frozenset(range(1, 21))
    sets = minimal(made(5_000, [(wide, 3), (part, 2), (other, 1), (other, 4)]))
    assert listed(sets) == {part: 2, other: 5}


def test_the_smallest_come_first_then_those_that_break_most():
    sets = made(9, [(frozenset(s), n) for s, n in (({0, 1, 2}, 50), ({4, 5}, 1), ({3, 5}, 7), ({3, 4}, 7), ({8}, 1))])
    assert sets.first(4) == [([8], 1), ([3, 4], 7), ([3, 5], 7), ([4, 5], 1)]
    assert sets.first(2) == [([8], 1), ([3, 4], 7)] and sets.first(0) == []


@pytest.mark.parametrize(("copysets", "percent"), [(1_667, 0.157), (275_000, 22.8)])
def test_estimates_are_those_of_the_copysets_paper(copysets, percent):
    """Cidon et al., "Copysets: Reducing the Frequency of Data Loss in Cloud Storage", 2013: 50 of 5,000 nodes fail."""
    rng = np.random.default_rng(7)
    rows = np.unique(np.sort(rng.choice(5_000, (copysets * 2, 3)), axis=1), axis=0)
    rows = rng.permutation(rows[(rows[:, 0] < rows[:, 1]) & (rows[:, 1] < rows[:, 2])])[:copysets]
    sets = minimal(killing_sets(5_000, [(rows, np.ones(len(rows), np.int64))]))
    assert len(sets) == copysets
    assert estimate(sets, 50) * 100 == pytest.approx(percent, abs=0.06 if percent > 1 else 0.0006)


@settings(max_examples=100, deadline=None)
@given(hypergraphs(), st.integers(1, 12))
def test_an_estimate_is_a_probability_and_exact_where_single_nodes_kill(drawn, k):
    nodes, sets = drawn
    reduced = minimal(made(nodes, sets))
    guess = estimate(reduced, min(k, nodes))
    assert 0 <= guess <= 1 + 1e-12
    if reduced.by_size.keys() <= {1}:
        k = min(k, nodes)
        safe = comb(nodes - len(reduced), k)
        assert guess == pytest.approx(1 - safe / comb(nodes, k))


def test_probabilities_and_the_k_that_are_estimated():
    assert probability(3, 4, 2) == 0.5
    assert larger(6) == [] and larger(300) == [6, 15, 30] and larger(5_000) == [50, 100, 250, 500]


def test_a_large_cluster_takes_less_than_five_seconds():
    """300 brokers, 100,000 partitions placed at random, three replicas and min.insync.replicas 2, three classes and two views."""
    rng = np.random.default_rng(1)
    racks = np.arange(300).reshape(3, 100)
    triples = np.stack([rng.choice(rack, 100_000) for rack in racks], axis=1)
    ones = np.ones(len(triples), np.int64)
    pairs = [(triples[:, chosen], ones) for chosen in ((0, 1), (0, 2), (1, 2))]
    began = time.process_time()
    for rows in ([(triples, ones)], [(triples, ones)], pairs) * 2:
        reduced = minimal(killing_sets(300, rows))
        counted = bad(reduced)
        reduced.first(100)
    assert time.process_time() - began < 5
    # Nearly all pairs of brokers in different racks share a partition.
    assert 29_990 <= counted[2] <= 30_000
