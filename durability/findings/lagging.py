"""The broker that all lagging replicas of a cluster have in common: it has them, or leads their partitions.

A leader that can't answer its followers leaves replicas on other brokers behind. A finding of one topic can't show this.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

LAGS = re.compile(r"broker:(\d+) lagging")
UNKNOWN = -1
KEYS = ("attempt_id", "topic", "partition")


def rows(causes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which causes of `partition_health` name replicas that lag."""
    return pc.fill_null(pc.match_substring_regex(causes.cast(pa.string()), LAGS.pattern), False)


def leaders(part: pa.Table, lagging: pa.Table) -> pa.Table:
    """The different `cluster`, `leader` and `kind` of lagging partitions in a part of `partitions`. kind: the cause."""
    strings = {name: part[name].cast(pa.string()) for name in ("attempt_id", "topic")}
    led = pa.table({**strings, "partition": part["partition"], "leader": part["leader"]})
    joined = led.join(lagging, list(KEYS), join_type="inner")
    return joined.group_by(["cluster", "leader", "kind"]).aggregate([])


def common(tables: Iterable[pa.Table]) -> dict[str, int]:
    """By cluster the broker that every lagging replica is on or has as its leader.

    A cluster has none if there are several or none, if a leader is unknown, or if the broker leads none of the partitions: then
    the causes name it.

    >>> rows = [("eu", 1, "broker:2 lagging, broker:3 lagging"), ("eu", 3, "broker:1 lagging"), ("us", 1, "broker:2 lagging")]
    >>> common([pa.table(dict(zip(("cluster", "leader", "kind"), zip(*rows))))])
    {'eu': 1}
    """
    pairs: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for table in tables:
        for row in table.to_pylist():
            leader = UNKNOWN if row["leader"] is None else row["leader"]
            pairs[row["cluster"]].update((leader, int(broker)) for broker in LAGS.findall(row["kind"]))
    found = {}
    for cluster, of_cluster in pairs.items():
        led = {leader for leader, _ in of_cluster}
        shared = set.intersection(*map(set, of_cluster))
        if len(shared) == 1 and shared & led and UNKNOWN not in led:
            found[cluster] = shared.pop()
    return found
