"""Partitions that no rule can tell apart: judged once, through one of their rows.

What rules look at of a partition that isn't being reassigned are the facts of its topic, of the brokers that hold it, and
which of those are out of sync or down; and live brokers whose rows differ in nothing but the id (and the bytes on their
disks) are interchangeable while they are in sync. So are racks in which all replicas are: rules count them, and what names
them is told from the partition's own row. So the partitions of a cluster have few *placements*, whatever their number, and
a topic of a thousand partitions over six racks has one row to judge, or a few, that stand for all of them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue.settings import that_count_for_partitions

FROM = 1000
"""Partitions of a cluster from which on it is worth looking for alike ones."""
WIDEST = 8
"""Entries of a partition's list, at most, for it to be held against others."""
ITS_OWN = ("broker", "log_dirs")
READ = frozenset(that_count_for_partitions())
"""Of a broker's settings those that may count for its partitions; of others, such as `node.id` and `log.dirs`, each broker has
its own."""
COLUMNS = ("stands_for", "placement", "alike", "alike_leaders", "room")
_BITS = 62


class Alike(NamedTuple):
    """Of each row, see the columns of `partitions`; `order` puts the rows that stand for any before those that don't, and of
    those the ones with room last: hardly one of them is worth a row of `partition_health`."""

    stands_for: pa.Array
    placement: pa.Array
    alike: pa.Array
    alike_leaders: pa.Array
    room: pa.Array
    order: np.ndarray


def found(columns: dict[str, pa.Array], brokers: list[dict], topics: list[dict]) -> Alike:
    """The alike ones among the rows of one cluster, by topic and partition; brokers, topics: its rows of those tables.

    Of those of a topic that have the same placement the first stands for all.
    """
    rows = np.flatnonzero(_comparable(columns))
    placement, leaders = np.full(len(columns["topic"]), -1), columns["leader"].fill_null(-1).to_numpy()
    placement[rows] = _placements(
        {name: columns[name].take(pa.array(rows)) for name in _JUDGED}, leaders[rows], brokers
    )
    return _grouped(placement, columns["topic"], columns["partition"], leaders, _room(columns, brokers, topics))


_JUDGED = ("replicas", "isr", "elr", "last_known_elr")


def _comparable(columns: dict[str, pa.Array]) -> np.ndarray:
    """At rest, everything read, of a size to be looked at."""
    fits = columns["unreadable"].is_null().to_numpy(zero_copy_only=False)
    for names, most in (((*_JUDGED,), WIDEST), (("adding", "removing"), 0)):
        for name in names:
            size = pc.list_value_length(columns[name]).fill_null(WIDEST + 1).to_numpy()
            fits = fits & (size <= most)
    for name in ("partition", "topic"):
        fits = fits & columns[name].is_valid().to_numpy(zero_copy_only=False)
    return fits


def _placements(lists: dict[str, pa.Array], leaders: np.ndarray, brokers: list[dict]) -> np.ndarray:
    """A number for each row, the same for those that no rule can tell apart but by their topic; -1: like no other."""
    matrices = {name: _matrix(column) for name, column in lists.items()}
    replicas, isr, elr = matrices["replicas"], matrices["isr"], np.hstack([matrices["elr"], matrices["last_known_elr"]])
    known = _Brokers(np.append(replicas.ravel(), leaders), brokers)
    held, by = known.places(replicas), known.places(leaders)
    there, in_sync, led = replicas >= 0, _in(isr, replicas), known.live[by]
    # An ISR of brokers that hold no replica, or of one twice, is like nothing else.
    sound = in_sync.sum(axis=1) == (isr >= 0).sum(axis=1)
    whole = sound & led & (in_sync == there).all(axis=1) & (elr < 0).all(axis=1)
    short = sound & ~whole
    named = there & ~(in_sync & led[:, None])
    leading, seats = known.leading(by, held, in_sync), known.in_sync(held, there & ~named, named)
    found = np.full(len(replicas), -1)
    found[whole] = _numbered([*leading[whole].T, *np.sort(np.where(there, seats, 0)[whole], axis=1).T])
    told = _told(seats[short], replicas[short], in_sync[short], named[short])
    keys = np.column_stack([leading[short], told, elr[short]])
    found[short] = found.max(initial=-1) + 1 + np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return found


