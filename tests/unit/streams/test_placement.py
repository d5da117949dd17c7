"""Achievable and better placements, against everything that a naive walk tries."""

from __future__ import annotations

import random
import time
from itertools import combinations

import pytest

from durability.streams.placement import Kinds, TooMany
from tests.support import walk
from tests.support.walk import application, kinds_of


@pytest.mark.parametrize("untagged", [0.0, 0.3])
def test_every_set_of_every_small_application_is_judged_as_the_naive_walk_does(untagged: float) -> None:
    rng = random.Random(708)
    seen = {True: 0, False: 0}
    for _ in range(1500):
        tags, aware = application(rng, rng.randint(1, 6), untagged)
        pets = rng.choice([(), (), "a", "ab"])  # a tag that isn't rack-aware bars movements all the same
        tags = [{**t, "pet": rng.choice(pets)} if pets and rng.random() < 0.7 else t for t in tags]
        kinds = kinds_of(tags, aware)
        active, standbys = rng.randrange(len(tags)), rng.randint(1, 4)
        possible = walk.moved(tags, active, walk.sets(tags, aware, active, standbys))
        others = [c for c in range(len(tags)) if c != active]
        reach = kinds.within_reach(kinds.of[active], min(standbys, len(others)))
        assert set(reach) == {kinds.of[c] for found in possible for c in found}, (tags, aware, active, standbys)
        for chosen in map(frozenset, combinations(others, min(standbys, len(others)))):
            shape = tuple(sorted(kinds.of[c] for c in chosen))
            produced = kinds.produced(kinds.of[active], shape)
            assert produced == (chosen in possible), (tags, aware, active, chosen)
            seen[produced] += 1
    assert min(seen.values()) > 400


def test_better_placements_exist_where_comparing_all_finds_one() -> None:
    rng = random.Random(441)
    seen = {True: 0, False: 0}
    for _ in range(400):
        tags, aware = application(rng, rng.randint(2, 6), untagged=rng.choice([0, 0.2]))
        kinds = kinds_of(tags, aware)
        active = rng.randrange(len(tags))
        others = [c for c in range(len(tags)) if c != active]
        for chosen in map(frozenset, combinations(others, rng.randint(1, min(4, len(others))))):
            shape = tuple(sorted(kinds.of[c] for c in chosen))
            found = kinds.better(kinds.of[active], shape)
            every = {tuple(sorted(kinds.of[c] for c in s)) for s in walk.better(tags, aware, active, chosen)}
            assert (found in every) if every else found is None, (tags, aware, active, chosen)
            seen[bool(every)] += 1
    assert min(seen.values()) > 400


def test_what_comes_about_under_loads_is_never_worse_than_achievable() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(60):
        tags, aware = application(rng, rng.randint(2, 5), untagged=rng.choice([0, 0.3]))
        kinds = kinds_of(tags, aware)
        actives = [rng.randrange(len(tags)) for _ in range(rng.randint(1, 3))]
        for task, clients in walk.with_loads(tags, aware, actives, rng.randint(1, 2)):
            assert kinds.produced(kinds.of[actives[task]], tuple(sorted(kinds.of[c] for c in clients)))
            found += 1
    assert found > 200


def test_a_standby_is_moved_off_an_untagged_client_to_any_zone() -> None:
    kinds = Kinds([("az1",), ("az1",), ("az2",), (None,)])
    at = {kind: n for n, kind in enumerate(kinds.kinds)}
    assert kinds.produced(at["az1",], (at["az1",],))
    assert kinds.within_reach(at["az1",], 1) == sorted(at.values())


def test_a_tag_that_is_not_rack_aware_bars_the_movement() -> None:
    zones = [("1",), ("1",), (None,), ("2",)]
    for others, moves in (({}, True), ({"other": "x"}, False)):
        kinds = Kinds(zones, [{}, {}, others, {}])
        assert kinds.produced(kinds.of[0], (kinds.of[1],)) == moves
        assert (kinds.of[1] in kinds.within_reach(kinds.of[0], 1)) == moves


def test_a_partly_tagged_client_lets_go_where_its_tags_agree() -> None:
    kinds = Kinds([("az1", "c1"), ("az2", "c1"), ("az1", "c2"), ("az2", None), ("az2", "c2")])
    assert kinds.produced(kinds.of[0], (kinds.of[1],))  # by way of the client that tells its zone alone
    assert not kinds.produced(kinds.of[0], (kinds.of[2],))


def test_a_dead_end_is_achievable_and_something_better_exists() -> None:
    # From (az1, blue) the walk may take (az2, green) first; only (az3, green) is left, which shares green.
    tags = [("az1", "blue"), ("az2", "green"), ("az3", "green"), ("az2", "red"), ("az1", "red"), ("az1", "grey")]
    kinds = Kinds(tags)
    of = dict(zip(tags, kinds.of, strict=True))
    ends = tuple(sorted((of["az3", "green"], of["az2", "red"])))
    assert kinds.produced(of["az1", "blue"], ends) and kinds.better(of["az1", "blue"], ends) is None
    dead = tuple(sorted((of["az2", "green"], of["az1", "red"])))
    assert kinds.produced(of["az1", "blue"], dead)
    assert kinds.better(of["az1", "blue"], dead) == ends


def test_a_large_application_is_judged_in_a_moment() -> None:
    rng = random.Random(5)
    values = [(f"z{n % 4}", f"c{n % 7}", f"h{n}") for n in range(400)]
    kinds = Kinds(values)
    for _ in range(5_000):
        active, *standbys = rng.sample(range(400), 3)
        shape = tuple(sorted(kinds.of[s] for s in standbys))
        kinds.produced(kinds.of[active], shape)
        kinds.better(kinds.of[active], shape)


@pytest.mark.parametrize("lacking", [0, 1])
def test_thousands_of_clients_without_a_tag_are_judged_in_a_moment(lacking) -> None:
    kinds = Kinds([(f"z{n}", None if lacking else f"c{n}", "h") for n in range(3_000)])
    assert kinds.produced(0, (1,)) and len(kinds.within_reach(0, 1)) == 2_999


def test_a_search_costs_what_is_charged_for_it() -> None:
    rng = random.Random(3)
    kinds = Kinds([tuple(f"{t}{rng.randrange(4)}" for t in range(5)) for _ in range(300)])
    began, given_up = time.process_time(), 0
    for _ in range(2_000):
        active, *standbys = sorted(rng.sample(range(len(kinds.kinds)), 6))
        try:
            kinds.produced(active, tuple(standbys))
            kinds.better(active, tuple(standbys))
        except TooMany:
            given_up += 1
    assert given_up and time.process_time() - began < 20  # a minute and more, were it not charged


def test_a_hostile_one_stops_at_its_bound() -> None:
    rng = random.Random(6)
    values = [tuple(f"{t}{rng.randrange(9)}" for t in range(5)) for _ in range(300)]
    kinds = Kinds(values, steps=2_000)
    with pytest.raises(TooMany):
        for standbys in range(2, 60):
            kinds.better(0, tuple(range(1, standbys)))
