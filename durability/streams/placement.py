"""Where Kafka's assignor could have put a task's standbys, and whether a better place exists (KIP-708).

The walk is that of ClientTagAwareStandbyTaskAssignor. For each stateful task it starts at the active's client, with one
client used. For each rack-aware tag of the client used last: if the tag has no more values in the group than clients are
used, what that tag excluded is forgotten; else every client with the same value is excluded. Then the least-loaded client
that isn't excluded and doesn't hold the task gets a standby, and so on; when none is left, the standbys still missing go
to the least-loaded clients regardless of tags.

**Which client is the least loaded is free.** A client's load is its tasks divided by its threads; threads aren't on the
wire, and loads depend on the order in which tasks were handled and on the tasks of that moment. For every sequence of
clients that the exclusions allow there are loads under which Kafka's class takes exactly these clients in this order:
loads that rise along the sequence, every other client loaded more (tests/test_streams_assignor.py has Kafka's own class
do so). So a set of standbys is achievable if some sequence of clients none of which was excluded at its turn yields it,
and what Kafka's class places is always achievable.

**Standbys move afterwards.** HighAvailabilityTaskAssignor evens out threads, to any client that agrees with the one left
in all tags of *that* one (isAllowedTaskMovement): between clients with the same tags, which are interchangeable here, and
off a client that lacks a tag to any value of it, the active's own too. Which moves are made depends on loads and threads,
so all of them are achievable.

Clients with the same values of the rack-aware tags are one *kind*; placements are judged once for each shape: the kind of
the active's client, and the kinds of the standbys' clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

Shape = tuple[int, ...]
"""Kinds of the clients that hold a task's standbys, ascending, one entry a client."""

STEPS = 200_000
"""Placements that are looked at for one application, at most: a search takes a second or so, whatever the document."""
LOOKED_AT = 2_000
"""Placements that `Kinds.within_reach` looks at for one kind of active."""
MANY = 60
"""Standbys of one task beyond which no better placement is searched for."""


class TooMany(Exception):
    """There are more placements than are looked at."""


