"""Finds which placements of standbys Kafka's assignor can produce, and whether a better one exists (KIP-708).

**The walk** is that of ClientTagAwareStandbyTaskAssignor. For each stateful task it starts at the active's client, with one
client used. It looks at each rack-aware tag of the client used last. If the tag has no more values in the group than
clients are used, the tag's exclusions are dropped. Otherwise every client with the same value is excluded. The least-loaded
client that isn't excluded and doesn't have the task gets the next standby. When no client is left, the missing standbys go
to the least-loaded clients regardless of tags.

**Any client may be the least loaded.** A load is tasks divided by threads. Threads aren't on the wire, and loads depend on
the order of tasks. For every sequence of clients that the exclusions allow, there are loads with which Kafka's class takes
exactly this sequence (tests/unit/streams/test_assignor.py runs Kafka's own class). So a set of standbys is achievable if such a
sequence yields it.

**Standbys move afterwards.** HighAvailabilityTaskAssignor balances threads. It moves a standby to any client that has all tags
of the old one, including tags that aren't rack-aware (isAllowedTaskMovement of two clients, 4.3.1). So standbys move between
clients with the same tags, and from a client without a rack-aware tag to any value of it. The moves depend on loads and threads,
so every such placement is achievable.

Clients with the same values of the rack-aware tags are one *kind*. If a client lacks such a tag, the other tags have to be the
same, too. A placement's shape is the kind of the active's client and the kinds of the standbys' clients. Placements of one
shape are evaluated once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

Shape = tuple[int, ...]
"""Kinds of the clients with a task's standbys, ascending, one entry per client."""

STEPS = 500_000
"""The most steps for one application. A step takes microseconds, so every search ends after a second or two. Tasks undecided by
then are unknown."""
LOOKED_AT = 2_000
"""The most placements that `Kinds.within_reach` tries for one kind of active."""
MANY = 60
"""No better placement is searched for a task with more standbys than this."""


class TooMany(Exception):
    """There are more placements than may be tried."""


