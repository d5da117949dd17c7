"""Reassignment plans for kafka-reassign-partitions: OUT/plans/<cluster>/<topic>.json.

A topic gets a plan if its row in `topic_posture` has `reassign`. Existing replicas keep their place and order, and so their
preferred leader, unless two of them must be in different racks. New replicas go to live brokers in racks that the partition
lacks, to the least loaded broker first. A replica on a broker that is down also stays. Kafka's tool rejects such a plan
until the broker is back.
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
SPREAD = ("target_own_racks", "target_rack_balance")
Partition = tuple[int, "list[int] | None", "list[int] | None"]
"""Id, replicas (None: could not be read), and the replicas being removed."""
SUFFICE, LIMIT = "the live brokers and their racks don't suffice", "more than one run plans"
ROOM = "the brokers with room on their disks and log dirs that aren't cordoned, and their racks, don't suffice"
NOTHING, UNREAD = (
    "no replica has to move, apart from a running reassignment",
    "the replicas of a partition could not be read",
)
MANAGED = "only the provider or its own tools move replicas"
HALTED = "no controller leads, so no replica can be moved"
UNRACKED = "replicas on brokers without broker.rack would move, though these may be in further racks"
"""Why a topic has no plan."""
FREE = 0.1
"""The part of a disk that a log dir must have free to get new replicas. Nobody knows how large they become."""
FOLDER, INDEX, FORMAT = "plans", "index.json", "durability-plans/1"


def folder(cluster: str) -> str:
    """The cluster's folder in OUT/plans: its id, made safe for file systems and command lines.

    >>> folder("eu-payments"), folder("../eu payments")
    ('eu-payments', 'eu_payments-f46c93fe')
    """
    safe = re.sub(r"[^a-zA-Z0-9._-]", "_", cluster).lstrip("._-")[:80]
    return safe if safe == cluster else f"{safe or 'cluster'}-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Broker:
    """A broker.

    rack: None if it has none or the rack is unknown. Such a broker adds no rack.
    live: None if unknown. Such a broker gets no new replica.
    room: see `has_room`. A broker without room gets no new replica. failed: has one of its log dirs failed?
    unracked: is it up, and has no broker.rack? Its replicas may be in a rack of their own, so no plan moves them away.
    """

    id: int
    rack: str | None
    live: bool | None
    room: bool = True
    unracked: bool = False
    failed: bool = False


def has_room(
    log_dirs: Sequence[Mapping[str, Any]] | None,
    offline: int | None = None,
    configs: Iterable[tuple[str, str | None]] | None = None,
) -> bool:
    """Has no log dir failed, and has each at least FREE of its disk left, as far as brokers say (KIP-827)?

    Kafka puts a new replica into the log dir with the fewest partitions, whatever room it has. A full disk stops the log dir.
    A broker whose log dirs are all cordoned is about to be removed (KIP-1066).

    offline: how many log dirs are offline. A document may state their number alone.
    configs: the broker's settings; None if unknown.

    >>> has_room(None), has_room([{"error": None, "total_bytes": 100, "usable_bytes": 30}])
    (True, True)
    >>> has_room([{"error": None, "total_bytes": 100, "usable_bytes": 3}]), has_room(None, 1)
    (False, False)
    """
    return not (offline or cordoned(dict(configs or ()), log_dirs)) and not any(
        d["error"]
        or (d["total_bytes"] and d["usable_bytes"] is not None and d["usable_bytes"] < FREE * d["total_bytes"])
        for d in log_dirs or ()
    )


def cordoned(configs: Mapping[str, str | None], log_dirs: Sequence[Mapping[str, Any]] | None = None) -> bool:
    """Are all log dirs of the broker cordoned (KIP-1066)? If its log dirs are unknown, one that is cordoned counts for all.

    Kafka creates no topic's replicas there, but accepts reassignments to it.

    >>> cordoned({"cordoned.log.dirs": "*"}), cordoned({"cordoned.log.dirs": ""}), cordoned({})
    (True, False, False)
    >>> cordoned({"cordoned.log.dirs": "/a", "log.dirs": "/a,/b"}), cordoned({"cordoned.log.dirs": "/b,/a", "log.dirs": "/a, /b"})
    (False, True)
    """
    out = _paths(configs.get("cordoned.log.dirs"))
    stated = _paths(configs.get("log.dirs")) or _paths(configs.get("log.dir"))
    return bool(out) and ("*" in out or (stated or {d["path"].rstrip("/") for d in log_dirs or ()}) <= out)


def _paths(stated: str | None) -> set[str]:
    return {path.strip().rstrip("/") for path in (stated or "").split(",") if path.strip()}


class Placement:
    """Chooses the replicas of a cluster's partitions, one partition after the other, and counts the load of brokers."""

    def __init__(self, brokers: Iterable[Broker], load: Counter[int]):
        """load: the number of replicas by broker id, over the known partitions of the cluster."""
        self.brokers = {b.id: b for b in brokers}
        self.load = Counter(load)

    def choose(
        self,
        replicas: Sequence[int],
        copies: int,
        racks: int,
        acked: tuple[int, int] | None = None,
        *,
        own_racks: bool = False,
        balanced: bool = False,
    ) -> list[int] | None:
        """At least `copies` replicas that span at least `racks` racks. None if the live brokers don't suffice.

        acked: (racks, n): any n of the replicas must span that many racks.
        own_racks: put each replica in a separate rack.
        balanced: no rack of the cluster has two replicas more than another. A plan can't add racks to the cluster, so it spans
            no more than there are. A third copy helps even if no broker has a rack.
        """
        there = len(self._racks(self.brokers))
        balanced = balanced and there > 0
        chosen = list(replicas)
        while len(chosen) < copies:
            new = self._best(chosen)
            if new is None:
                return None
            chosen.append(new)
        while len(self._racks(chosen)) < min(len(chosen) if own_racks else racks, there):
            # Move the last replica that shares a rack or has none. The first replica is the preferred leader.
            spare = next((b for b in reversed(chosen) if self._spare(b, chosen)), None)
            new = self._best(chosen, self._racks(chosen))
            if spare is None or new is None:
                return None
            chosen[chosen.index(spare)] = new
        while balanced and not self._even(chosen):
            move = self._balancing_move(chosen)
            if move is None:
                return None
            chosen[chosen.index(move[0])] = move[1]
        while acked and not self._guarantees(chosen, *acked):
            move = self._balancing_move(chosen)
            if move is None:
                return None
            chosen[chosen.index(move[0])] = move[1]
        self.load.update(set(chosen) - set(replicas))
        self.load.subtract(set(replicas) - set(chosen))
        return chosen

    def all_have_room(self) -> bool:
        """Has each live broker room?"""
        return all(b.room for b in self.brokers.values() if b.live)

    def any_unracked(self, ids: Iterable[int]) -> bool:
        """Is one of these brokers up and has no broker.rack?"""
        return any(b.unracked for i in ids if (b := self.brokers.get(i)) is not None)

    def has_racks(self, number: int) -> bool:
        """Does the cluster have so many racks?"""
        return len(self._racks(self.brokers)) >= number

    def _racks(self, ids: Iterable[int]) -> set[str]:
        return {rack for i in ids if (rack := self._rack(i)) is not None}

    def _rack(self, broker: int) -> str | None:
        return self.brokers[broker].rack if broker in self.brokers else None

    def _even(self, chosen: Sequence[int]) -> bool:
        """Are the replicas in racks, and has no rack two more than another?"""
        racks = [self._rack(b) for b in chosen]
        counts = [racks.count(rack) for rack in self._racks(self.brokers)]
        return None not in racks and max(counts) - min(counts) <= 1

    def _guarantees(self, chosen: Sequence[int], racks: int, least: int) -> bool:
        """Do any `least` of the replicas span `racks` racks? All brokers without a rack may be among these replicas."""
        per_rack = Counter(self._rack(b) for b in chosen)
        without_rack = per_rack.pop(None, 0)
        in_fullest = sum(n for _, n in per_rack.most_common(racks - 1))
        return len(per_rack) >= racks and without_rack + in_fullest < least

    def _balancing_move(self, chosen: Sequence[int]) -> tuple[int, int] | None:
        """A replica to move, and its new broker: from the fullest rack to one with at least two fewer.

        A replica on a broker without a rack moves first.
        """
        per_rack = Counter(self._rack(b) for b in chosen)
        without_rack = per_rack.pop(None, 0)
        fullest = max(per_rack, key=per_rack.__getitem__, default=None)
        full: set[str] = set()
        if not without_rack:
            full = {rack for rack in self._racks(self.brokers) if per_rack[rack] + 1 >= per_rack[fullest]}
        new = self._best(chosen, full)
        crowded = None if without_rack else fullest
        spare = [b for b in reversed(chosen) if self._rack(b) == crowded]
        return None if new is None or not spare else (spare[0], new)

    def _spare(self, broker: int, chosen: Sequence[int]) -> bool:
        rack = self._rack(broker)
        return rack is None or [self._rack(other) for other in chosen].count(rack) > 1

    def _best(self, chosen: Sequence[int], without: Iterable[str] | None = None) -> int | None:
        """The live broker in the rack with the fewest of these replicas; of several, the broker with the fewest replicas.

        without: the broker's rack must be none of these.
        """
        per_rack = Counter(self._rack(b) for b in chosen)
        free = [b for b in self.brokers.values() if b.live and b.room and b.id not in chosen]
        if without is not None:
            free = [b for b in free if b.rack is not None and b.rack not in without]
        order = {b.id: (per_rack[b.rack] if b.rack is not None else len(chosen), self.load[b.id], b.id) for b in free}
        return min(order, key=order.__getitem__, default=None)


