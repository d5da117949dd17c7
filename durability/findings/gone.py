"""Makes a run's plans that move replicas from dead brokers to live ones; see `durability.remedies.gone`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.findings import faults, quorum
from durability.lake.tables import BROKERS, TOPICS
from durability.lake.tables import PARTITIONS as PARTITION_ROWS
from durability.plan.plan import Plan
from durability.remedies import gone, providers
from durability.remedies.cluster import Gone
from durability.remedies.plans import Broker, Placement, has_room
from durability.topology import observers

PARTITIONS = 20_000
"""The most partitions that one run plans. The next audit plans the others."""
COLUMNS = ("attempt_id", "topic", "partition", "leader", "replicas", "isr", "adding", "removing")


@dataclass
class _Affected:
    """A cluster's partitions with a replica on a dead broker, and the load of all its brokers."""

    brokers: list[Broker]
    rows: list[dict[str, Any]] = field(default_factory=list)
    load: Counter[int] = field(default_factory=Counter)
    left: int = 0
    running: int = 0
    observed: set[str] = field(default_factory=set)
    """Topics with observers, which Confluent's own tools move: a plan of Kafka's tool can't say which replicas they are."""

    @property
    def down(self) -> set[int]:
        return {broker.id for broker in self.brokers if broker.live is False}


def make(lake: Any, plan: Plan, found: faults.Faults | None = None) -> dict[str, Gone]:
    """By cluster, the plan for its dead brokers, if it moves a partition. None while no controller leads.

    lake: has `scan(table, where, columns) -> pa.Table`, and `parts`, which returns the same in parts.
    found: collects plans that could not be made. Without it, the error is raised.
    """
    from pyiceberg.expressions import In

    # A provider brings its brokers back itself.
    own = [s for s in plan.judged if providers.refusal(s.provider, providers.FILES) is None]
    clusters = {s.attempt_id: s.cluster for s in own if s.attempt_id}
    if not clusters:
        return {}
    brokers: defaultdict[str, list[Broker]] = defaultdict(list)
    columns = ("attempt_id", "broker", "rack", "live", "log_dirs", "offline_log_dirs", "configs")
    stated: defaultdict[str, list[dict[str, str | None]]] = defaultdict(list)
    for row in lake.scan(BROKERS, In("attempt_id", set(clusters)), columns=columns).to_pylist():
        free = has_room(row["log_dirs"], row["offline_log_dirs"], row["configs"])
        one = Broker(row["broker"], row["rack"], row["live"], free, failed=bool(row["offline_log_dirs"]))
        brokers[row["attempt_id"]].append(one)
        stated[row["attempt_id"]].append(dict(row["configs"] or ()))
    affected = {attempt: _Affected(of) for attempt, of in brokers.items() if any(b.live is False for b in of)}
    # Without a controller no plan can run, and the brokers' facts will be outdated when there is one.
    led = quorum.led(lake, affected) if affected else {}
    affected = {attempt: of for attempt, of in affected.items() if led.get(clusters[attempt]) is not False}
    if not affected:
        return {}
    room = PARTITIONS
    for part in lake.parts(PARTITION_ROWS, In("attempt_id", set(affected)), columns=COLUMNS):
        for attempt in pc.unique(part["attempt_id"]).to_pylist():
            room -= _add(affected[attempt], part.filter(pc.equal(part["attempt_id"], attempt)), room)
    _note_observers(lake, affected, stated)
    plans = {}
    for attempt, of in affected.items():
        cluster = clusters[attempt]
        what = f"{cluster}: the plan for brokers that are gone"
        planned = faults.made(found, what, partial(_planned, of, cluster), None)
        if planned is not None and planned.moves:
            plans[cluster] = planned
    return plans


def _add(affected: _Affected, rows: pa.Table, room: int) -> int:
    """Count the load of brokers and the running reassignments.

    Keep at most `room` partitions with a replica on a dead broker. Returns how many.
    """
    replicas = rows["replicas"].combine_chunks()
    on = pc.list_flatten(replicas)
    moving = [pc.greater(pc.fill_null(pc.list_value_length(rows[name]), 0), 0) for name in ("adding", "removing")]
    affected.running += pc.sum(pc.or_(*moving)).as_py() or 0
    affected.load.update({entry["values"]: entry["counts"] for entry in pc.value_counts(on).to_pylist()})
    down = pc.is_in(on, pa.array(sorted(affected.down), on.type))
    at = pc.unique(pc.list_parent_indices(replicas).filter(down))
    kept = rows.take(at.slice(0, room)).to_pylist()
    affected.rows += kept
    affected.left += len(at) - len(kept)
    return len(kept)


def _note_observers(lake: Any, affected: dict[str, _Affected], brokers: dict[str, list[dict[str, str | None]]]) -> None:
    """Notes which topics of the kept partitions have observers. brokers: the configs of each, by attempt."""
    from pyiceberg.expressions import In

    topics = pa.array(sorted({row["topic"] for of in affected.values() for row in of.rows}), pa.string())
    for part in lake.parts(TOPICS, In("attempt_id", set(affected)), columns=("attempt_id", "topic", "configs")):
        for row in part.filter(pc.is_in(part["topic"].cast(pa.string()), topics)).to_pylist():
            configs = None if row["configs"] is None else dict(row["configs"])
            if observers.has_observers(configs, observers.by_default(brokers[row["attempt_id"]])):
                affected[row["attempt_id"]].observed.add(row["topic"])


def _planned(affected: _Affected, cluster: str) -> Gone:
    moves = tuple(_moves(affected))
    brokers = sorted(affected.down & {b for row in affected.rows for b in row["replicas"]})
    left = affected.left + len(affected.rows) - len(moves)
    return Gone(gone.script_path(cluster), tuple(brokers), moves, left, affected.running)


def _moves(affected: _Affected) -> Iterator[tuple[str, int, list[int]]]:
    placement = Placement(affected.brokers, affected.load)
    for row in sorted(affected.rows, key=lambda row: (row["topic"], row["partition"])):
        if row["adding"] or row["removing"] or row["topic"] in affected.observed:
            continue
        replicas = gone.replaced(placement, row["replicas"], row["isr"] or (), row["leader"])
        if replicas is not None:
            yield row["topic"], row["partition"], replicas
