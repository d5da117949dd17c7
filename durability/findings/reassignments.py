"""Makes a run's reassignment plans, with the reasons for topics without one. See `durability.remedies.plans`.

Plans are made once, before the texts of findings, and stored in the lake. So a remedy names a plan only if it exists. The report
step writes the plans into files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.findings import faults, gone, quorum
from durability.lake.conditions import of_result
from durability.lake.tables import BROKERS, PLANS, TOPIC_POSTURE
from durability.lake.tables import PARTITIONS as PARTITION_ROWS
from durability.plan.plan import Plan
from durability.remedies import providers
from durability.remedies.cluster import Gone
from durability.remedies.gone import script_path
from durability.remedies.plans import (
    EVEN,
    HALTED,
    LIMIT,
    MANAGED,
    SPREAD,
    Broker,
    Partition,
    Placement,
    has_room,
    moved,
    not_before,
)

TOPICS, PARTITIONS = 500, 50_000
"""The most that one run plans. To move more, use a tool that balances, and move it in portions."""
NO_PLAN: tuple[list[tuple[int, list[int]]], str | None] = ([], "by a fault of the audit, which its log has")
WANTED = ("cluster", "topic", "partitions", "target_replication_factor", "target_racks", *EVEN, *SPREAD)
OF_PARTITIONS = ("attempt_id", "topic", "partition", "replicas", "removing")


@dataclass(frozen=True)
class TopicPlan:
    """A topic's plan. moves: partitions that change, each with its new replicas. not_before: as in the index of the plans."""

    cluster: str
    topic: str
    moves: list[tuple[int, list[int]]]
    not_before: dict[str, str]


@dataclass(frozen=True)
class Plans:
    """A run's plans.

    without: (cluster, topic) of topics that need a plan but have none, with the reason.
    gone: by cluster, the plan for its dead brokers.
    """

    made: list[TopicPlan] = field(default_factory=list)
    without: dict[tuple[str, str], str] = field(default_factory=dict)
    gone: dict[str, Gone] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.made or self.without or self.gone)


def write(lake: Any, plan: Plan, found: faults.Faults | None = None) -> Plans:
    """Make the plans of a run's result and store them in the lake. Existing plans are kept."""
    stored = read(lake, plan)
    if stored:
        return stored
    plans = make(lake, plan, found)
    if plans:
        lake.append(PLANS, _rows(plans, plan))
    return plans


def read(lake: Any, plan: Plan) -> Plans:
    """The stored plans of a run's result. lake: has `scan(table, where, columns) -> pa.Table`."""
    plans = Plans()
    columns = ("cluster", "topic", "moves", "not_before", "why", "gone", "left", "running")
    rows = lake.scan(PLANS, of_result(plan), columns=columns).sort_by(
        [("cluster", "ascending"), ("topic", "ascending")]
    )
    for row in rows.to_pylist():
        if row["why"] is not None:
            plans.without[row["cluster"], row["topic"]] = row["why"]
            continue
        later = {"not_before": row["not_before"]} if row["not_before"] else {}
        moves = [(move["partition"], move["replicas"]) for move in row["moves"]]
        if row["gone"] is not None:
            _add_gone(plans, row, moves)
            continue
        plans.made.append(TopicPlan(row["cluster"], row["topic"], moves, later))
    return plans


def make(lake: Any, plan: Plan, found: faults.Faults | None = None) -> Plans:
    """The plans of a run's result, from its facts and `topic_posture`.

    lake: has `scan(table, where, columns) -> pa.Table`, and `parts`, which returns the same in parts.
    found: collects plans that could not be made. Without it, the error is raised.
    """
    from pyiceberg.expressions import And, EqualTo

    wanted = lake.scan(TOPIC_POSTURE, And(of_result(plan), EqualTo("reassign", True)), columns=WANTED)
    topics = wanted.sort_by([("cluster", "ascending"), ("topic", "ascending")]).to_pylist()
    attempts = {s.cluster: s.attempt_id for s in plan.judged if s.attempt_id}
    # Without a controller no plan can run, and its replicas are older than the plan.
    led = quorum.led(lake, {attempts[topic["cluster"]] for topic in topics})
    halted = {cluster: HALTED for cluster, leads in led.items() if leads is False}
    halted |= {s.cluster: MANAGED for s in plan.judged if providers.refusal(s.provider, providers.REASSIGN) is not None}
    # No more than TOPICS get a plan, so no more than that many of a cluster are looked at.
    of_cluster: defaultdict[str, list[str]] = defaultdict(list)
    for topic in topics:
        if topic["cluster"] not in halted and len(of_cluster[topic["cluster"]]) < TOPICS:
            of_cluster[topic["cluster"]].append(topic["topic"])
    clusters = _clusters(lake, {attempts[cluster]: names for cluster, names in of_cluster.items()})
    plans, left = Plans(gone=gone.make(lake, plan, found)), PARTITIONS
    for topic in topics:
        cluster, name = topic["cluster"], topic["topic"]
        if cluster in halted:
            plans.without[cluster, name] = halted[cluster]
            continue
        if len(plans.made) >= TOPICS or topic["partitions"] > left:
            plans.without[cluster, name] = LIMIT
            continue
        placement, current = clusters[attempts[cluster]]
        rows = current.get(name, ())
        what = f"{cluster}: the reassignment plan of {name}"
        moves, why = faults.made(found, what, partial(moved, placement, rows, topic), NO_PLAN)
        if why:
            plans.without[cluster, name] = why
            continue
        left -= topic["partitions"]
        plans.made.append(TopicPlan(cluster, name, moves, not_before(placement, current[name], moves)))
    return plans


