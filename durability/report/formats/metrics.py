"""metrics.prom: what a run found, as metrics in Prometheus's text format.

No metric has a topic's name as label: a fleet has too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from durability.plan.plan import from_text
from durability.report.data import results
from durability.report.data.health import Health
from durability.report.data.objectives import Objective, Objectives

FILE = "metrics.prom"
PREFIX = "kafka_durability"
STATES = ("one_failure_away", "unknown", "all")
CATEGORIES = ("offline", "under_min_isr", "at_min_isr", "under_replicated", "unknown")
"""Counts of a cluster's partitions (KIP-427). A partition may be in several."""


def write(
    file: TextIO,
    run: Mapping[str, Any],
    counted: pa.Table,
    health: Health,
    waivers: Sequence[Mapping[str, Any]],
    objectives: Objectives,
) -> None:
    """Write the metrics.

    run: as in findings.json. counted: every finding (columns `results.COUNTED`). waivers: the plan's, with the
        days on which they end.
    """
    registry = CollectorRegistry()
    _add(
        registry,
        "findings",
        "Verdicts by outcome, and by severity where they fail",
        ("cluster", "control", "outcome", "severity"),
        _findings(counted),
    )
    _add(
        registry,
        "partitions",
        "Partitions by category (KIP-427), and all of them",
        ("cluster", "category"),
        _partitions(health),
    )
    _add(
        registry,
        "last_success_timestamp_seconds",
        "When the last snapshot that could be judged was captured",
        ("cluster",),
        _captured(run["snapshots"]),
    )
    _add(
        registry,
        "snapshot_accepted",
        "1 if this run could judge the cluster, else 0",
        ("cluster",),
        ((s["cluster"], int(s["status"] == "accepted")) for s in run["snapshots"]),
    )
    _add(registry, "run_timestamp_seconds", "When this run started", (), [(_seconds(run["started_at"]),)])
    _add(
        registry,
        "waiver_expires_timestamp_seconds",
        "When a waiver ends, by its place in the waivers file, from 1",
        ("waiver", "owner"),
        ((w["index"] + 1, w["owner"], _end(w["expires"])) for w in waivers),
    )
    if objectives.counted:
        _add_objectives(registry, objectives.entries)
    file.write(generate_latest(registry).decode())


def _add_objectives(registry: CollectorRegistry, entries: Sequence[Objective]) -> None:
    """The time one failure away from harm. Unknown time is never good: it is a value of its own."""
    labels = ("tier", "harm", "loss")
    _add(
        registry,
        "objective_partition_minutes",
        "Partition-minutes one failure away from harm, unknown, and all of them, in the period up to the run",
        (*labels, "period", "state"),
        (
            (entry.tier, entry.harm, entry.loss, period, state, value)
            for entry in entries
            for period, minutes in entry.minutes.items()
            for state, value in zip(STATES, minutes, strict=True)
        ),
    )
    _add(
        registry,
        "objective_budget_used_ratio",
        "Share of the period's budget that is certainly used: its burn rate, 1 if the budget would just last",
        (*labels, "period"),
        (
            (entry.tier, entry.harm, entry.loss, period, used)
            for entry in entries
            for period in entry.minutes
            if (used := entry.used(period)) is not None
        ),
    )


def _add(
    registry: CollectorRegistry, name: str, about: str, labels: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add a metric. rows: the labels' values, then the value."""
    metric = Gauge(f"{PREFIX}_{name}", about, labels, registry=registry)
    for *values, value in rows:
        (metric.labels(*map(str, values)) if labels else metric).set(value)


def _findings(counted: pa.Table) -> Iterable[tuple[Any, ...]]:
    present = counted.filter(pc.invert(results.resolved(counted)))
    # The severity of what doesn't fail is that of an earlier failure, or of none.
    severity = pc.if_else(pc.equal(present["outcome"], "FAIL"), pc.fill_null(present["severity"], ""), "")
    keys = ["cluster", "control", "outcome"]
    rows = present.select(keys).append_column("severity", severity).group_by([*keys, "severity"])
    for row in rows.aggregate([([], "count_all")]).to_pylist():
        yield row["cluster"], row["control"], row["outcome"], row["severity"], row["count_all"]


def _partitions(health: Health) -> Iterable[tuple[Any, ...]]:
    for cluster, counts in sorted(health.clusters.items()):
        yield cluster, "all", counts["partitions"]
        for category in CATEGORIES:
            yield cluster, category, counts[category]


def _captured(snapshots: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, float]]:
    """A cluster that can't be judged now has the time of its last accepted snapshot, or no value."""
    for snapshot in snapshots:
        judged = snapshot if snapshot["status"] == "accepted" else snapshot["stale_snapshot"]
        if judged and judged["captured_at"]:
            yield snapshot["cluster"], _seconds(judged["captured_at"])


def _seconds(moment: str) -> float:
    return from_text(moment).timestamp()


def _end(day: str) -> float:
    """The end of a waiver's last day, UTC."""
    return (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)).timestamp()