def _matrix(lists: pa.Array) -> np.ndarray:
    """The lists side by side; -1 where one is shorter than the longest."""
    sizes = pc.list_value_length(lists).to_numpy()
    matrix = np.full((len(lists), int(sizes.max(initial=1))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < sizes[:, None]] = lists.flatten().to_numpy()
    return matrix


def _in(isr: np.ndarray, replicas: np.ndarray) -> np.ndarray:
    """Of each replica, is it in the ISR of its row?"""
    found = np.zeros(replicas.shape, bool)
    for column in isr.T:
        found |= replicas == column[:, None]
    return found & (replicas >= 0)


class _Brokers:
    """What tells brokers apart, by the places that `places` gives to their ids; -1 is none.

    `live`: is it known to be up? Of the rest those count alone that are up and whose racks are known; any other, also one in
    no row, is a class of its own.
    """

    def __init__(self, ids: np.ndarray, brokers: list[dict]):
        """ids: all that will be asked for."""
        rows = {broker["broker"]: broker for broker in brokers}
        self._ids = np.unique(ids)
        listed = [rows.get(b) for b in self._ids.tolist()]
        self.live = np.array([b is not None and b["live"] is True for b in listed], bool)
        self._known = np.array([b is not None and _known(b) for b in listed], bool)
        self._classes = _numbers(None if b is None else _facts(b) for b in listed)
        self._but_rack = _numbers(None if b is None else _facts(b, "rack") for b in listed)
        racks = [None if b is None else b["rack"] for b in listed]
        self._racks = np.where([rack is None for rack in racks], 0, _numbers(racks))
        self._kinds = int(self._but_rack.max(initial=0)) + 1

    def places(self, ids: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._ids, ids)

    def leading(self, leaders: np.ndarray, replicas: np.ndarray, in_sync: np.ndarray) -> np.ndarray:
        """What tells who leads, two columns: all but the name of its rack, and how many of those in sync stand in there."""
        known, rack = self._known[leaders], self._racks[leaders]
        beside = (in_sync & (rack > 0)[:, None] & (self._racks[replicas] == rack[:, None])).sum(axis=1)
        but_rack, whole = self._but_rack[leaders], self._kinds + self._classes[leaders]
        return np.column_stack([np.where(known, but_rack, whole), np.where(known, beside, 0)])

    def in_sync(self, replicas: np.ndarray, in_sync: np.ndarray, named: np.ndarray) -> np.ndarray:
        """What tells each replica in sync from others: all but its rack, and which of them stand in that.

        The whole class where one does of which that isn't all: a `named` one, told by its id, or one that isn't known.
        """
        facts, racks, known = self._but_rack[replicas], self._racks[replicas], self._known[replicas]
        free, beside = in_sync & known, np.zeros(replicas.shape, np.int64)
        for other in range(replicas.shape[1]):
            together = racks == racks[:, [other]]
            beside += together & in_sync[:, [other]]
            free &= ~(together & (racks > 0) & (named | in_sync & ~known)[:, [other]])
        first = np.take_along_axis(facts, free.argmax(axis=1)[:, None], axis=1)
        mixed = np.flatnonzero((free & (facts != first)).any(axis=1))
        if len(mixed):
            together = (racks[mixed, :, None] == racks[mixed, None, :]) & free[mixed, None, :]
            groups = np.sort(np.where(together, facts[mixed, None, :], 0), axis=2).reshape(-1, replicas.shape[1])
            beside[mixed] = replicas.shape[1] + 1 + _numbered(list(groups.T)).reshape(len(mixed), -1)
        most = int(beside.max(initial=0)) + 1
        return np.where(free, facts * most + beside, self._kinds * most + self._classes[replicas])


def _known(broker: dict) -> bool:
    """May another take its place?"""
    return broker["live"] is True and broker["rack_state"] in ("named", "none")


def _facts(broker: dict, but: str = "") -> str:
    """All that rules may see of a broker, the column `but` aside, as text."""
    left_out = {but, *ITS_OWN} if _known(broker) else {but}
    own = {name: _read(name, value) for name, value in broker.items() if name not in left_out}
    return json.dumps(own, sort_keys=True, default=str)


def _numbers(texts: Iterable[str | None]) -> np.ndarray:
    """Numbers from 1 on, the same for the same text; None is like nothing else."""
    numbers: dict[object, int] = {}
    of = [numbers.setdefault((n,) if t is None else t, len(numbers) + 1) for n, t in enumerate(texts)]
    return np.array(of, np.int64)


def _read(column: str, value: Any) -> Any:
    """What of a broker's column rules may look at."""
    if column in ("configs", "config_sources") and value is not None:
        return {key: stated for key, stated in dict(value).items() if key in READ}
    if column == "unreadable_configs" and value is not None:
        return sorted(set(value) & READ)
    return value


def _told(seats: np.ndarray, replicas: np.ndarray, in_sync: np.ndarray, named: np.ndarray) -> np.ndarray:
    """Rows whose replicas aren't all in sync, in numbers that are the same for those that are alike.

    First those in sync, by what tells them apart, in any order; behind them, in theirs, the ids of those that causes name: the
    ones that are out of sync, and without a leader all.
    """
    numbers = np.where(named, -2 - 2 * replicas - in_sync, np.where(replicas >= 0, seats, 0))
    order = np.where(named, np.iinfo(np.int64).max - replicas.shape[1] + np.arange(replicas.shape[1]), numbers)
    return np.take_along_axis(numbers, order.argsort(axis=1), axis=1)


def _numbered(columns: list[np.ndarray]) -> np.ndarray:
    """Rows that are the same in all columns of numbers from 0 on have the same number."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        base = int(column.max(initial=0)) + 1
        if int(key.max(initial=0)).bit_length() + base.bit_length() > _BITS:
            key = np.unique(key, return_inverse=True)[1]
        key = key * base + column
    return np.unique(key, return_inverse=True)[1]


def _room(columns: dict[str, pa.Array], brokers: list[dict], topics: list[dict]) -> pa.Array:
    """In-sync replicas of each row beyond its topic's min.insync.replicas, or where that has none beyond the brokers'
    greatest; NULL where not all are in sync, that is no number, racks are asked for, or the topic is one of Kafka's own:
    these few are what policies ask most of, in racks too.

    The same for all of a topic that are alike: by that a large run knows which rows it need not read. No rule judges by it.
    """
    stated = [(broker["configs"] or {}).get("min.insync.replicas") for broker in brokers]
    inherited = max((number for number in map(_number, stated) if number is not None), default=1)
    needed = {t["topic"]: None if t["internal"] else _needed(t["configs"], inherited) for t in topics}
    names = columns["topic"].dictionary_encode()
    by_name = pa.array([needed.get(name) for name in names.dictionary.to_pylist()], pa.int32())
    in_sync = pc.list_value_length(columns["isr"])
    whole = pc.greater_equal(in_sync, pc.list_value_length(columns["replicas"]))
    return pc.if_else(whole, pc.subtract(in_sync, by_name.take(names.indices)), pa.scalar(None, pa.int32()))


def _needed(configs: dict | None, inherited: int) -> int | None:
    if configs is None or configs.get("min.insync.racks") not in (None, "1"):
        return None
    stated = configs.get("min.insync.replicas")
    return inherited if stated is None else _number(stated)


def _number(stated: str | None) -> int | None:
    return int(stated) if stated and re.fullmatch("[0-9]{1,9}", stated) else None


def _grouped(
    placement: np.ndarray, topics: pa.Array, partitions: pa.Array, leaders: np.ndarray, room: pa.Array
) -> Alike:
    """Rows of one topic and placement as the columns say it; a row that is like no other stands for itself."""
    count, rows = len(placement), np.flatnonzero(placement >= 0)
    topic = topics.dictionary_encode().indices.to_numpy()[rows].astype(np.int64)
    key = topic * (int(placement.max(initial=0)) + 1) + placement[rows]
    by_key = np.argsort(key, kind="stable")
    rows, key = rows[by_key], key[by_key]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    several = np.repeat(sizes > 1, sizes)
    first = rows[starts[sizes > 1]]
    rows, sizes = rows[several], sizes[sizes > 1]
    stands_for = np.zeros(count, np.int32)
    alone = np.ones(count, bool)
    alone[rows] = False
    stands_for[first] = sizes
    # Groups in the order of the rows that stand for them.
    by_row = np.argsort(first)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    members = np.concatenate([rows[bounds[g] : bounds[g + 1]] for g in by_row]) if len(by_row) else rows
    held = np.full(count, -1)
    held[first] = sizes
    offsets = pa.array(
        np.concatenate([[0], np.cumsum(np.maximum(held, 0))]), pa.int32(), mask=np.append(held < 0, False)
    )
    ids = partitions.take(pa.array(members))
    return Alike(
        pa.array(stands_for, mask=alone),
        pa.array(placement, pa.int32(), mask=placement < 0),
        pa.ListArray.from_arrays(offsets, ids),
        pa.ListArray.from_arrays(offsets, pa.array(leaders[members], pa.int32(), mask=leaders[members] < 0)),
        room,
        np.argsort(np.where((stands_for == 0) & ~alone, 1 + _roomy(room), 0), kind="stable"),
    )


def _roomy(room: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return pc.greater(room, 0).fill_null(False).to_numpy(zero_copy_only=False)


def apart(rows: pa.Table) -> list[pa.Table]:
    """Rows of `partitions` in their order, those that another stands for apart, and of these those with room: in row groups
    that need not be read."""
    others = pc.equal(rows["stands_for"], 0).fill_null(False)
    stand = rows.num_rows - pc.sum(others).as_py()
    tight = rows.num_rows - int(_roomy(rows["room"])[stand:].sum())
    cuts = (0, stand, tight, rows.num_rows)
    return [rows.slice(start, end - start) for start, end in itertools.pairwise(cuts) if end > start]


def none(count: int) -> Alike:
    """Every row stands for itself."""
    number, ids = pa.nulls(count, pa.int32()), pa.nulls(count, pa.list_(pa.int32()))
    return Alike(number, number, ids, ids, number, np.arange(count))
