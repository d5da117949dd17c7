"""Groups partitions that no rule can tell apart. Each group is evaluated once, through its first partition.

What a loss breaks depends on the places of replicas, so the replicas of equal partitions are alike place by place.

A rule sees the settings of a partition's topic, the brokers that have the partition, and which of them are out of sync or down.
Live brokers that differ only in their id and disks are interchangeable while they are in sync. So are racks in which all
replicas are in sync: rules count them, and texts name them from the partition's own row. A partition under reassignment is in no
group. So a cluster has few groups, whatever its number of partitions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue.settings import that_count_for_partitions
from durability.lake.tables import PARTITION_GROUPS

FROM = 1000
"""Clusters with fewer partitions have no groups."""
WIDEST = 8
"""Partitions with more replicas are in no group."""
ITS_OWN = ("broker", "log_dirs")
"""Columns of a live broker that no rule reads for its partitions."""
READ = frozenset(that_count_for_partitions())
"""The settings of a broker that a control reads for partitions. Other settings, such as `node.id`, differ on each broker."""
VERSION = "2"
"""Rises when groups become finer. Since version 2, replicas are compared place by place."""
READS = hashlib.sha256(json.dumps([VERSION, *sorted(READ)]).encode()).hexdigest()[:16]
"""Identifies what groups were built with. Groups built with less may join partitions that differ."""
_BITS = 62


def grouped(columns: dict[str, pa.Array], brokers: list[dict]) -> np.ndarray:
    """A number for each partition of a cluster, equal for partitions that differ only in their topic; -1 for no group.

    columns: of the rows of `partitions`.
    brokers: rows of `brokers`.
    """
    rows = np.flatnonzero(_comparable(columns))
    numbers, leaders = np.full(len(columns["topic"]), -1), columns["leader"].fill_null(-1).to_numpy()
    lists = {name: columns[name].take(pa.array(rows)) for name in _JUDGED}
    numbers[rows] = _placements(lists, leaders[rows], brokers)
    return numbers


def first_of_each(partitions: pa.Table) -> pa.Table:
    """The rows of `partition_groups`, one per topic and `partition_group`.

    Each is the first of the group's rows of `partitions`, with the numbers and leaders of all. A row without a group is a group
    of one.
    """
    groups = partitions["partition_group"].combine_chunks().fill_null(-1).to_numpy()
    topics = partitions["topic"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    alone = -1 - np.arange(len(groups))
    key = np.where(groups < 0, alone, topics * (int(groups.max(initial=0)) + 1) + groups)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    # Sort groups by their first rows, and rows within a group by position.
    members = np.argsort(first[which], kind="stable")
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.bincount(which)[np.argsort(first)])]), pa.int32())
    of_all = {
        name: pa.ListArray.from_arrays(offsets, partitions[column].combine_chunks().take(pa.array(members)))
        for name, column in (("partitions", "partition"), ("leaders", "leader"))
    }
    of_all["reads"] = pa.array([READS] * len(first), pa.string())
    rows = partitions.take(pa.array(np.sort(first)))
    return pa.table({f.name: of_all[f.name] if f.name in of_all else rows[f.name] for f in PARTITION_GROUPS.arrow})


_JUDGED = ("replicas", "isr", "elr", "last_known_elr")


def _comparable(columns: dict[str, pa.Array]) -> np.ndarray:
    """Which partitions can be compared: no reassignment, all facts known, lists of at most WIDEST entries."""
    fits = columns["unreadable"].is_null().to_numpy(zero_copy_only=False)
    for names, most in (((*_JUDGED,), WIDEST), (("adding", "removing"), 0)):
        for name in names:
            size = pc.list_value_length(columns[name]).fill_null(WIDEST + 1).to_numpy()
            fits = fits & (size <= most)
    for name in ("partition", "topic"):
        fits = fits & columns[name].is_valid().to_numpy(zero_copy_only=False)
    return fits


def _placements(lists: dict[str, pa.Array], leaders: np.ndarray, brokers: list[dict]) -> np.ndarray:
    """A number for each row, equal for rows that differ only in their topic; -1 for no group."""
    matrices = {name: _matrix(column) for name, column in lists.items()}
    replicas, isr, elr = matrices["replicas"], matrices["isr"], np.hstack([matrices["elr"], matrices["last_known_elr"]])
    known = _Brokers(np.append(replicas.ravel(), leaders), brokers)
    of_replicas, of_leaders = known.places(replicas), known.places(leaders)
    there, in_sync, led = replicas >= 0, _in(isr, replicas), known.live[of_leaders]
    eligible, leads = _in(matrices["elr"], replicas), (replicas == leaders[:, None]) & (replicas >= 0)
    # A row whose leader, ISR or ELR is a broker without a replica, or has a broker twice, is in no group.
    sound = (in_sync.sum(axis=1) == (isr >= 0).sum(axis=1)) & (leads.any(axis=1) | (leaders < 0))
    sound &= eligible.sum(axis=1) == (matrices["elr"] >= 0).sum(axis=1)
    whole = sound & led & (in_sync == there).all(axis=1) & (elr < 0).all(axis=1)
    short = sound & ~whole
    named = there & ~(in_sync & led[:, None])
    leading = known.leading(of_leaders, of_replicas, in_sync)
    classes = known.in_sync(of_replicas, there & ~named, named)
    found = np.full(len(replicas), -1)
    places = np.column_stack(
        [np.where(leads.any(axis=1), leads.argmax(axis=1) + 1, 0), *known.first_in_rack(of_replicas).T]
    )
    found[whole] = _numbered([*leading[whole].T, *places[whole].T, *np.where(there, classes, 0)[whole].T])
    # Causes name replicas that are out of sync, and all replicas of a partition without a leader.
    members = np.where(named, -2 - 2 * replicas - in_sync, np.where(there, classes, 0))
    keys = np.column_stack([leading, places, members, elr, eligible])[short]
    found[short] = found.max(initial=-1) + 1 + np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return found


def _matrix(lists: pa.Array) -> np.ndarray:
    """A row for each list. -1 pads shorter lists."""
    sizes = pc.list_value_length(lists).to_numpy()
    matrix = np.full((len(lists), int(sizes.max(initial=1))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < sizes[:, None]] = lists.flatten().to_numpy()
    return matrix


def _in(isr: np.ndarray, replicas: np.ndarray) -> np.ndarray:
    """For each replica, whether it is in the ISR of its row."""
    found = np.zeros(replicas.shape, bool)
    for column in isr.T:
        found |= replicas == column[:, None]
    return found & (replicas >= 0)


class _Brokers:
    """Classes of interchangeable brokers, by the positions that `places` gives to broker ids. Id -1 is no broker.

    A broker is a separate class if it isn't known to be up, if its rack is unknown, or if it has no row.

    live: whether a broker is known to be up.
    """

    def __init__(self, ids: np.ndarray, brokers: list[dict]):
        """ids: all ids that `places` will be called with."""
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
        """Two columns: the leader's class without the name of its rack, and the number of in-sync replicas in its rack."""
        known, rack = self._known[leaders], self._racks[leaders]
        in_rack = (in_sync & (rack > 0)[:, None] & (self._racks[replicas] == rack[:, None])).sum(axis=1)
        but_rack, whole = self._but_rack[leaders], self._kinds + self._classes[leaders]
        return np.column_stack([np.where(known, but_rack, whole), np.where(known, in_rack, 0)])

    def first_in_rack(self, replicas: np.ndarray) -> np.ndarray:
        """For each replica, the place of the first one in its rack, from 1; 0 without a known rack."""
        racks = self._racks[replicas]
        first = np.zeros(replicas.shape, np.int64)
        for place in reversed(range(replicas.shape[1])):
            first[(racks == racks[:, [place]]) & (racks > 0)] = place + 1
        return first

    def in_sync(self, replicas: np.ndarray, in_sync: np.ndarray, named: np.ndarray) -> np.ndarray:
        """The class of each in-sync replica: its broker's facts without the rack, and which in-sync replicas share that rack.

        The rack counts by name if the partition has another replica in it whose broker isn't interchangeable: a `named` one, or
        one in a separate class.
        """
        facts, racks, known = self._but_rack[replicas], self._racks[replicas], self._known[replicas]
        free, in_rack = in_sync & known, np.zeros(replicas.shape, np.int64)
        for other in range(replicas.shape[1]):
            together = racks == racks[:, [other]]
            in_rack += together & in_sync[:, [other]]
            free &= ~(together & (racks > 0) & (named | in_sync & ~known)[:, [other]])
        first = np.take_along_axis(facts, free.argmax(axis=1)[:, None], axis=1)
        mixed = np.flatnonzero((free & (facts != first)).any(axis=1))
        if len(mixed):
            together = (racks[mixed, :, None] == racks[mixed, None, :]) & free[mixed, None, :]
            groups = np.sort(np.where(together, facts[mixed, None, :], 0), axis=2).reshape(-1, replicas.shape[1])
            in_rack[mixed] = replicas.shape[1] + 1 + _numbered(list(groups.T)).reshape(len(mixed), -1)
        most = int(in_rack.max(initial=0)) + 1
        return np.where(free, facts * most + in_rack, self._kinds * most + self._classes[replicas])


