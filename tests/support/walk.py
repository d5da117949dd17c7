"""The assignor's walk as a naive search over all possibilities, client by client: an oracle for small applications."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations

from durability.streams.placement import Kinds

Tags = Sequence[Mapping[str, str]]
"""Each client's tags, by position."""


def excluded_after(tags: Tags, aware: Sequence[str], used: Sequence[int]) -> set[int]:
    """The excluded clients after using these clients in this order, the active's first."""
    entries: set[tuple[str, str]] = set()
    for count, client in enumerate(used, 1):
        for tag in aware:
            if tag not in tags[client]:
                continue
            if len({t[tag] for t in tags if tag in t}) <= count:
                entries = {(key, value) for key, value in entries if key != tag}
            else:
                entries.add((tag, tags[client][tag]))
    return {n for n, t in enumerate(tags) if any(t.get(key) == value for key, value in entries)}


def sets(tags: Tags, aware: Sequence[str], active: int, standbys: int) -> set[frozenset[int]]:
    """Every set of clients that a sequence of not excluded clients yields."""

    def walk(used: tuple[int, ...]) -> Iterator[frozenset[int]]:
        others = set(range(len(tags))) - set(used)
        missing = min(standbys, len(tags) - 1) - (len(used) - 1)
        if missing <= 0:
            yield frozenset(used[1:])
            return
        free = others - excluded_after(tags, aware, used)
        if not free:
            for rest in combinations(sorted(others), missing):
                yield frozenset((*used[1:], *rest))
        for client in free:
            yield from walk((*used, client))

    return set(walk((active,)))


def moved(tags: Tags, active: int, found: set[frozenset[int]]) -> set[frozenset[int]]:
    """These sets, and all sets after standbys have moved, one at a time.

    A standby may move to a client that has all tags of the old client, rack-aware or not.
    """
    every, pending = set(found), list(found)
    while pending:
        held = pending.pop()
        for source in held:
            for to in set(range(len(tags))) - held - {active}:
                after = held - {source} | {to}
                allowed = all(tags[to].get(tag) == value for tag, value in tags[source].items())
                if allowed and after not in every:
                    every.add(after)
                    pending.append(after)
    return every


def with_loads(
    tags: Tags, aware: Sequence[str], actives: Sequence[int], standbys: int
) -> set[tuple[int, frozenset[int]]]:
    """The possible (task, clients) if loads count, with one thread per client, over all orders of tasks and all ties.

    Standbys that are left over are placed after the walk over all tasks.

    actives: the client of each task's active.
    """
    found: set[tuple[int, frozenset[int]]] = set()

    def least(loads: list[int], clients: set[int]) -> list[int]:
        lightest = min((loads[c] for c in clients), default=0)
        return [c for c in clients if loads[c] == lightest]

    def walk(order: list[tuple[int, bool]], held: dict[int, list[int]], loads: list[int], pending: list[int]) -> None:
        if not order:
            if pending:
                for rest in set(permutations(pending)):
                    walk([(task, True) for task in rest], held, loads, [])
            else:
                found.update((task, frozenset(used[1:])) for task, used in held.items())
            return
        task, regardless = order[0]
        used = held[task]
        if len(used) > standbys or len(used) == len(tags):
            walk(order[1:], held, loads, pending)
            return
        out = set() if regardless else excluded_after(tags, aware, used)
        free = set(range(len(tags))) - set(used) - out
        if not free:
            walk(order[1:], held, loads, [*pending, task])
            return
        for client in least(loads, free):
            after = list(loads)
            after[client] += 1
            walk(order, {**held, task: [*used, client]}, after, pending)

    start = [actives.count(client) for client in range(len(tags))]
    for order in permutations(range(len(actives))):
        walk([(task, False) for task in order], {task: [c] for task, c in enumerate(actives)}, start, [])
    return found


def better(tags: Tags, aware: Sequence[str], active: int, standbys: frozenset[int]) -> set[frozenset[int]]:
    """Every set of the same size in which no tag is shared by more pairs, and at least one tag by fewer."""

    def shared(clients: frozenset[int]) -> list[int]:
        hosts = (active, *clients)
        return [sum(tags[a].get(t) == tags[b].get(t) for a, b in combinations(hosts, 2)) for t in aware]

    now = shared(standbys)
    others = [c for c in range(len(tags)) if c != active]
    every = (frozenset(c) for c in combinations(others, len(standbys)))
    return {c for c in every if shared(c) != now and all(a <= b for a, b in zip(shared(c), now, strict=True))}


AWARE = ("zone", "cluster", "host")


def application(rng: random.Random, clients: int, untagged: float = 0.0) -> tuple[list[dict], tuple[str, ...]]:
    """Random clients, and which of their tags are rack-aware."""
    values = {tag: rng.randint(1, 4) for tag in AWARE}
    tags = [
        {tag: f"{tag[0]}{rng.randrange(values[tag])}" for tag in AWARE if rng.random() >= untagged}
        for _ in range(clients)
    ]
    return tags, AWARE[: rng.randint(1, 3)]


def kinds_of(tags: Tags, aware: Sequence[str]) -> Kinds:
    """The kinds of these clients, as the module under test defines them."""
    others = [{tag: value for tag, value in client.items() if tag not in aware} for client in tags]
    return Kinds([tuple(client.get(tag) for tag in aware) for client in tags], others)
