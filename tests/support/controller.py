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
        if self.leader not in self.live:
            return "LEADER_NOT_AVAILABLE"
        if len(self.isr) < self.m:
            return "NOT_ENOUGH_REPLICAS"
        # The leader waits for all members of the ISR.
        return "NONE" if set(self.isr) <= self.live else "REQUEST_TIMED_OUT"

    def without(self, brokers: Iterable[int]) -> Played:
        """A copy in which these brokers are dead, and not fenced yet."""
        return replace(self, live=self.live - set(brokers), isr=list(self.isr), elr=list(self.elr), deleted=False)


def after(partition: Played, lost: Iterable[int]) -> tuple[set[tuple[str, int | None]], bool]:
    """What the partition may answer, with its leader, after the loss in any order; and may records be deleted?"""
    ends = fenced(partition, [b for b in lost if b in partition.live])
    return {(end.answer(), end.leader) for end in ends}, any(end.deleted for end in ends)


def fenced(partition: Played, brokers: Iterable[int], kept: bool = True) -> list[Played]:
    """The partition after the brokers were fenced, in each order. kept: have the controllers a majority? Else nothing is."""
    if not kept:
        return [partition.without(brokers)]
    ends = []
    for order in permutations(b for b in brokers if b in partition.replicas):
        played = partition.without(())
        for broker in order:
            played.fence(broker)
        ends.append(played)
    return ends
