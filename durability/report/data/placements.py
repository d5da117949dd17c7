"""Where the replicas of the worst topics are: for each partition and broker, what the replica there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import BROKERS, PARTITIONS
from durability.plan.plan import Plan

TOPICS, SHOWN, COLUMNS = 6, 10, 16
"""The most topics, partitions of a topic, and brokers of a picture."""
READ = ("cluster", "topic", "partition", "leader", "replicas", "isr", "elr", "adding", "removing", "unreadable")
"""The columns of `partitions` that are read."""
Row = Mapping[str, Any]


def read(lake: Any, plan: Plan, topics: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Placements (see `placement`) of topics, given by cluster and name. Topics without facts are left out."""
    from pyiceberg.expressions import And, In

    clusters = {cluster for cluster, _ in topics}
    attempts = {part.attempt_id for part in plan.judged if part.attempt_id and part.cluster in clusters}
    if not attempts:
        return []
    of_attempts = In("attempt_id", attempts)
    of_topics = And(In("cluster", clusters), In("topic", {name for _, name in topics}))
    partitions = lake.scan(PARTITIONS, And(of_attempts, of_topics), columns=READ)
    brokers = lake.scan(BROKERS, of_attempts, columns=("cluster", "broker", "rack", "live")).to_pylist()
    found = []
    for cluster, topic in topics:
        rows = partitions.filter(
            pc.and_(pc.equal(partitions["cluster"], cluster), pc.equal(partitions["topic"], topic))
        )
        if rows.num_rows:
            known = {broker["broker"]: broker for broker in brokers if broker["cluster"] == cluster}
            found.append(
                {
                    "cluster": cluster,
                    "topic": topic,
                    "of": rows.num_rows,
                    **placement(fitting(worst(rows, SHOWN)), known),
                }
            )
    return found


def worst(partitions: pa.Table, limit: int) -> list[Row]:
    """The first partitions of a topic: those without a leader, then those with most replicas out of sync, then by id."""
    length = pc.list_value_length
    ranked = partitions.append_column("led", pc.is_valid(partitions["leader"]))
    missing = pc.subtract(length(partitions["replicas"]), length(partitions["isr"]))
    ranked = ranked.append_column("missing", pc.fill_null(missing, 0))
    keys = [("led", "ascending"), ("missing", "descending"), ("partition", "ascending")]
    return ranked.take(pc.sort_indices(ranked, sort_keys=keys).slice(0, limit)).to_pylist()


def fitting(partitions: Sequence[Row]) -> list[Row]:
    """The first partitions, at least one, whose replicas are on at most COLUMNS brokers."""
    ids: set[int] = set()
    found: list[Row] = []
    for row in partitions:
        ids |= set(row["replicas"] or ())
        if found and len(ids) > COLUMNS:
            break
        found.append(row)
    return found


def placement(partitions: Sequence[Row], brokers: Mapping[int, Row]) -> dict[str, Any]:
    """A picture of partitions by rack and broker.

    brokers: by id, with `rack` and `live`.

    racks: names (None: none known) and numbers of brokers, in order.
    columns: the brokers that have a replica, by rack, as `broker` and `down`. left: how many more there are.
    rows: partitions with `cells`, a state for each column ('': no replica), None if the replicas could not be read, and `leader`:
        yes, none or unknown.
    """
    ids = {broker for row in partitions for broker in row["replicas"] or ()}

    def rack(broker: int) -> str | None:
        return brokers[broker]["rack"] if broker in brokers else None

    order = sorted(ids, key=lambda broker: (rack(broker) is None, rack(broker) or "", broker))
    shown = order[:COLUMNS]
    return {
        "racks": [(name, len(list(of_rack))) for name, of_rack in groupby(shown, rack)],
        "columns": [{"broker": b, "down": b in brokers and brokers[b]["live"] is False} for b in shown],
        "left": len(order) - len(shown),
        "rows": [
            {
                "partition": row["partition"],
                "leader": _leader(row),
                "cells": None if row["replicas"] is None else [_state(row, broker) for broker in shown],
            }
            for row in partitions
        ],
    }


def _leader(row: Row) -> str:
    if row["leader"] is not None:
        return "yes"
    # A contradiction in a partition's facts leaves all of them NULL.
    unread = "leader" in (row["unreadable"] or ()) or row["replicas"] is None
    return "unknown" if unread else "none"


def _state(row: Row, broker: int) -> str:
    """What the replica on a broker is; '' if it has none.

    >>> row = {"replicas": [1, 2, 3, 4], "leader": 1, "isr": [1, 2], "elr": [3], "adding": [2], "removing": None}
    >>> [_state(row, broker) for broker in (1, 2, 3, 4, 5)]
    ['leader', 'in sync, adding', 'ELR', 'out of sync', '']
    """
    if broker not in row["replicas"]:
        return ""
    if row["isr"] is None:
        state = "leader, ISR unknown" if broker == row["leader"] else "ISR unknown"
    elif broker == row["leader"]:
        state = "leader"
    elif broker in row["isr"]:
        state = "in sync"
    else:
        state = "ELR" if broker in (row["elr"] or ()) else "out of sync"
    moves = [name for name in ("adding", "removing") if broker in (row[name] or ())]
    return ", ".join((state, *moves))
