"""Kafka's own ClientTagAwareStandbyTaskAssignor (4.3.1): what it places is achievable, and all that is achievable it
places."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import permutations

import pytest

from durability.streams.placement import Kinds
from tests.support import walk
from tests.support.assignor import Client, KafkaAssignor
from tests.support.walk import application, kinds_of

SHAPES = int(os.environ.get("DURABILITY_ASSIGNOR_SHAPES", "24"))
"""Random applications that Kafka places in each test."""


@pytest.fixture(scope="module")
def kafka_assignor(spark) -> KafkaAssignor:
    return KafkaAssignor(spark)


def judged(kinds: Kinds, placed: Sequence[tuple[set[str], set[str]]]) -> dict[str, bool]:
    """Per task, from (active, standby) a client: could the walk have yielded it?"""
    verdicts = {}
    for client, (active, _) in enumerate(placed):
        for task in active:
            hosts = tuple(sorted(kinds.of[n] for n, (_, standby) in enumerate(placed) if task in standby))
            verdicts[task] = kinds.produced(kinds.of[client], hosts)
    return verdicts


def test_what_kafka_places_is_never_below_achievable(kafka_assignor: KafkaAssignor) -> None:
    rng, placed_tasks = random.Random(4), 0
    for _ in range(SHAPES):
        tags, aware = application(rng, rng.randint(1, 9), untagged=rng.choice([0, 0, 0.3]))
        clients = [Client(t, rng.randint(1, 3)) for t in tags]
        tasks = [f"{n % 2}_{n // 2}" for n in range(rng.randint(1, 12))]
        for task in tasks:
            rng.choice(clients).active.append(task)
        standbys = kafka_assignor.standbys(clients, tasks, rng.randint(1, 4), aware)
        placed = [(set(c.active), s) for c, s in zip(clients, standbys, strict=True)]
        verdicts = judged(kinds_of(tags, aware), placed)
        assert all(verdicts.values()), (tags, aware, placed)
        placed_tasks += len(verdicts)
    assert placed_tasks > 4 * SHAPES


def test_nor_is_what_it_places_when_tasks_are_balanced_over_threads_afterwards(kafka_assignor: KafkaAssignor) -> None:
    """HighAvailabilityTaskAssignor, Streams' default: actives, standbys by their tags, then movements between threads."""
    rng, placed_tasks = random.Random(9), 0
    for _ in range(SHAPES):
        tags, aware = application(rng, rng.randint(1, 9), untagged=rng.choice([0, 0.2, 0.4]))
        pets = rng.choice(["a", "ab"])  # a tag that isn't rack-aware bars movements all the same
        clients = [Client({**t, "pet": rng.choice(pets)}, rng.randint(1, 4)) for t in tags]
        tasks = [f"{n % 2}_{n // 2}" for n in range(rng.randint(1, 12))]
        stateful = rng.sample(tasks, rng.randint(1, len(tasks)))
        placed = kafka_assignor.everything(clients, tasks, stateful, rng.choice([1, 1, 2, 4]), aware)
        if placed is not None:
            kinds = kinds_of([c.tags for c in clients], aware)
            verdicts = {t: v for t, v in judged(kinds, placed).items() if t in stateful}
            assert all(verdicts.values()), (clients, aware, placed)
            placed_tasks += len(verdicts)
    assert placed_tasks > 2 * SHAPES


def test_nor_is_a_standby_that_was_moved_off_a_client_without_tags(kafka_assignor: KafkaAssignor) -> None:
    tags = [{"zone": "az2"}, {}, {"zone": "az2"}, {"zone": "az2"}, {"zone": "az1"}]
    clients = [Client(t, threads) for t, threads in zip(tags, (4, 2, 4, 1, 4), strict=True)]
    tasks = ["0_0", "0_1", "0_2", "0_3"]
    placed = kafka_assignor.everything(clients, tasks, tasks, 1, ["zone"])
    beside = [
        task
        for client, (active, _) in enumerate(placed)
        for task in active
        if any(task in standby and tags[n] == tags[client] for n, (_, standby) in enumerate(placed))
    ]
    assert beside == ["0_3"]  # both in az2, though az1 has a client
    assert all(judged(kinds_of(tags, ["zone"]), placed).values())


def test_every_achievable_set_is_one_that_kafka_places_under_some_loads(kafka_assignor: KafkaAssignor) -> None:
    """One stateful task; the other tasks give each client the load that makes Kafka take the sequence at hand."""
    rng, made = random.Random(2), 0
    for _ in range(SHAPES // 3):
        tags, aware = application(rng, rng.randint(2, 5), untagged=rng.choice([0, 0.3]))
        active, standbys = rng.randrange(len(tags)), rng.randint(1, 3)
        possible = sorted(walk.sets(tags, aware, active, standbys), key=sorted)
        for wanted in rng.sample(possible, min(2, len(possible))):
            assert any(
                _placed(kafka_assignor, tags, aware, active, standbys, order) == wanted
                for order in _orders(tags, aware, active, wanted)
            ), (tags, aware, active, wanted)
            made += 1
    assert made >= SHAPES // 3


def _orders(tags, aware, active: int, wanted: frozenset[int]) -> list[tuple[int, ...]]:
    """The sequences in which a walk can take these clients."""
    found = []

    def walked(used: tuple[int, ...]) -> None:
        left = wanted - set(used)
        if not left:
            found.append(used[1:])
            return
        others = set(range(len(tags))) - set(used)
        free = others - walk.excluded_after(tags, aware, used)
        if not free:  # the rest goes to the least-loaded clients, whatever is excluded
            found.extend((*used[1:], *rest) for rest in permutations(sorted(left)))
        for client in sorted(left & free):
            walked((*used, client))

    walked((active,))
    return found


def _placed(kafka, tags, aware, active: int, standbys: int, order: tuple[int, ...]) -> frozenset[int]:
    clients, number = [Client(t) for t in tags], 0
    clients[active].active.append("0_0")
    for n, client in enumerate(clients):
        load = order.index(n) if n in order else len(order) + 1
        for _ in range(load):
            number += 1
            client.active.append(f"1_{number}")
    placed = kafka.standbys(clients, ["0_0"], standbys, aware)
    return frozenset(n for n, held in enumerate(placed) if "0_0" in held)
