"""Random clusters, and by a played controller what the loss of each of their brokers and racks breaks: an oracle for losses.

It plays all orders in which brokers are fenced, and both answers to what is unknown. Some brokers and voters have no rack. Some
ISRs list brokers that are down, which are fenced before anything is lost if the controllers have a majority. Where the voters
could not be read none does: whether such a broker is fenced is unknown then, and so is what the rules say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support import controller
from tests.support.controller import Played
from tests.support.topology import document

BROKERS = range(1, 8)
RACKS = ("az1", "az2", "az3")
NONE, OFFLINE = "NONE", "LEADER_NOT_AVAILABLE"
BY_SEVERITY = (NONE, "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", OFFLINE)


class Loss(NamedTuple):
    """What is lost: brokers, and the ids of all nodes. more: the same with the nodes that may be in a lost rack."""

    kind: str
    name: str
    brokers: set[int]
    nodes: set[int]
    more: tuple[set[int], set[int]]


class Outcome(NamedTuple):
    """before, now: the answers to an acks=all write. breaks: the classes that the loss newly breaks, by view."""

    before: str
    now: str
    leader: int | None
    breaks: set[str]


@dataclass
class Partition:
    played: Played
    down: list[int]
    minimum: int
    ends: list[list[int]]

    def outcome(self, lost: set[int], kept: bool, kept_before: bool, kept_if_up: bool) -> Outcome:
        """kept, kept_before: have the controllers a majority after the loss, and before it? kept_if_up: after it, if all
        brokers were up before?"""
        starts = controller.fenced(self.played, self.down, kept_before)
        results = [(start, end) for start in starts for end in controller.fenced(start, lost & start.live, kept)]
        [before] = {start.answer() for start in starts}
        [(now, leader)] = {(end.answer(), end.leader) for _, end in results}
        sure = self.played.full
        deleted = any(end.deleted and start.full & start.live for start, end in results)
        structural = max((self._whole(end, lost, kept_if_up) for end in self.ends), key=BY_SEVERITY.index)
        every = {broker for end in self.ends for broker in end}
        worst = any(len({*end} & lost) >= min(self.minimum, len(end)) for end in (*self.ends, every))
        found = {
            "now_data": (bool(sure) and sure <= lost) or deleted,
            "now_availability": now == OFFLINE != before,
            "now_writes": now != NONE == before,
            "structural_data": any({*end} <= lost for end in self.ends),
            "structural_availability": structural == OFFLINE,
            "structural_writes": structural != NONE,
            "worst_data": worst,
            "worst_availability": worst and not self.played.unclean,
        }
        return Outcome(before, now, leader, {name for name, broken in found.items() if broken})

    def _whole(self, replicas: list[int], lost: set[int], kept: bool) -> str:
        m = min(self.minimum, len(replicas))
        placed = Played(
            replicas, replicas[0], list(replicas), [], m, False, self.played.unclean, {*BROKERS}, {*replicas}
        )
        return controller.fenced(placed, lost, kept)[0].answer()


@dataclass
class Cluster:
    """racks: by broker. voters: their racks. missing: voters without a vote. quorum_read: could the voters be read? down:
    brokers that are."""

    document: dict[str, Any]
    partitions: dict[str, Partition]
    racks: dict[int, str | None]
    voters: dict[int, str | None]
    missing: set[int]
    quorum_read: bool
    down: set[int]

    def kept(self, lost: Iterable[int] = (), up: Iterable[int] = ()) -> set[bool]:
        """May the controllers have a majority without these nodes? up: brokers that are down and count as up."""
        left = [voter for voter in self.voters if voter not in self.missing - {*up} and voter not in lost]
        return {len(left) > len(self.voters) // 2} if self.quorum_read else {True, False}

    def losses(self) -> Iterator[Loss]:
        """The loss of each broker, and of each rack with its controllers."""
        for broker in BROKERS:
            yield Loss("broker", str(broker), {broker}, {broker}, ({broker}, {broker}))
        voters = self.voters if self.quorum_read else {}
        unplaced = {broker for broker, rack in self.racks.items() if rack is None}
        unplaced_voters = {v for v, rack in voters.items() if rack is None and self.racks.get(v) is None}
        named = {rack for rack in self.racks.values() if rack}
        for rack in sorted(named | {r for r in voters.values() if r}) if named else ():
            brokers = {broker for broker, of in self.racks.items() if of == rack}
            nodes = brokers | {voter for voter, of in voters.items() if of == rack}
            yield Loss("rack", rack, brokers, nodes, (brokers | unplaced, nodes | unplaced | unplaced_voters))

    def outcomes(self, partition: Partition, brokers: set[int], nodes: set[int]) -> list[Outcome]:
        """By each reading of what is unknown. A majority that is left after the loss was there before."""
        [*if_up] = self.kept(nodes, self.down)
        readings = [(kept, before) for kept in self.kept(nodes) for before in self.kept() if before or not kept]
        return [
            partition.outcome(brokers, kept, before, kept if len(if_up) > 1 else if_up[0]) for kept, before in readings
        ]

    def costs(self) -> dict[tuple[str, str | None], Counter[str]]:
        """By kind and name of a loss: the partitions that it breaks by class, and for how many that is `unknown`."""
        found: dict[tuple[str, str | None], Counter[str]] = {("already", None): self._already()}
        for loss in self.losses():
            counted = found[loss.kind, loss.name] = Counter()
            for partition in self.partitions.values():
                least = [one.breaks for one in self.outcomes(partition, loss.brokers, loss.nodes)]
                most = [one.breaks for one in self.outcomes(partition, *loss.more)]
                breaks = set.intersection(*least)
                counted.update(breaks)
                counted["unknown"] += bool(set.union(*least, *most) - breaks)
        return {key: +counted for key, counted in found.items()}

    def _already(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for partition in self.partitions.values():
            before = {one.before for one in self.outcomes(partition, set(), set())}
            found["now_data"] += not partition.played.full
            found["now_availability"] += before == {OFFLINE}
            found["now_writes"] += NONE not in before
            found["unknown"] += len({answer == NONE for answer in before}) + len({a == OFFLINE for a in before}) > 2
        return found


def drawn(seed: int) -> Cluster:
    """A random cluster. Its document's id is c and the seed."""
    draw = random.Random(seed)
    racked = draw.random() < 0.5
    racks = {broker: draw.choice(RACKS if racked else (*RACKS, None)) for broker in BROKERS}
    down = set(draw.sample(BROKERS, draw.choice((0, 1, 1, 2))))
    count = draw.choice((1, 3, 3, 5))
    ids = draw.sample(BROKERS, count) if draw.random() < 0.4 else range(101, 101 + count)
    voters = {v: racks[v] if v in racks and draw.random() < 0.7 else draw.choice((*RACKS, "hub", None)) for v in ids}
    missing = {voter for voter in voters if voter in down or draw.random() < 0.15}
    # The leader of the quorum isn't missing.
    leader = next((voter for voter in voters if voter not in missing), min(voters))
    missing.discard(leader)
    quorum_read, elr_on = draw.random() < 0.85, draw.random() < 0.5
    partitions, lines = {}, []
    for number in range(20):
        name = f"t{number}"
        partitions[name], cells = _drawn_partition(
            draw, down, elr_on, quorum_read, 7 if number == 0 else draw.randint(1, 5)
        )
        lines.append(f"{name} {' '.join(cells)}")
    made = document(
        "topic leader replicas isr elr adding removing min\n" + "\n".join(lines),
        brokers=" ".join(f"{b}{f':{rack}' if rack else ''}{'!' if b in down else ''}" for b, rack in racks.items()),
        cluster=f"c{seed}",
        features={"eligible.leader.replicas.version": int(elr_on)},
        quorum={
            "leader": leader,
            "observers": [],
            "voters": [
                {"id": v, "rack": rack, "lag_ms": None if v in missing else 0, "live": v not in missing}
                for v, rack in voters.items()
            ],
        },
        unreadable=None if quorum_read else {"/cluster/quorum": "X"},
    )
    for topic in made["topics"]:
        unclean = partitions[topic["name"]].played.unclean
        topic["configs"]["unclean.leader.election.enable"] = str(unclean).lower()
        topic["config_sources"]["unclean.leader.election.enable"] = "topic"
    return Cluster(made, partitions, racks, voters, missing, quorum_read, down)