def written(moves: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Moves as JSON text in the format of kafka-reassign-partitions, version 1. moves: topic, partition and new replicas."""
    rows = [{"topic": topic, "partition": p, "replicas": list(replicas)} for topic, p, replicas in moves]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"


def moved(
    placement: Placement, partitions: Iterable[Partition], topic: Mapping[str, Any]
) -> tuple[list[tuple[int, list[int]]], str | None]:
    """The partitions whose replicas change, each with its new replicas; or the reason why there is no plan."""
    moves = []
    own_racks, balanced = (bool(topic[name]) for name in SPREAD)
    acked = tuple(topic[name] for name in EVEN)
    for partition, replicas, removing in partitions:
        if replicas is None:
            return [], UNREAD
        staying = [r for r in replicas if r not in (removing or ())]
        chosen = placement.choose(
            staying,
            topic["target_replication_factor"],
            topic["target_racks"],
            None if None in acked else acked,
            own_racks=own_racks,
            balanced=balanced,
        )
        if chosen is None:
            return [], SUFFICE if placement.all_have_room() else ROOM
        # More replicas are worth more than the labels, and a broker with the only copy can't restart for its label.
        if len(chosen) <= len(staying) and placement.any_unracked(set(staying) - set(chosen)):
            return [], UNRACKED
        if chosen != replicas:
            moves.append((partition, chosen))
    if moves:
        return moves, None
    return [], NOTHING if placement.has_racks(topic["target_racks"]) else SUFFICE


def not_before(
    placement: Placement, partitions: Iterable[Partition], moves: Iterable[tuple[int, list[int]]]
) -> dict[str, str]:
    """The key `not_before` of a plan in the index, if a partition that moves has a replica on a broker that is down.

    Kafka's tool doesn't know this broker, and it can't throttle a broker that is down.
    """
    moving = dict(moves)
    named: set[int] = set()
    for partition, now, _ in partitions:
        if partition in moving:
            named.update(now or (), moving[partition])
    down = sorted(b for b in named if b in placement.brokers and placement.brokers[b].live is False)
    if not down:
        return {}
    who = f"broker {down[0]} is" if len(down) == 1 else f"brokers {', '.join(map(str, down))} are"
    return {"not_before": f"{who} back: the tool rejects a plan that names {'it' if len(down) == 1 else 'one of them'}"}
