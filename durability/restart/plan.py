"""A restart plan: waves of nodes, the bound that proves them the fewest, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from durability.restart.bounds import Bound, lower_bound
from durability.restart.constraints import Constraints, Partitions, constraints, pairs_of
from durability.restart.waves import fewest

LISTED = 20


@dataclass(frozen=True)
class Node:
    """A process that restarts. id: of the broker or controller. rack: None if it is unset or unknown. live: False if it is
    known to be down. voter: does it vote in the controller quorum? leads: is it the quorum's leader?"""

    id: int
    rack: str | None
    live: bool
    broker: bool
    voter: bool = False
    leads: bool = False


@dataclass(frozen=True)
class Limits:
    """margin: replicas that stay in sync above the minimum. most: nodes per wave, None for any. voters: voters per wave.
    seconds: how long fewer waves are searched."""

    margin: int = 0
    most: int | None = None
    voters: int = 1
    seconds: float = 5.0


@dataclass(frozen=True)
class RestartPlan:
    """waves: node ids, stopped together by controlled shutdown; the next wave starts when every ISR is whole.

    bound: no plan has fewer waves. whole: were all brokers up and all replicas in sync? down: nodes that must come back first.
    unavoidable: partitions that no plan spares, with what happens. by_rack: the sets that a wave per rack breaks, with the number
    of partitions and an example. costly: pairs of brokers of a rack that share such a partition, those of most partitions first.
    no_racks: brokers without a known rack.
    """

    waves: tuple[tuple[int, ...], ...]
    bound: Bound
    whole: bool
    down: tuple[int, ...]
    lagging: int
    unavoidable: tuple[tuple[Partitions, str], ...]
    by_rack: tuple[tuple[frozenset[int], int, tuple[str, int]], ...]
    costly: tuple[tuple[tuple[int, int], int, tuple[str, int]], ...]
    no_racks: tuple[int, ...]

    @property
    def proven(self) -> bool:
        return len(self.waves) == self.bound.waves


def plan(partitions: Sequence[Partitions], nodes: Sequence[Node], limits: Limits) -> RestartPlan:
    """The plan for a cluster's nodes. If the cluster isn't whole, the waves are those for when it is."""
    lagging = sum(same.count for same in partitions if same.isr < same.replicas)
    down = tuple(sorted(node.id for node in nodes if not node.live))
    whole = not lagging and not down
    made, unavoidable = constraints(partitions, [node.id for node in nodes], margin=limits.margin, whole=whole)
    voters = {node.id for node in nodes if node.voter}
    # A quorum of one or two voters loses its majority whatever restarts.
    at_once = max(1, min(limits.voters, (len(voters) - 1) // 2))

    def fits(wave: set[int], node: int) -> bool:
        full = limits.most is not None and len(wave) >= limits.most
        return not full and (node not in voters or len(wave & voters) < at_once)

    racks = _racks(nodes)
    bound = lower_bound(made, limits.most, len(voters), at_once)
    waves = fewest(made, racks, fits, bound.waves, limits.seconds)
    broken = [members for wave in racks for members in made.broken_by(wave)]
    return RestartPlan(
        waves=_ordered(waves, nodes),
        bound=bound,
        whole=whole,
        down=down,
        lagging=lagging,
        unavoidable=tuple(unavoidable),
        by_rack=tuple((members, made.counts[members], made.examples[members]) for members in broken),
        costly=_costly(made, broken, racks),
        no_racks=tuple(sorted(node.id for node in nodes if node.rack is None and node.broker)),
    )


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
