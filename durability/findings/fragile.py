"""The partitions of each cluster that a restart of a broker takes offline, or whose acks=all writes it stops.

The same scan finds the broker that all lagging replicas of a cluster have in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.findings import lagging
from durability.findings.lagging import KEYS
from durability.lake.conditions import of_result
from durability.lake.tables import BROKERS, PARTITION_HEALTH, PARTITIONS, STRINGS
from durability.plan.plan import Plan
from durability.remedies.cluster import Fragile

COLUMNS = (
    *("cluster", "topic", "partitions", "categories", "categories_known"),
    *("effective_min_insync_replicas", "replication_factor", "out_of_sync", "cause"),
)
AT, UNDER, OFFLINE = "at-min-isr", "under-min-isr", "offline"
MOST = 200_000
"""Of more fragile partitions in all clusters it isn't looked up which brokers they need, nor the leaders of more that lag."""


def read(lake: Any, plan: Plan) -> tuple[dict[str, Fragile], dict[str, int]]:
    """By evaluated cluster its fragile partitions, and `lagging.common`.

    lake: has `scan(table, where, columns)`, and `parts`, which gives the same in parts. A healthy partition has more replicas in
    sync than min.insync.replicas, so it isn't in `partition_health`, and can do without any one of them.
    """
    from pyiceberg.expressions import And, In

    attempts = {s.attempt_id: s.cluster for s in plan.judged if s.attempt_id}
    found = {cluster: Fragile() for cluster in attempts.values()}
    by_cluster = pa.table({"cluster": list(attempts.values()), "attempt_id": list(attempts)})
    # The run may have evaluated other clusters too.
    result = And(of_result(plan), In("cluster", set(found)))
    up = _with_failed_disks(lake, attempts)
    fragile, lag = [], []
    for part in lake.parts(PARTITION_HEALTH, result, columns=COLUMNS):
        behind = part.filter(lagging.rows(part["cause"]))
        lag.append(_each(behind, behind["cause"]))
        for kind, rows in _kinds(part).items():
            chosen = part.filter(rows)
            one = _each(chosen, pa.repeat(kind, chosen.num_rows))
            if kind == OFFLINE:
                one = one.filter(pc.is_in(one["cluster"], pa.array([attempts[attempt] for attempt in up], pa.string())))
            else:
                _add(found, one, ["cluster"])
            fragile.append(one)
    each, lagged = (_few(those, by_cluster) for those in (fragile, lag))
    if each is not None:
        found = {cluster: replace(whole, by_broker={}) for cluster, whole in found.items()}
    wanted = {attempt for those in (each, lagged) if those is not None for attempt in those["attempt_id"].to_pylist()}
    where = In("attempt_id", wanted)
    leaders = []
    for part in lake.parts(PARTITIONS, where, columns=(*KEYS, "leader", "isr", "elr")) if wanted else ():
        if each is not None:
            _add(found, _by_broker(part, each, up), ["cluster", "broker"])
        if lagged is not None:
            leaders.append(lagging.leaders(part, lagged))
    return found, lagging.common(leaders)


def _few(tables: Sequence[pa.Table], by_cluster: pa.Table) -> pa.Table | None:
    """The rows of these tables with their attempt_id; None if there are more than MOST."""
    if sum(table.num_rows for table in tables) > MOST:
        return None
    return pa.concat_tables(tables).join(by_cluster, "cluster") if tables else None


@dataclass(frozen=True)
class _Up:
    """The brokers of a cluster that are up: those with an offline log dir, and the others."""

    failed: set[int] = field(default_factory=set)
    sound: set[int] = field(default_factory=set)


def _with_failed_disks(lake: Any, attempts: Mapping[str, str]) -> dict[str, _Up]:
    """By attempt the brokers that are up, of clusters in which one of them has an offline log dir."""
    from pyiceberg.expressions import In

    up: defaultdict[str, _Up] = defaultdict(_Up)
    columns = ("attempt_id", "broker", "live", "offline_log_dirs")
    for row in lake.scan(BROKERS, In("attempt_id", set(attempts)), columns=columns).to_pylist() if attempts else ():
        if row["live"]:
            of = up[row["attempt_id"]]
            (of.failed if row["offline_log_dirs"] else of.sound).add(row["broker"])
    return {attempt: of for attempt, of in up.items() if of.failed}


def _copies(kind: str, up: _Up, isr: Any, elr: Any) -> list[int]:
    """The brokers that a partition needs: those in its ISR.

    An offline one needs the failed disks among its last copies, unless another broker that is up has such a copy and can lead.
    """
    in_sync: list[int] = isr.as_py() or []
    if kind != OFFLINE:
        return in_sync
    last = in_sync or elr.as_py() or []
    return [] if up.sound.intersection(last) else [broker for broker in last if broker in up.failed]


def _kinds(part: pa.Table) -> dict[str, pa.Array]:
    """By member of Fragile, which rows of `partition_health` count in it."""
    # Arrow joins no list whose elements can't be NULL.
    texts = pc.fill_null(pc.binary_join(part["categories"].cast(STRINGS), ","), "")
    at, under, offline = (pc.match_substring(texts, category) for category in (AT, UNDER, OFFLINE))
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
        OFFLINE: offline,
    }


def _each(rows: pa.Table, kinds: pa.Array | pa.ChunkedArray) -> pa.Table:
    """cluster, topic, partition and kind: a row per partition. kinds: those of `rows`."""
    ids = rows["partitions"].combine_chunks()
    parents = pc.list_parent_indices(ids)
    named = rows.select(["cluster", "topic"]).append_column("kind", kinds)
    named = named.cast(pa.schema([(name, pa.string()) for name in named.column_names]))
    return named.take(parents).append_column("partition", pc.list_flatten(ids).cast(pa.int32()))


def _by_broker(part: pa.Table, each: pa.Table, up: Mapping[str, _Up]) -> pa.Table:
    """cluster, broker, topic, partition and kind: a row per fragile partition of `part` and broker in its ISR.

    up: by attempt the brokers that are up. An offline partition counts as `_copies` says.
    """
    strings = {name: part[name].cast(pa.string()) for name in ("attempt_id", "topic")}
    keys = pa.table({**strings, "partition": part["partition"], "at": pa.array(range(part.num_rows), pa.int64())})
    joined = keys.join(each, list(KEYS), join_type="inner")
    at = joined["at"].combine_chunks()
    copies = [part[name].combine_chunks().take(at) for name in ("isr", "elr")]
    isr = copies[0]
    if OFFLINE in pc.unique(joined["kind"]).to_pylist():
        named = zip(joined["kind"].to_pylist(), joined["attempt_id"].to_pylist(), strict=True)
        of_rows = zip(named, *copies, strict=True)
        isr = pa.array((_copies(kind, up.get(of, _Up()), *each) for (kind, of), *each in of_rows), isr.type)
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
