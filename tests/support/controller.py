"""A KRaft controller and one partition, played broker by broker: an oracle for losses, independent of the Spark rules.

Written from Kafka's sources (ReplicationControlManager, PartitionChangeBuilder of 4.0): fencing a broker removes it from the ISR,
elects a leader, and keeps the ELR.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import permutations


@dataclass
class Played:
    """One partition. full: the replicas that have every acknowledged record. m: the effective min ISR."""

    replicas: list[int]
    leader: int | None
    isr: list[int]
    elr: list[int]
    m: int
    elr_on: bool
    unclean: bool
    live: set[int]
    full: set[int] = field(default_factory=set)
    deleted: bool = False

    def fence(self, broker: int) -> None:
        self.live.discard(broker)
        if broker not in self.replicas:
            return
        isr = [b for b in self.isr if b != broker]
        if self.elr_on:
            ever = [*self.elr, *(b for b in self.isr if b not in self.elr)]
            self.elr = [] if len(isr) >= self.m else [b for b in ever if b not in isr]
            self.isr = isr
        elif isr or broker not in self.isr:
            self.isr = isr
        if self.leader == broker:
            self.leader = None
            self.elect()

    def elect(self) -> None:
        in_sync = [b for b in self.replicas if b in self.isr and b in self.live]
        eligible = [b for b in self.replicas if b in self.elr and b in self.live and not self.isr]
        anyone = [b for b in self.replicas if b in self.live] if self.unclean else []
        for clean, candidates in ((True, in_sync), (True, eligible), (False, anyone)):
            if not candidates:
                continue
            self.leader = candidates[0]
            if not in_sync:
                self.isr, self.elr = [self.leader], [b for b in self.elr if b != self.leader and clean]
            if not clean and self.leader not in self.full and self.full & set(self.replicas):
                self.deleted = True
            return

    def answer(self) -> str:
        if self.leader is None:
            return "LEADER_NOT_AVAILABLE"
        return "NONE" if len(self.isr) >= self.m else "NOT_ENOUGH_REPLICAS"


def after(partition: Played, lost: Iterable[int]) -> tuple[set[tuple[str, int | None]], bool]:
    """What the partition may answer, with its leader, after the loss in any order; and may records be deleted?"""
    outcomes, deleted = set(), False
    for order in permutations([b for b in lost if b in partition.live]):
        played = replace(partition, live=set(partition.live), isr=list(partition.isr), elr=list(partition.elr))
        for broker in order:
            played.fence(broker)
        outcomes.add((played.answer(), played.leader))
        deleted |= played.deleted
    return outcomes, deleted