def _drawn_partition(
    draw: random.Random, down: set[int], elr_on: bool, listing: bool, count: int
) -> tuple[Partition, list[str]]:
    """The partition, and its cells of the document's table. listing: may its ISR list brokers that are down?"""
    replicas, minimum = draw.sample(BROKERS, count), draw.randint(1, 3)
    moves = len(replicas) > 1 and draw.random() < 0.25
    adding = replicas[-1:] if moves else []
    removing = replicas[:1] if moves and len(replicas) > 2 and draw.random() < 0.7 else []
    live, listed = [b for b in replicas if b not in down], listing and draw.random() < 0.5
    pool, m = replicas if listed else live, min(minimum, len(replicas))
    isr, elr = draw.sample(pool, draw.randint(0, len(pool))), []
    if elr_on and len(isr) < m:
        others = [b for b in replicas if b not in isr and (isr or b in down)]
        elr = draw.sample(others, min(len(others), m - len(isr)))
    if not isr and not elr_on:
        isr = [b for b in replicas if b in down][:1] or live[:1]
    leads = [b for b in isr if b in live]
    leader, unclean = draw.choice(leads) if leads else None, bool(leads) and draw.random() < 0.35
    if leads and listed and draw.random() < 0.2:
        leader = next((b for b in isr if b in down), leader)
    played = Played(replicas, leader, isr, elr, m, elr_on, unclean, {*BROKERS} - down, {*isr, *elr})
    cells = [str(leader or "-"), *(",".join(map(str, ids)) or "-" for ids in (replicas, isr, elr, adding, removing))]
    ends = [[b for b in replicas if b not in gone] for gone in (adding, removing)]
    return Partition(played, [b for b in replicas if b in down], minimum, ends), [*cells, str(minimum)]