class Kinds:
    """The clients of one application, grouped by the values of its rack-aware tags.

    values: for each client, one value per tag, in the order of the tags. None: the client lacks the tag. As in Kafka, a missing
        tag excludes no client and isn't excluded. Two clients that lack a tag don't differ in it.
    others: for each client, the tags that aren't rack-aware; {} for all by default.

    kinds: the values of each kind.
    of: the kind of each client, an index into `kinds`.
    count: the number of clients of each kind.
    """

    def __init__(
        self,
        values: Sequence[tuple[str | None, ...]],
        others: Sequence[Mapping[str, str]] | None = None,
        steps: int = STEPS,
    ):
        # If all clients have all rack-aware tags, standbys move only between clients of one kind.
        apart = others if others and any(None in client for client in values) else [{}] * len(values)
        full = [(value, tuple(sorted(more.items()))) for value, more in zip(values, apart, strict=True)]
        counts = Counter(full)
        ordered = sorted(counts, key=lambda kind: ([(v is None, v or "") for v in kind[0]], kind[1]))
        number = {kind: n for n, kind in enumerate(ordered)}
        self.kinds = [value for value, _ in ordered]
        self.of = [number[client] for client in full]
        self.count = [counts[kind] for kind in ordered]
        self.steps = steps
        self._tags = range(len(self.kinds[0]) if self.kinds else 0)
        self._values = [len({kind[t] for kind in self.kinds} - {None}) for t in self._tags]
        self._alike = [self._sharing(t) for t in self._tags]  # per tag and kind: the kinds with its value, as bits
        self._carried = [{(t, v) for t, v in enumerate(value) if v is not None} | set(more) for value, more in ordered]
        self._lacking = [n for n, value in enumerate(self.kinds) if None in value]
        self._moved_from: dict[int, list[int]] = {}
        self._produced: dict[tuple[int, Shape], bool] = {}
        self._reach: dict[tuple[int, int], int] = {}
        self._room = [self._clients_by_value(t) for t in self._tags]
        self._least: dict[int, tuple[int, ...]] = {}
        self._better: dict[tuple[int, int, tuple[int, ...]], Shape | None] = {}

    def _sharing(self, tag: int) -> list[int]:
        bits: Counter = Counter()
        for n, kind in enumerate(self.kinds):
            bits[kind[tag]] |= 1 << n
        return [0 if kind[tag] is None else bits[kind[tag]] for kind in self.kinds]

    def _clients_by_value(self, tag: int) -> list[int]:
        """The number of clients for each value of a tag, ascending. Lacking the tag counts as one value."""
        clients: Counter = Counter()
        for kind, count in zip(self.kinds, self.count, strict=True):
            clients[kind[tag]] += count
        return sorted(clients.values())

    def _sources(self, to: int) -> list[int]:
        """The kinds from which a standby may have moved to this kind. Raises TooMany.

        These are this kind, and kinds with fewer rack-aware tags that agree with it in all of their tags.
        """
        if to not in self._moved_from:
            self._look(1 + len(self._lacking) // 8)
            fewer = (k for k in self._lacking if self._carried[k] <= self._carried[to])
            self._moved_from[to] = [to, *(k for k in fewer if self.kinds[k] != self.kinds[to])]
        return self._moved_from[to]

    def _look(self, cost: int = 1) -> None:
        self.steps -= cost
        if self.steps < 0:
            raise TooMany

    def _after(self, excluded: tuple[int, ...], last: int, used: int) -> tuple[int, ...]:
        """The exclusions of each tag, as bits of kinds, after `last` became the last of `used` clients."""
        after = []
        for tag, before in enumerate(excluded):
            if self.kinds[last][tag] is None:
                after.append(before)
            elif self._values[tag] <= used:
                after.append(0)
            else:
                after.append(before | self._alike[tag][last])
        return tuple(after)

    def _free(self, excluded: tuple[int, ...], held: Counter) -> int:
        """The kinds, as bits, with a client that isn't excluded and doesn't have the task."""
        taken = sum(1 << kind for kind, clients in held.items() if clients >= self.count[kind])
        for bits in excluded:
            taken |= bits
        return ~taken & ((1 << len(self.kinds)) - 1)

    def _start(self, active: int) -> tuple[int, ...]:
        return self._after((0,) * len(self._values), active, 1)

    def produced(self, active: int, standbys: Shape) -> bool:
        """Could Kafka have produced these standbys for a task whose active is on a client of kind `active`? Raises TooMany.

        Example: with two zones of two clients each, the standby can't be in the zone of the active.

        >>> kinds = Kinds([("az1",), ("az1",), ("az2",), ("az2",)])
        >>> kinds.produced(0, (1,)), kinds.produced(0, (0,))
        (True, False)
        """
        key = (active, standbys)
        if key not in self._produced:
            # Clients without a common value never exclude each other, in any order.
            self._produced[key] = not any(self.shared((active, *standbys))) or any(
                self._yields(active, before) for before in self._before(active, standbys)
            )
        return self._produced[key]

    def _before(self, active: int, standbys: Shape) -> Iterator[Shape]:
        """The shapes from which the standbys may have moved to this one, starting with this one."""
        shapes: set[Shape] = {()}
        for kind in standbys:
            shapes = {tuple(sorted((*shape, source))) for shape in shapes for source in self._sources(kind)}
            shapes = {s for s in shapes if all(n <= self.count[k] for k, n in Counter((active, *s)).items())}
            self._look((len(shapes) - 1) * len(standbys))
        yield standbys
        yield from sorted(shapes - {standbys})

    def _yields(self, active: int, standbys: Shape) -> bool:
        all_of_it = Counter((active, *standbys))
        states = [(self._start(active), standbys)]
        seen = set(states)
        while states:
            excluded, left = states.pop()
            self._look(2 + len(standbys))
            used = 1 + len(standbys) - len(left)
            free = self._free(excluded, all_of_it - Counter(left))
            if not left or not free:  # if no client is free, the rest may go anywhere
                return True
            for at, kind in enumerate(left):
                if free >> kind & 1 and (at == 0 or left[at - 1] != kind):
                    state = (self._after(excluded, kind, used + 1), left[:at] + left[at + 1 :])
                    if state not in seen:
                        seen.add(state)
                        states.append(state)
        return False

    def within_reach(self, active: int, standbys: int) -> list[int]:
        """Kinds of clients to which Kafka can bring one of `standbys` standbys, ascending.

        Each is in some achievable placement. If there are very many placements, some kinds may be missing.

        >>> Kinds([("az1",), ("az1",), ("az2",), ("az3",)]).within_reach(0, 1)
        [1, 2]
        """
        key = (active, standbys)
        if key not in self._reach:
            self._reach[key] = self._walked(active, standbys)
        others, reach = self._free((), Counter((active,))), self._reach[key]
        found = [k for k in range(len(self.kinds)) if reach >> k & 1 and others >> k & 1]
        with suppress(TooMany):
            for k in range(len(self.kinds)):
                if others >> k & 1 and not reach >> k & 1 and any(reach >> s & 1 for s in self._sources(k)):
                    found.append(k)
        return sorted(found)

    def _walked(self, active: int, standbys: int) -> int:
        everyone = self._free((), Counter((active,)))
        reached, looked = 0, 0
        states: set[tuple[tuple[int, ...], Shape]] = {(self._start(active), (active,))}
        for used in range(1, standbys + 1):
            following: set[tuple[tuple[int, ...], Shape]] = set()
            for excluded, holders in sorted(states):
                held = Counter(holders)
                free = self._free(excluded, held)
                if not free:
                    reached |= self._free((), held)
                    continue
                reached |= free
                looked += 1
                if reached == everyone or looked > LOOKED_AT:
                    return reached
                for kind in range(len(self.kinds) if used < standbys else 0):
                    if len(following) > LOOKED_AT:
                        break
                    if free >> kind & 1:
                        following.add((self._after(excluded, kind, used + 1), tuple(sorted((*holders, kind)))))
            states = following
        return reached

    def shared(self, hosts: Iterable[int]) -> tuple[int, ...]:
        """By tag, the number of pairs of these clients (by kind) that don't differ in it. All 0 is the ideal of KIP-708.

        >>> Kinds([("az1", "blue"), ("az2", "blue")]).shared((0, 1, 1))
        (1, 3)
        """
        hosts = list(hosts)
        counts = [Counter(self.kinds[kind][t] for kind in hosts) for t in self._tags]
        return tuple(sum(n * (n - 1) // 2 for n in count.values()) for count in counts)

    def _floor(self, standbys: int) -> tuple[int, ...]:
        """By tag, the fewest pairs that can share a value, if it were the only tag.

        The n-th client with a value shares it with n - 1 others. Every value gets one client before any gets a second.
        """
        least = []
        for room in self._room:
            left, pairs, nth = standbys + 1, 0, 0
            while left > 0:
                with_room = min(left, len(room) - bisect_right(room, nth))
                left, pairs, nth = left - with_room, pairs + nth * with_room, nth + 1
            least.append(pairs)
        return tuple(least)

    def better(self, active: int, standbys: Shape) -> Shape | None:
        """A better placement of these standbys; None if there is none. Raises TooMany.

        In a better placement, fewer pairs of clients share a value of one tag, and no more pairs share values of the others.
        The ideal is preferred: all clients of the task differ in every tag.

        >>> kinds = Kinds([("az1",), ("az1",), ("az2",), ("az3",)])
        >>> kinds.better(0, (0, 1)), kinds.better(0, (1, 2))
        ((1, 2), None)
        """
        now = self.shared((active, *standbys))
        if len(standbys) not in self._least:
            self._least[len(standbys)] = self._floor(len(standbys))
        least = self._least[len(standbys)]
        if now == least:
            return None
        if not any(least):
            ideal = self._searched(active, len(standbys), least)
            if ideal is not None:
                return ideal
        return self._searched(active, len(standbys), now)

    def _searched(self, active: int, standbys: int, limit: tuple[int, ...]) -> Shape | None:
        """A placement with at most `limit` shared pairs by tag, and fewer in one tag unless all are 0."""
        key = (active, standbys, limit)
        if key not in self._better:
            if standbys > MANY:
                raise TooMany
            below = sum(limit) - (1 if any(limit) else 0)
            held = [{self.kinds[active][t]: 1} for t in self._tags]
            self._better[key] = self._choose((active,), standbys, 0, held, limit, below)
        return self._better[key]

    def _choose(
        self, hosts: Shape, left: int, first: int, held: list[dict], limit: Sequence[int], below: int
    ) -> Shape | None:
        """Adds `left` clients of kinds from `first` on to `hosts`.

        held: by tag, how many of `hosts` have each value.
        limit, below: how many pairs may still share a value, by tag and in all.
        """
        if not left:
            return hosts[1:]
        tried = None
        for kind in range(first, len(self.kinds)):
            values = self.kinds[kind]
            # A kind with the same values shares as much, and leaves fewer kinds to choose from.
            if values == tried or hosts.count(kind) == self.count[kind]:
                continue
            self._look(1 + len(held) // 4)
            tried = values
            shared = [of.get(value, 0) for of, value in zip(held, values, strict=True)]
            if sum(shared) <= below and all(n <= most for n, most in zip(shared, limit, strict=True)):
                then = [{**of, value: n + 1} for of, value, n in zip(held, values, shared, strict=True)]
                rest = [most - n for most, n in zip(limit, shared, strict=True)]
                found = self._choose((*hosts, kind), left - 1, kind, then, rest, below - sum(shared))
                if found is not None:
                    return found
        return None
