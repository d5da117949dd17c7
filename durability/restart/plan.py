"""A restart plan: waves of nodes, the bound that proves them the fewest, and what prevents fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from durability.restart.bounds import Bound, better_bound, lower_bound
from durability.restart.constraints import Constraints, Partitions, constraints, pairs_of
from durability.restart.nodes import Node
from durability.restart.rules import rules
from durability.restart.waves import EXACT, exact, fewest, greedy


@dataclass(frozen=True)
class Limits:
    """margin: replicas that stay in sync above the minimum. most: nodes per wave, None for any. voters: voters per wave.
    seconds: of CPU time, the most for a search of fewer waves; 0: neither waves nor a better bound are searched for."""

    margin: int = 0
    most: int | None = None
    voters: int = 1
    seconds: float = 25.0


@dataclass(frozen=True)
class Unread:
    """What the snapshot lacks. topics: how many have unread partitions. hidden_partitions: those of topics that the auditor may
    not see, None if that is unknown. quorum: are the voters unknown?"""

    topics: int = 0
    hidden_partitions: int | None = 0
    quorum: bool = False


NOTHING = Unread()


@dataclass(frozen=True)
class RestartPlan:
    """waves: node ids, stopped together by controlled shutdown; the next wave starts when every ISR is whole.

    bound: no plan has fewer waves. whole: are all nodes known to be up, and all replicas in sync? down: nodes that must come back
    first. unsure: nodes that may be down. lagging: partitions with replicas out of sync.
    unknown: partitions whose replicas, ISR or minimum are unknown. unread: what else is.
    unavoidable: partitions that no plan spares, with what happens. by_rack: the sets that a wave per rack breaks, with the number
    of partitions and an example. costly: pairs of brokers of a rack that share such a partition, those of most partitions first.
    no_racks: brokers without a known rack. voter_racks, large_racks: racks with more voters, or more nodes, than a wave takes.
    """

    waves: tuple[tuple[int, ...], ...]
    bound: Bound
    whole: bool
    down: tuple[int, ...]
    unsure: tuple[int, ...]
    lagging: int
    unavoidable: tuple[tuple[Partitions, str], ...]
    by_rack: tuple[tuple[frozenset[int], int, tuple[str, int]], ...]
    costly: tuple[tuple[tuple[int, int], int, tuple[str, int]], ...]
    no_racks: tuple[int, ...]
    voter_racks: tuple[str, ...]
    large_racks: tuple[str, ...]
    unknown: int
    unread: Unread

    @property
    def valid(self) -> bool | None:
        """Do the waves keep acks=all writes accepted, but for those of `unavoidable`? None if a fact is unknown that decides."""
        return None if self.unsure or self.unknown or self.unread != NOTHING else True

    @property
    def valid_by_rack(self) -> bool | None:
        """Would a wave per rack be as valid as the waves?"""
        return False if self.by_rack or self.voter_racks or self.large_racks else self.valid

    @property
    def proven(self) -> bool:
        """Are the waves known to be valid, and the fewest?"""
        return self.valid is True and len(self.waves) == self.bound.waves


def plan(
    partitions: Sequence[Partitions], nodes: Sequence[Node], limits: Limits, unread: Unread = NOTHING
) -> RestartPlan:
    """The plan for a cluster's nodes. If the cluster isn't whole, the waves are those for when it is."""
    lagging = sum(same.count for same in partitions if same.isr < same.replicas)
    down = tuple(sorted(node.id for node in nodes if node.live is False))
    unsure = tuple(sorted(node.id for node in nodes if node.live is None))
    whole = not lagging and not down and not unsure
    ids = [node.id for node in nodes]
    made, unavoidable = constraints(partitions, ids, margin=limits.margin, whole=whole)
    waves, bound = shortest(made.capacity, nodes, limits, made.known)
    racks = _racks(nodes)
    broken = [members for wave in racks for members in made.broken_by(wave)]
    return RestartPlan(
        waves=_ordered(waves, nodes),
        bound=bound,
        whole=whole,
        down=down,
        unsure=unsure,
        lagging=lagging,
        unavoidable=tuple(unavoidable),
        by_rack=tuple((members, made.counts[members], made.examples[members]) for members in broken),
        costly=_costly(made, broken, racks),
        no_racks=tuple(sorted(node.id for node in nodes if node.rack is None and node.broker)),
        voter_racks=_crowded((node for node in nodes if node.voter), _voters_at_once(nodes, limits)),
        large_racks=_too_large(nodes, limits),
        unknown=sum(same.count for same in partitions if same.minimum is None),
        unread=unread,
    )


def shortest(
    capacity: Mapping[frozenset[int], int],
    nodes: Sequence[Node],
    limits: Limits,
    known: Mapping[frozenset[int], int] | None = None,
) -> tuple[list[set[int]], Bound]:
    """Waves in which all nodes restart, as few as are found, and the bound: no plan has fewer.

    capacity: sets of nodes, each with how many of it a wave takes at most.
    known: the sets whose number is certain; None: all of `capacity`.
    """
    known = capacity if known is None else known
    ids = [node.id for node in nodes]
    voters = frozenset(node.id for node in nodes if node.voter)
    at_once = _voters_at_once(nodes, limits)
    of_nodes = {frozenset(ids): limits.most or len(ids)}
    of_nodes[voters] = min(at_once, of_nodes.get(voters, at_once))
    of_nodes.update({frozenset((voter, id)): 1 for voter in _alone(nodes) for id in ids if id != voter})
    certain = rules(ids, _tighter(known, of_nodes))
    assumed = certain if known == capacity else rules(ids, _tighter(capacity, of_nodes))

    waves = greedy(assumed, [assumed.mask(rack) for rack in _racks(nodes)])
    bound = lower_bound(certain, known, limits.most, len(voters), at_once, len(waves))
    if len(waves) > bound.waves and len(ids) <= EXACT:
        waves = exact(assumed, waves, bound.waves)
        if certain is assumed and len(waves) > bound.waves:
            bound = Bound(len(waves), "search")
    elif len(waves) > bound.waves and limits.seconds:
        bound = better_bound(certain, bound, len(waves))
        waves = fewest(assumed, waves, bound.waves, limits.seconds)
    return [{*assumed.named(wave)} for wave in waves], bound


def _tighter(capacity: Mapping[frozenset[int], int], more: Mapping[frozenset[int], int]) -> dict[frozenset[int], int]:
    """Both, with the smaller number where both have a set."""
    return {**capacity, **{members: min(most, capacity.get(members, most)) for members, most in more.items()}}


def _voters_at_once(nodes: Iterable[Node], limits: Limits) -> int:
    """How many voters a wave takes at most. In a quorum of one or two, each restarts alone."""
    voters = sum(node.voter for node in nodes)
    return max(1, min(limits.voters, (voters - 1) // 2))


def _alone(nodes: Iterable[Node]) -> frozenset[int]:
    """The voters whose restart costs the quorum its majority, which has no more than two.

    No leader moves and no ISR shrinks meanwhile. So a broker that stops with one takes its partitions offline.
    """
    voters = frozenset(node.id for node in nodes if node.voter)
    return voters if len(voters) < 3 else frozenset()


def _too_large(nodes: Sequence[Node], limits: Limits) -> tuple[str, ...]:
    """The racks that have more nodes than a wave takes."""
    alone = _alone(nodes)
    with_voter = [node for node in nodes if node.rack in {node.rack for node in nodes if node.id in alone}]
    return tuple(sorted({*_crowded(nodes, limits.most or len(nodes)), *_crowded(with_voter, 1)}))


def _crowded(nodes: Iterable[Node], most: int) -> tuple[str, ...]:
    """The racks that have more than `most` of these nodes."""
    counts = Counter(node.rack for node in nodes if node.rack is not None)
    return tuple(sorted(rack for rack, count in counts.items() if count > most))


def _racks(nodes: Iterable[Node]) -> list[set[int]]:
    """The nodes of each rack. A node without a rack is a wave by itself."""
    found: dict[str | int, set[int]] = {}
    for node in sorted(nodes, key=lambda node: (node.rack or "", node.id)):
        found.setdefault(node.rack or node.id, set()).add(node.id)
    return list(found.values())


def _ordered(waves: Iterable[set[int]], nodes: Iterable[Node]) -> tuple[tuple[int, ...], ...]:
    """The wave with the quorum's leader comes last: each change of the leader costs an election."""
    leader = {node.id for node in nodes if node.leads}
    return tuple(tuple(sorted(wave)) for wave in sorted(waves, key=lambda wave: (bool(wave & leader), min(wave))))


def _costly(
    made: Constraints, broken: Sequence[frozenset[int]], racks: Sequence[set[int]]
) -> tuple[tuple[tuple[int, int], int, tuple[str, int]], ...]:
    pairs: Mapping[tuple[int, int], list[frozenset[int]]] = pairs_of(broken, racks)
    counted = [
        (pair, sum(made.counts[members] for members in sets), made.examples[sets[0]]) for pair, sets in pairs.items()
    ]
    return tuple(sorted(counted, key=lambda item: (-item[1], item[0])))
