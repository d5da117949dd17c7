"""A run's reassignment plans: which topics get one, and why others don't. See `durability.remedies.plans`.

Plans depend on facts and results alone, so the step that words findings and the step that writes the plans get the same ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow.compute as pc

from durability.lake.tables import BROKERS, TOPIC_POSTURE
from durability.lake.tables import PARTITIONS as PARTITION_ROWS
from durability.plan.plan import Plan
from durability.remedies.plans import EVEN, LIMIT, Broker, Placement, moved, not_before

TOPICS, PARTITIONS = 500, 50_000
"""Planned in one run, at most. To move more, use a tool that balances, and move it in portions."""
WANTED = ("cluster", "topic", "partitions", "target_replication_factor", "target_racks", *EVEN)


@dataclass(frozen=True)
class TopicPlan:
    """A topic's plan. moves: partitions that change, each with its new replicas. not_before: as in the index of the plans."""

    cluster: str
    topic: str
    moves: list[tuple[int, list[int]]]
    not_before: dict[str, str]


@dataclass(frozen=True)
class Plans:
    """A run's plans. without: (cluster, topic) of topics that need a plan and have none, with the reason."""

    made: list[TopicPlan] = field(default_factory=list)
    without: dict[tuple[str, str], str] = field(default_factory=dict)


def plans_of(lake: Any, plan: Plan) -> Plans:
    """The plans of a run's result. lake: has `scan(table, where, columns) -> pa.Table`."""
    from pyiceberg.expressions import And, EqualTo

    result = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    wanted = lake.scan(TOPIC_POSTURE, And(result, EqualTo("reassign", True)), columns=WANTED)
    attempts = {s.cluster: s.attempt_id for s in plan.snapshots}
    plans = Plans()
    left = PARTITIONS
    rows = sorted(wanted.to_pylist(), key=lambda r: (r["cluster"], r["topic"]))
    for cluster, of_cluster in groupby(rows, key=lambda r: r["cluster"]):
        topics = list(of_cluster)
        placement, current = _read(lake, attempts[cluster], [t["topic"] for t in topics[:TOPICS]])
        for topic in topics:
            name = topic["topic"]
            if len(plans.made) >= TOPICS or topic["partitions"] > left:
                plans.without[cluster, name] = LIMIT
                continue
            moves, why = moved(placement, current.get(name, ()), topic)
            if why:
                plans.without[cluster, name] = why
                continue
            left -= topic["partitions"]
            plans.made.append(TopicPlan(cluster, name, moves, not_before(placement, current[name], moves)))
    return plans


def _read(lake: Any, attempt: str | None, topics: list[str]) -> tuple[Placement, dict[str, list[tuple]]]:
    """The cluster's brokers with their load, and the partitions of `topics`: (id, replicas, removing)."""
    from pyiceberg.expressions import And, EqualTo, In

    snapshot = EqualTo("attempt_id", attempt)
    brokers = lake.scan(BROKERS, snapshot, columns=("broker", "rack", "live")).to_pylist()
    replicas = pc.list_flatten(lake.scan(PARTITION_ROWS, snapshot, columns=("replicas",))["replicas"])
    load = Counter({entry["values"]: entry["counts"] for entry in pc.value_counts(replicas).to_pylist()})
    columns = ("topic", "partition", "replicas", "removing")
    current: dict[str, list[tuple]] = {}
    partitions = lake.scan(PARTITION_ROWS, And(snapshot, In("topic", topics)), columns=columns)
    for row in partitions.sort_by("partition").to_pylist():
        current.setdefault(row["topic"], []).append((row["partition"], row["replicas"], row["removing"]))
    return Placement((Broker(b["broker"], b["rack"], b["live"]) for b in brokers), load), current