def _known(broker: dict) -> bool:
    """Whether the broker is interchangeable with others that have the same facts."""
    return broker["live"] is True and broker["rack_state"] in ("named", "none")


def _facts(broker: dict, but: str = "") -> str:
    """The facts of a broker that rules may read, without the column `but`, as text."""
    left_out = {but, *ITS_OWN} if _known(broker) else {but}
    own = {name: _read(name, value) for name, value in broker.items() if name not in left_out}
    return json.dumps(own, sort_keys=True, default=str)


def _numbers(texts: Iterable[str | None]) -> np.ndarray:
    """Numbers from 1 on, equal for equal texts. Each None gets a separate number."""
    numbers: dict[object, int] = {}
    of = [numbers.setdefault((n,) if t is None else t, len(numbers) + 1) for n, t in enumerate(texts)]
    return np.array(of, np.int64)


def _read(column: str, value: Any) -> Any:
    """The part of a broker's column that rules may read."""
    if column in ("configs", "config_sources") and value is not None:
        return {key: stated for key, stated in dict(value).items() if key in READ}
    if column == "unreadable_configs" and value is not None:
        return sorted(set(value) & READ)
    return value


def _numbered(columns: list[np.ndarray]) -> np.ndarray:
    """A number for each row, equal for rows that are equal in all columns. columns: numbers from 0 on."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        base = int(column.max(initial=0)) + 1
        if int(key.max(initial=0)).bit_length() + base.bit_length() > _BITS:
            key = np.unique(key, return_inverse=True)[1]
        key = key * base + column
    return np.unique(key, return_inverse=True)[1]
