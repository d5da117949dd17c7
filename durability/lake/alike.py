"""Partitions of a topic that no rule can tell apart: judged once, through one of their rows.

A partition whose leader leads, whose replicas are all in sync, that isn't being reassigned and has no ELR is judged by the
facts of its topic and of the brokers that hold it; and brokers whose rows differ in nothing but the id (and the bytes on
their disks) are interchangeable. A topic of a thousand partitions over three racks then has one row to judge, or a few.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FROM = 5000
"""Partitions of a cluster from which on it is worth looking for alike ones."""
WIDEST = 8
"""Replicas of a partition, at most, for it to be held against others."""
ITS_OWN = ("broker", "log_dirs")
COLUMNS = ("stands_for", "placement", "alike", "alike_leaders")
_BITS = 62


class Alike(NamedTuple):
    """Of each row, see the columns of `partitions`; `order` puts the rows that stand for any before those that don't."""

    stands_for: pa.Array
    placement: pa.Array
    alike: pa.Array
    alike_leaders: pa.Array
    order: np.ndarray


def found(columns: dict[str, pa.Array], brokers: list[dict]) -> Alike:
    """The alike ones among the rows of one cluster, by topic and partition; brokers: its rows of `brokers`.

    Of those that are alike the first stands for all.
    """
    rows = np.flatnonzero(_whole(columns))
    replicas, isr = (_matrix(columns[name], rows) for name in ("replicas", "isr"))
    same = (np.sort(replicas, axis=1) == np.sort(isr, axis=1)).all(axis=1)
    rows, replicas = rows[same], replicas[same]
    leaders = columns["leader"].fill_null(-1).to_numpy()
    of = _classes(np.concatenate([replicas.ravel(), leaders[rows]]), brokers)
    held = np.sort(of[: replicas.size].reshape(replicas.shape), axis=1)
    key = columns["topic"].dictionary_encode().indices.to_numpy()[rows].astype(np.int64)
    for column in (of[replicas.size :], *held.T):
        key = _combined(key, column)
    return _grouped(rows, key, columns["partition"], leaders)


def _whole(columns: dict[str, pa.Array]) -> np.ndarray:
    """Led, with as many in sync as there are replicas, at rest, everything read."""
    sizes = {name: pc.list_value_length(columns[name]).fill_null(-1).to_numpy() for name in ("replicas", "isr")}
    whole = (sizes["replicas"] == sizes["isr"]) & (sizes["replicas"] > 0) & (sizes["replicas"] <= WIDEST)
    for name in ("elr", "last_known_elr", "adding", "removing"):
        whole &= pc.equal(pc.list_value_length(columns[name]), 0).fill_null(False).to_numpy(zero_copy_only=False)
    for name in ("leader", "partition", "topic"):
        whole &= columns[name].is_valid().to_numpy(zero_copy_only=False)
    return whole & columns["unreadable"].is_null().to_numpy(zero_copy_only=False)


def _matrix(lists: pa.Array, rows: np.ndarray) -> np.ndarray:
    """The lists of these rows side by side; -1 where one is shorter than the longest."""
    taken = lists.take(pa.array(rows))
    sizes = pc.list_value_length(taken).to_numpy()
    matrix = np.full((len(rows), int(sizes.max(initial=0))), -1, np.int64)
    matrix[np.arange(matrix.shape[1]) < sizes[:, None]] = taken.flatten().to_numpy()
    return matrix


def _classes(ids: np.ndarray, brokers: list[dict]) -> np.ndarray:
    """The class of each broker id; 0 for -1. One that is down, of unknown rack or in no row is a class of its own."""
    numbers: dict[str, int] = {}
    by_id = {-1: 0}
    for broker in brokers:
        known = broker["live"] is True and broker["rack_state"] in ("named", "none")
        own = {name: value for name, value in broker.items() if not known or name not in ITS_OWN}
        by_id[broker["broker"]] = numbers.setdefault(json.dumps(own, sort_keys=True, default=str), len(numbers) + 1)
    distinct, which = np.unique(ids, return_inverse=True)
    unlisted = len(numbers) + 1
    return np.array([by_id.get(b, unlisted + n) for n, b in enumerate(distinct.tolist())], np.int64)[which]


def _combined(key: np.ndarray, column: np.ndarray) -> np.ndarray:
    """One number for each pair of key and column."""
    base = int(column.max(initial=0)) + 1
    if int(key.max(initial=0)).bit_length() + base.bit_length() > _BITS:
        key = np.unique(key, return_inverse=True)[1]
    return key * base + column


def _grouped(rows: np.ndarray, key: np.ndarray, partitions: pa.Array, leaders: np.ndarray) -> Alike:
    """Rows with the same key as the columns say it; a row that is like no other stands for itself."""
    count = len(partitions)
    by_key = np.argsort(key, kind="stable")
    rows, key = rows[by_key], key[by_key]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    several = np.repeat(sizes > 1, sizes)
    first = rows[starts[sizes > 1]]
    rows, sizes = rows[several], sizes[sizes > 1]
    stands_for = np.zeros(count, np.int32)
    placement = np.zeros(count, np.int32)
    placement[rows] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
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
        pa.array(placement, mask=alone),
        pa.ListArray.from_arrays(offsets, ids),
        pa.ListArray.from_arrays(offsets, pa.array(leaders[members], pa.int32())),
        np.argsort((stands_for == 0) & ~alone, kind="stable"),
    )


def apart(rows: pa.Table) -> list[pa.Table]:
    """Rows of `partitions` in their order, those that another stands for apart: in row groups that nobody has to read."""
    others = pc.equal(rows["stands_for"], 0).fill_null(False)
    stand = rows.num_rows - pc.sum(others).as_py()
    return [part for part in (rows.slice(0, stand), rows.slice(stand)) if part.num_rows]


def none(count: int) -> Alike:
    """Every row stands for itself."""
    number, ids = pa.nulls(count, pa.int32()), pa.nulls(count, pa.list_(pa.int32()))
    return Alike(number, number, ids, ids, np.arange(count))
