"""The meaning of each acks value for a partition, by brute force over every ISR, from KIP-926, KIP-1290 and KIP-579.

It uses no formula. Worst cases come from enumerating sets, and unknown racks from enumerating their possible values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

from tests.support.oracle_facts import kip_1290, named

Racks = tuple  # of a partition's replicas: a name, None (no broker.rack) or "?" (unknown)


def completions(racks: Racks) -> Iterator[Racks]:
    """Every way to fill in the unknown racks: an existing name, a new one (also a shared one), or none."""
    unknown = [i for i, rack in enumerate(racks) if rack == "?"]
    names = sorted({r for r in racks if r not in (None, "?")})
    options = [None, *names, *(f"new-{n}" for n in range(len(unknown)))]
    for chosen in product(options, repeat=len(unknown)):
        filled = list(racks)
        for i, rack in zip(unknown, chosen, strict=True):
            filled[i] = rack
        yield tuple(filled)


@cache
def worst_racks(racks: Racks, size: int) -> int | None:
    """The fewest racks that an ISR of `size` of these replicas spans, with any leader; None if there is no such ISR."""
    seen = [named(racks[i] for i in isr) for isr in combinations(range(len(racks)), size) for _leader in isr]
    return min(seen, default=None)


def agreed(values) -> object:
    """The value that all completions share, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def capped(min_isr: int, replicas: int, new: bool) -> int:
    """KAFKA-15583: from 3.7 on no more than the number of replicas."""
    return min(min_isr, replicas) if new else min_isr