class Kinds:
    """The clients of one application, grouped by the values of its rack-aware tags.

    values: of each client one value per tag, in the order of the tags; None where it doesn't carry that tag. A missing
        tag excludes nobody and is never excluded, as in Kafka; where clients are compared, two without the tag don't
        differ. `kinds`: the distinct ones, `of`: each client's, as an index into `kinds`, `count`: clients of each.
    """

    def __init__(self, values: Sequence[tuple[str | None, ...]], steps: int = STEPS):
        counts = Counter(values)
        self.kinds = sorted(counts, key=lambda kind: [(v is None, v or "") for v in kind])
        number = {kind: n for n, kind in enumerate(self.kinds)}
        self.of = [number[value] for value in values]
        self.count = [counts[kind] for kind in self.kinds]
        self.steps = steps
        self._tags = range(len(self.kinds[0]) if self.kinds else 0)
        self._values = [len({kind[t] for kind in self.kinds} - {None}) for t in self._tags]
        self._alike = [self._sharing(t) for t in self._tags]  # per tag and kind: the kinds with its value, as bits
        self._sources = [[k for k in range(len(self.kinds)) if self._moves(k, to)] for to in range(len(self.kinds))]
        self._produced: dict[tuple[int, Shape], bool] = {}
        self._reach: dict[tuple[int, int], int] = {}
        self._least: dict[tuple[int, int], tuple[int, ...]] = {}
        self._better: dict[tuple[int, int, tuple[int, ...]], Shape | None] = {}

    def _sharing(self, tag: int) -> list[int]:
        bits: Counter = Counter()
        for n, kind in enumerate(self.kinds):
            bits[kind[tag]] |= 1 << n
        return [0 if kind[tag] is None else bits[kind[tag]] for kind in self.kinds]

    def _moves(self, source: int, to: int) -> bool:
        """May a standby be moved from a client of one kind to one of the other? Kafka compares the source's tags only."""
        pairs = zip(self.kinds[source], self.kinds[to], strict=True)
        return all(value is None or value == other for value, other in pairs)

    def _look(self, cost: int = 1) -> None:
        self.steps -= cost
        if self.steps < 0:
            raise TooMany

    def _after(self, excluded: tuple[int, ...], last: int, used: int) -> tuple[int, ...]:
        """What each tag excludes, as bits of kinds, once `last` is the client used last of `used` ones."""
        return tuple(
            before if self.kinds[last][t] is None else 0 if self._values[t] <= used else before | self._alike[t][last]
            for t, before in enumerate(excluded)
        )

    def _free(self, excluded: tuple[int, ...], held: Counter) -> int:
        """The kinds, as bits, with a client that isn't excluded and doesn't hold the task."""
        taken = sum(1 << kind for kind, clients in held.items() if clients >= self.count[kind])
        for bits in excluded:
            taken |= bits
        return ~taken & ((1 << len(self.kinds)) - 1)

    def _start(self, active: int) -> tuple[int, ...]:
        return self._after((0,) * len(self._values), active, 1)

    def produced(self, active: int, standbys: Shape) -> bool:
        """Could Kafka have put the standbys of a task there whose active is on a client of kind `active`?

        Two zones of two clients: the standby can't be where the active is. Raises TooMany.

        >>> kinds = Kinds([("az1",), ("az1",), ("az2",), ("az2",)])
        >>> kinds.produced(0, (1,)), kinds.produced(0, (0,))
        (True, False)
        """
        key = (active, standbys)
        if key not in self._produced:
            # Clients that share no value are never excluded by each other, in whatever order.
            self._produced[key] = not any(self.shared((active, *standbys))) or any(
                self._yields(active, before) for before in self._before(active, standbys)
            )
        return self._produced[key]

    def _before(self, active: int, standbys: Shape) -> Iterator[Shape]:
        """Where the standbys may have been before they were moved, this very place first."""
        shapes = {()}
        for kind in standbys:
            shapes = {tuple(sorted((*shape, source))) for shape in shapes for source in self._sources[kind]}
            shapes = {s for s in shapes if all(n <= self.count[k] for k, n in Counter((active, *s)).items())}
            self._look(len(shapes) - 1)
        yield standbys
        yield from sorted(shapes - {standbys})

    def _yields(self, active: int, standbys: Shape) -> bool:
        all_of_it = Counter((active, *standbys))
        states = [(self._start(active), standbys)]
        seen = set(states)
        while states:
            excluded, left = states.pop()
            used = 1 + len(standbys) - len(left)
            free = self._free(excluded, all_of_it - Counter(left))
            if not left or not free:  # where none is free, the rest goes anywhere
                return True
            for at, kind in enumerate(left):
                if free >> kind & 1 and (at == 0 or left[at - 1] != kind):
                    self._look(1 + len(left) // 16)
                    state = (self._after(excluded, kind, used + 1), left[:at] + left[at + 1 :])
                    if state not in seen:
                        seen.add(state)
                        states.append(state)
        return False

    def within_reach(self, active: int, standbys: int) -> list[int]:
        """Kinds of clients to which Kafka can bring one of so many standbys, ascending.

        Each is in some achievable placement. Where there are very many placements some kinds may be left out.

        >>> Kinds([("az1",), ("az1",), ("az2",), ("az3",)]).within_reach(0, 1)
        [1, 2]
        """
        key = (active, standbys)
        if key not in self._reach:
            self._reach[key] = self._walked(active, standbys)
        others = self._free((), Counter((active,)))
        reach, sources = self._reach[key], self._sources
        return [k for k in range(len(self.kinds)) if others >> k & 1 and any(reach >> s & 1 for s in sources[k])]

    def _walked(self, active: int, standbys: int) -> int:
        everyone = self._free((), Counter((active,)))
        reached, looked = 0, 0
        states = {(self._start(active), (active,))}
        for used in range(1, standbys + 1):
            following = set()
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
                for kind in range(len(self.kinds)):
                    if used < standbys and free >> kind & 1 and len(following) <= LOOKED_AT:
                        state = (self._after(excluded, kind, used + 1), tuple(sorted((*holders, kind))))
                        following.add(state)
            states = following
        return reached

    def shared(self, hosts: Iterable[int]) -> tuple[int, ...]:
        """Per tag, how many pairs of these clients (by kind) don't differ in it; all 0: the ideal of KIP-708.

        >>> Kinds([("az1", "blue"), ("az2", "blue")]).shared((0, 1, 1))
        (1, 3)
        """
        hosts = list(hosts)
        counts = [Counter(self.kinds[kind][t] for kind in hosts) for t in self._tags]
        return tuple(sum(n * (n - 1) // 2 for n in count.values()) for count in counts)

    def _floor(self, active: int, standbys: int) -> tuple[int, ...]:
        """Per tag, as few pairs as so many standbys can share, were it the only tag."""
        least = []
        for t in self._tags:
            room: Counter = Counter()
            for kind, clients in enumerate(self.count):
                room[self.kinds[kind][t]] += clients
            used = Counter({self.kinds[active][t]: 1})
            for _ in range(standbys):
                value = min((v for v in room if used[v] < room[v]), key=lambda v: used[v])
                used[value] += 1
            least.append(sum(n * (n - 1) // 2 for n in used.values()))
        return tuple(least)

    def better(self, active: int, standbys: Shape) -> Shape | None:
        """A better place for as many standbys: in no tag do more pairs of clients share a value, in one fewer do.

        The ideal where it exists: all of the task's clients differ in every tag. None: nothing is better. Raises TooMany.

        >>> kinds = Kinds([("az1",), ("az1",), ("az2",), ("az3",)])
        >>> kinds.better(0, (0, 1)), kinds.better(0, (1, 2))
        ((1, 2), None)
        """
        now = self.shared((active, *standbys))
        key = (active, len(standbys))
        if key not in self._least:
            self._least[key] = self._floor(*key)
        least = self._least[key]
        if now == least:
            return None
        if not any(least):
            ideal = self._searched(active, len(standbys), least)
            if ideal is not None:
                return ideal
        return self._searched(active, len(standbys), now)

    def _searched(self, active: int, standbys: int, limit: tuple[int, ...]) -> Shape | None:
        """A placement within `limit` shared pairs per tag, and below it in one unless it is all 0."""
        key = (active, standbys, limit)
        if key not in self._better:
            if standbys > MANY:
                raise TooMany
            below = sum(limit) - (1 if any(limit) else 0)
            self._better[key] = self._choose((active,), standbys, 0, limit, below)
        return self._better[key]

    def _choose(self, hosts: Shape, left: int, first: int, limit: tuple[int, ...], below: int) -> Shape | None:
        """Adds `left` clients of kinds from `first` on to `hosts`; `below`: of shared pairs in all, at most."""
        if not left:
            return hosts[1:]
        for kind in range(first, len(self.kinds)):
            self._look()
            if hosts.count(kind) < self.count[kind]:
                shared = self.shared((*hosts, kind))
                if sum(shared) <= below and all(n <= most for n, most in zip(shared, limit, strict=True)):
                    found = self._choose((*hosts, kind), left - 1, kind, limit, below)
                    if found is not None:
                        return found
        return None
