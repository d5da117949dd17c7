"""Reassignment plans, as kafka-reassign-partitions reads them: OUT/plans/<cluster>/<topic>.json.

For the topics that `topic_posture` says a plan leads to their target. Replicas that are there stay, in their order and
so with their preferred leader, unless they stand in each other's way; new ones go to live brokers in racks that the
partition lacks, the least loaded first. A replica on a broker that is down stays too: it comes back with its broker, and
until then Kafka's tool refuses the plan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVEN = ("target_acked_racks", "target_min_insync_replicas")
Partition = tuple[int, "list[int] | None", "list[int] | None"]
"""Id, replicas (None: unread), and those being removed."""
FOLDER, INDEX, FORMAT = "plans", "index.json", "durability-plans/1"


def folder(cluster: str) -> str:
    """The cluster's folder in OUT/plans: its id, where that is safe as a name in a file system and on a command line.

    >>> folder("eu-payments"), folder("../eu payments")
    ('eu-payments', 'eu_payments-f46c93fe')
    """
    safe = re.sub(r"[^a-zA-Z0-9._-]", "_", cluster).lstrip("._-")[:80]
    return safe if safe == cluster else f"{safe or 'cluster'}-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Broker:
    """`rack`: None where it has none or it is unknown; such a broker adds no rack. `live` None: unknown, so that it gets no
    new replica."""

    id: int
    rack: str | None
    live: bool | None


class Placement:
    """Chooses replicas of a cluster's partitions, one after the other; the load counts what was chosen already."""

    def __init__(self, brokers: Iterable[Broker], load: Counter[int]):
        """load: replicas by broker id, over the whole cluster or over what is known of it."""
        self.brokers = {b.id: b for b in brokers}
        self.load = Counter(load)

    def choose(
        self, replicas: Sequence[int], copies: int, racks: int, acked: tuple[int, int] | None = None
    ) -> list[int] | None:
        """`copies` replicas or as many as there are, over `racks` racks or more; None where live brokers don't suffice.

        acked: racks, and the number of replicas any of which together must span them.
        """
        chosen = list(replicas)
        while len(chosen) < copies:
            new = self._best(chosen)
            if new is None:
                return None
            chosen.append(new)
        while len(self._racks(chosen)) < racks:
            # The last replica that stands in a rack with another, or in none: the first one is the preferred leader.
            spare = next((b for b in reversed(chosen) if self._spare(b, chosen)), None)
            new = self._best(chosen, self._racks(chosen))
            if spare is None or new is None:
                return None
            chosen[chosen.index(spare)] = new
        while acked and not self._guarantees(chosen, *acked):
            swap = self._leveller(chosen)
            if swap is None:
                return None
            chosen[chosen.index(swap[0])] = swap[1]
        self.load.update(set(chosen) - set(replicas))
        self.load.subtract(set(replicas) - set(chosen))
        return chosen

    def _racks(self, ids: Iterable[int]) -> set[str]:
        return {rack for i in ids if (rack := self._rack(i)) is not None}

    def _rack(self, broker: int) -> str | None:
        return self.brokers[broker].rack if broker in self.brokers else None

    def _guarantees(self, chosen: Sequence[int], racks: int, least: int) -> bool:
        """Do any `least` of the replicas span `racks` racks? Brokers without a rack may all be among them."""
        crowd = Counter(self._rack(b) for b in chosen)
        nowhere = crowd.pop(None, 0)
        return len(crowd) >= racks and nowhere + sum(n for _, n in crowd.most_common(racks - 1)) < least

    def _leveller(self, chosen: Sequence[int]) -> tuple[int, int] | None:
        """A replica of the fullest rack and a broker of a rack with at least two fewer; one without a rack goes first."""
        crowd = Counter(self._rack(b) for b in chosen)
        nowhere = crowd.pop(None, 0)
        full = max(crowd, key=crowd.__getitem__, default=None)
        room = [rack for rack in self._racks(self.brokers) if nowhere or crowd[rack] + 1 < crowd[full]]
        new = self._best(chosen, self._racks(self.brokers) - set(room))
        spare = next((b for b in reversed(chosen) if self._rack(b) == (None if nowhere else full)), None)
        return None if new is None or spare is None else (spare, new)

    def _spare(self, broker: int, chosen: Sequence[int]) -> bool:
        rack = self._rack(broker)
        return rack is None or [self._rack(other) for other in chosen].count(rack) > 1

    def _best(self, chosen: Sequence[int], without: Iterable[str] | None = None) -> int | None:
        """The live broker that adds a rack, or the least crowded one, with the fewest replicas; `without`: it must add one
        beside these."""
        crowd = Counter(self._rack(b) for b in chosen)
        free = [b for b in self.brokers.values() if b.live and b.id not in chosen]
        if without is not None:
            free = [b for b in free if b.rack is not None and b.rack not in without]
        order = {b.id: (crowd[b.rack] if b.rack is not None else len(chosen), self.load[b.id], b.id) for b in free}
        return min(order, key=order.__getitem__, default=None)


def written(topic: str, partitions: Iterable[tuple[int, Sequence[int]]]) -> str:
    """A plan in kafka-reassign-partitions' format, version 1."""
    rows = [{"topic": topic, "partition": p, "replicas": list(replicas)} for p, replicas in partitions]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"


def moved(
    placement: Placement, partitions: Iterable[Partition], topic: Mapping[str, Any]
) -> tuple[list[tuple[int, list[int]]], str | None]:
    """The partitions whose replicas change, with their new ones; or why there is no plan."""
    moves = []
    acked = tuple(topic[name] for name in EVEN)
    for partition, replicas, removing in partitions:
        if replicas is None:
            return [], "the replicas of a partition could not be read"
        staying = [r for r in replicas if r not in (removing or ())]
        chosen = placement.choose(
            staying, topic["target_replication_factor"], topic["target_racks"], None if None in acked else acked
        )
        if chosen is None:
            return [], "the brokers that are up, and their racks, don't suffice"
        if chosen != replicas:
            moves.append((partition, chosen))
    return moves, None if moves else "nothing has to move"


def not_before(
    placement: Placement, partitions: Iterable[Partition], moves: Iterable[tuple[int, list[int]]]
) -> dict[str, str]:
    """A plan's `not_before` in the index, where a partition that moves has a replica on a broker that is down.

    The tool knows no such broker, and can't throttle one that a replica leaves.
    """
    moving = dict(moves)
    named = {b for partition, now, _ in partitions if partition in moving for b in [*(now or ()), *moving[partition]]}
    down = sorted(b for b in named if b in placement.brokers and placement.brokers[b].live is False)
    if not down:
        return {}
    who = f"broker {down[0]} is" if len(down) == 1 else f"brokers {', '.join(map(str, down))} are"
    return {"not_before": f"{who} back: the tool refuses a plan that names {'it' if len(down) == 1 else 'one of them'}"}
