"""The partitions of each cluster that a restart of a broker takes offline, or whose acks=all writes it stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import of_result
from durability.lake.tables import PARTITION_HEALTH, PARTITIONS, STRINGS
from durability.plan.plan import Plan
from durability.remedies.cluster import Fragile

COLUMNS = (
    *("cluster", "topic", "partitions", "categories", "categories_known"),
    *("effective_min_insync_replicas", "replication_factor", "out_of_sync"),
)
AT, UNDER = "at-min-isr", "under-min-isr"
KEYS = ("attempt_id", "topic", "partition")
MOST = 200_000
"""Of more fragile partitions in all clusters it isn't looked up which brokers they need."""


def read(lake: Any, plan: Plan) -> dict[str, Fragile]:
    """By evaluated cluster its fragile partitions.

    lake: has `parts(table, where, columns)`, which gives tables. A healthy partition has more replicas in sync than
    min.insync.replicas, so it isn't in `partition_health`, and can do without any one of them.
    """
    from pyiceberg.expressions import In

    attempts = {s.attempt_id: s.cluster for s in plan.judged if s.attempt_id}
    found = {cluster: Fragile() for cluster in attempts.values()}
    by_cluster = pa.table({"cluster": list(attempts.values()), "attempt_id": list(attempts)})
    result = of_result(plan)
    fragile = []
    for part in lake.parts(PARTITION_HEALTH, result, columns=COLUMNS):
        for kind, rows in _kinds(part).items():
            one = _each(part.filter(rows), kind)
            _add(found, one, ["cluster"])
            fragile.append(one)
    each = pa.concat_tables(fragile).join(by_cluster, "cluster") if fragile else None
    if each is None or each.num_rows > MOST:
        return found
    if each.num_rows:
        found = {cluster: replace(whole, by_broker={}) for cluster, whole in found.items()}
        where = In("attempt_id", set(each["attempt_id"].to_pylist()))
        for part in lake.parts(PARTITIONS, where, columns=(*KEYS, "isr")):
            _add(found, _by_broker(part, each), ["cluster", "broker"])
        return found
    return {cluster: replace(whole, by_broker={}) for cluster, whole in found.items()}


def _kinds(part: pa.Table) -> dict[str, pa.Array]:
    """By member of Fragile, which rows of `partition_health` count in it."""
    # Arrow joins no list whose elements can't be NULL.
    texts = pc.fill_null(pc.binary_join(part["categories"].cast(STRINGS), ","), "")
    at, under, offline = (pc.match_substring(texts, category) for category in (AT, UNDER, "offline"))
    one = pc.fill_null(pc.less_equal(part["effective_min_insync_replicas"], 1), False)
    in_sync = pc.subtract(part["replication_factor"], pc.list_value_length(part["out_of_sync"]))
    few = pc.fill_null(pc.less_equal(in_sync, 1), True)
    single = pc.or_(pc.and_(at, one), pc.and_(under, few))
    known = pc.fill_null(part["categories_known"], False)
    settled = pc.or_(pc.or_(at, under), offline)
    return {
        "single": single,
        "least": pc.and_(at, pc.invert(one)),
        "unknown": pc.and_(pc.invert(known), pc.invert(settled)),
    }


def _each(rows: pa.Table, kind: str) -> pa.Table:
    """cluster, topic, partition and kind: a row per partition."""
    ids = rows["partitions"].combine_chunks()
    parents = pc.list_parent_indices(ids)
    named = rows.select(["cluster", "topic"]).cast(pa.schema([("cluster", pa.string()), ("topic", pa.string())]))
    each = named.take(parents).append_column("partition", pc.list_flatten(ids).cast(pa.int32()))
    return each.append_column("kind", pa.array([kind] * len(each), pa.string()))


def _by_broker(part: pa.Table, each: pa.Table) -> pa.Table:
    """cluster, broker, topic, partition and kind: a row per fragile partition of `part` and broker in its ISR."""
    strings = {name: part[name].cast(pa.string()) for name in ("attempt_id", "topic")}
    keys = pa.table({**strings, "partition": part["partition"], "at": pa.array(range(part.num_rows), pa.int64())})
    joined = keys.join(each, list(KEYS), join_type="inner")
    isr = part["isr"].combine_chunks().take(joined["at"].combine_chunks())
    rows = joined.select(["cluster", "topic", "partition", "kind"]).take(pc.list_parent_indices(isr))
    return rows.append_column("broker", pc.list_flatten(isr))


def _add(found: dict[str, Fragile], rows: pa.Table, keys: list[str]) -> None:
    """Counts rows of `_each`, or of `_by_broker`, in their clusters."""
    name = pc.binary_join_element_wise(rows["topic"], pc.cast(rows["partition"], pa.string()), "-")
    counted = rows.append_column("name", name).group_by([*keys, "kind"]).aggregate([("name", "count"), ("name", "min")])
    for row in counted.to_pylist():
        whole = found[row["cluster"]]
        if "broker" not in row:
            found[row["cluster"]] = _with(whole, row)
            continue
        of_broker = _with(whole.by_broker.get(row["broker"], Fragile()), row)  # type: ignore[union-attr]
        found[row["cluster"]] = replace(whole, by_broker={**(whole.by_broker or {}), row["broker"]: of_broker})


def _with(fragile: Fragile, row: Mapping[str, Any]) -> Fragile:
    kind = row["kind"]
    names = [name for name in (getattr(fragile, f"first_{kind}"), row["name_min"]) if name is not None]
    number = getattr(fragile, kind) + row["name_count"]
    return replace(fragile, **{kind: number, f"first_{kind}": min(names)})