def _clusters(
    lake: Any, wanted: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Placement, dict[str, list[Partition]]]]:
    """By attempt, its brokers with their load, and the partitions of the topics in `wanted`. Each table is read once."""
    from pyiceberg.expressions import In

    if not wanted:
        return {}
    snapshots = In("attempt_id", set(wanted))
    brokers = defaultdict(list)
    columns = ("attempt_id", "broker", "rack", "rack_state", "live", "log_dirs", "offline_log_dirs", "configs")
    for row in lake.scan(BROKERS, snapshots, columns=columns).to_pylist():
        room = has_room(row["log_dirs"], row["offline_log_dirs"], row["configs"])
        unracked = bool(row["live"]) and row["rack_state"] == "none"
        brokers[row["attempt_id"]].append(Broker(row["broker"], row["rack"], row["live"], room, unracked))
    load: defaultdict[str, Counter[int]] = defaultdict(Counter)
    current: defaultdict[str, defaultdict[str, list[Partition]]] = defaultdict(lambda: defaultdict(list))
    for part in lake.parts(PARTITION_ROWS, snapshots, columns=OF_PARTITIONS):
        of_part = pc.unique(part["attempt_id"]).to_pylist()
        for attempt in of_part:
            rows = part.filter(pc.equal(part["attempt_id"], attempt)) if len(of_part) > 1 else part
            counts = pc.value_counts(pc.list_flatten(rows["replicas"])).to_pylist()
            load[attempt].update({entry["values"]: entry["counts"] for entry in counts})
            listed = rows.filter(pc.is_in(rows["topic"], pa.array(wanted[attempt], pa.string())))
            for row in listed.sort_by("partition").to_pylist():
                current[attempt][row["topic"]].append((row["partition"], row["replicas"], row["removing"]))
    return {attempt: (Placement(brokers[attempt], load[attempt]), current[attempt]) for attempt in wanted}


def _rows(plans: Plans, plan: Plan) -> pa.Table:
    """`plans` as rows of `reassignment_plans`."""
    parts = {part.cluster: part for part in plan.judged}

    def row(cluster: str, topic: str, **own: Any) -> dict[str, Any]:
        part = parts[cluster]
        keys = {"run_id": plan.run_id, "result_id": plan.result_id, "snapshot_id": part.snapshot_id}
        return {**keys, "captured_at": part.moment, "cluster": cluster, "topic": topic, **own}

    made = [
        row(one.cluster, one.topic, moves=[dict(zip(("partition", "replicas"), m, strict=True)) for m in one.moves])
        | one.not_before
        for one in plans.made
    ]
    without = [row(cluster, topic, why=why) for (cluster, topic), why in plans.without.items()]
    of_brokers = [
        row(cluster, topic, moves=moves, gone=list(one.brokers), left=one.left, running=one.running)
        for cluster, one in plans.gone.items()
        for topic, moves in _by_topic(one).items()
    ]
    return pa.Table.from_pylist([*made, *without, *of_brokers], PLANS.arrow)


def _by_topic(plan: Gone) -> dict[str, list[dict[str, Any]]]:
    moves: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for topic, partition, replicas in plan.moves:
        moves[topic].append({"partition": partition, "replicas": replicas})
    return moves


def _add_gone(plans: Plans, row: Mapping[str, Any], moves: list[tuple[int, list[int]]]) -> None:
    """Add a topic's part of the plan for the dead brokers of its cluster."""
    cluster = row["cluster"]
    earlier = plans.gone[cluster].moves if cluster in plans.gone else ()
    own = tuple((row["topic"], partition, replicas) for partition, replicas in moves)
    plans.gone[cluster] = Gone(
        script_path(cluster), tuple(row["gone"]), (*earlier, *own), row["left"], row["running"] or 0
    )