@dataclass(frozen=True)
class Case:
    """A partition.

    racks: of its replicas, in order.
    isr, leader, adding, removing: indexes of replicas. The last two are set during a reassignment (then no rack is unknown).
    new: 3.7 or later.
    """

    racks: Racks
    min_isr: int
    isr: tuple[int, ...]
    leader: int | None
    new: bool
    min_racks: int | None = None
    unclean: bool = False
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def ends(self) -> list[Racks]:
        """The replicas' racks once the reassignment is cancelled, and once it is complete."""
        return [
            tuple(rack for i, rack in enumerate(self.racks) if i not in gone) for gone in (self.adding, self.removing)
        ]

    @property
    def minimum(self) -> int:
        return capped(self.min_isr, len(self.racks), self.new)

    def guaranteed(self) -> tuple[set[int], set[int]]:
        """Copies and racks in the worst case, over the possible values of unknown racks. Nothing without an acceptable ISR."""
        if self.adding or self.removing:
            stages = [*self.ends, self.racks]
            sizes = [capped(self.min_isr, len(stage), self.new) for stage in stages]
            held = [worst_racks(stage, size) for stage, size in zip(stages, sizes, strict=True)]
            return ({0}, {0}) if None in held else ({min(sizes)}, {min(held)})
        spans = {worst_racks(racks, self.minimum) for racks in completions(self.racks)}
        return ({0}, {0}) if spans == {None} else ({self.minimum}, spans)

    def refusal(self) -> str | None:
        """appendRecordsToLeader with acks=all, today."""
        if self.leader is None:
            return "LEADER_NOT_AVAILABLE"
        return "NOT_ENOUGH_REPLICAS" if len(self.isr) < self.minimum else None

    def proposed(self) -> str | None:
        """The same with KIP-579's check before the ISR is counted and KIP-1290's after that."""
        if self.leader is None:
            return "LEADER_NOT_AVAILABLE"
        if len(self.racks) - len(self.adding) < self.min_isr:
            return "INCONSISTENT_REPLICATION_FACTOR"
        if len(self.isr) < self.minimum:
            return "NOT_ENOUGH_REPLICAS"
        if (self.min_racks or 1) > 1:
            counts = {kip_1290(racks[i] for i in self.isr) for racks in completions(self.racks)}
            if max(counts) < self.min_racks:
                return "NOT_ENOUGH_RACKS"
        return None

    def retriable(self) -> bool | None:
        """Is there a set of in-sync replicas that would be accepted?"""
        error, proposed = self.refusal(), self.proposed()
        if error == "LEADER_NOT_AVAILABLE":
            return True
        if error == "NOT_ENOUGH_REPLICAS":
            return len(self.racks) >= self.minimum
        if proposed == "NOT_ENOUGH_RACKS":
            return agreed(kip_1290(r) >= self.min_racks for r in completions(min(self.ends, key=kip_1290)))
        return False if proposed else None

    def visible(self) -> bool:
        """From 3.7 on the high watermark doesn't advance below the min ISR."""
        return self.leader is not None and (not self.new or len(self.isr) >= self.minimum)

    def fastest(self) -> int | None:
        """acks=min.insync.replicas: the leader and the fastest followers, whichever they are; None if a rack is unknown."""
        followers = [i for i in self.isr if i != self.leader]
        sets = [(self.leader, *fast) for fast in combinations(followers, self.minimum - 1)]
        known = all(self.racks[i] != "?" for i in self.isr)
        return min(named(self.racks[i] for i in chosen) for chosen in sets) if known else None

    def table(self) -> dict[str, dict]:
        error, led = self.refusal(), self.leader is not None
        leaderless = None if led else error
        copies, racks = map(agreed, self.guaranteed())
        accepted = error is None
        first = {
            "accepted": led,
            "error": leaderless,
            "proposed_error": leaderless,
            "retriable": None if led else True,
            "waits_for": 0,
            "visible_now": self.visible(),
            "survives_leader_loss": False,
        }
        worst = {"copies_worst": copies, "racks_worst": racks}
        of_isr = agreed(named(r[i] for i in self.isr) for r in completions(self.racks))
        one = agreed(worst_racks(r, 1) for r in completions(self.racks))
        leaders = agreed(named([r[self.leader]]) for r in completions(self.racks)) if led else 0
        nothing = {"copies_now": 0, "racks_now": 0, "copies_worst": 0, "racks_worst": 0}
        return {
            "0": {**first, **nothing},
            "1": {**first, "copies_now": int(led), "racks_now": leaders, "copies_worst": 1, "racks_worst": one},
            "all": {
                "accepted": accepted,
                "error": error,
                "proposed_error": self.proposed(),
                "retriable": self.retriable(),
                "copies_now": len(self.isr) if accepted else 0,
                "racks_now": of_isr if accepted else 0,
                **worst,
                "waits_for": len(self.isr) - 1 if accepted else 0,
                "visible_now": accepted,
                "survives_leader_loss": copies >= 2 and not self.unclean,
            },
            "min.insync.replicas": {
                "accepted": False,
                "error": leaderless or "INVALID_REQUIRED_ACKS",
                "proposed_error": error,
                "retriable": not led,
                "copies_now": self.minimum if accepted else 0,
                "racks_now": self.fastest() if accepted else 0,
                **worst,
                "waits_for": self.minimum - 1 if accepted else 0,
                "fewer_than_all": len(self.isr) - self.minimum if accepted else 0,
                "visible_now": accepted,
                "survives_leader_loss": False,
            },
        }

    def outcome(self, copies: int | None, racks: int | None) -> str:
        held, spanned = self.guaranteed()
        fails = {h < (copies or 0) or s < (racks or 0) for h in held for s in spanned}
        return "UNKNOWN" if len(fails) == 2 else "FAIL" if True in fails else "PASS"

    def smallest(self, racks: int | None) -> int | None:
        """The smallest min.insync.replicas that guarantees the racks, whatever the unknown ones are."""
        found = [self._smallest(end, racks) for end in self.ends]
        return None if None in found else max(found)

    @staticmethod
    def _smallest(replicas: Racks, racks: int | None) -> int | None:
        for size in range(1, len(replicas) + 1) if racks else ():
            if all(worst_racks(filled, size) >= racks for filled in completions(replicas)):
                return size
        return None

    def pair(self, copies: int | None, racks: int | None) -> dict[str, int] | None:
        """KIP-1290: the thresholds with which every accepted ISR has the required racks, if any ISR is accepted.

        It requires broker.rack on all brokers.
        """
        if not racks or None in self.racks or "?" in self.racks:
            return None
        least = max(copies or 1, racks)
        for end in self.ends:
            isrs = [isr for size in range(least, len(end) + 1) for isr in combinations(end, size)]
            accepted = [isr for isr in isrs if kip_1290(isr) >= racks]
            assert all(named(isr) >= racks for isr in accepted)
            if not accepted:
                return None
        return {"min.insync.replicas": least, "min.insync.racks": racks}
