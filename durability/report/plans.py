"""A run's reassignment plans, written into OUT/plans with an index; see `durability.remedies.plans`."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from durability.atomic import unfinished, write_whole
from durability.lake.tables import BROKERS, TOPIC_POSTURE
from durability.lake.tables import PARTITIONS as PARTITION_ROWS
from durability.plan.plan import Plan
from durability.remedies.plans import EVEN, FOLDER, FORMAT, INDEX, Broker, Placement, folder, moved, not_before, written

TOPICS, PARTITIONS = 500, 50_000
"""Planned in one run, at most. To move more, use a tool that balances, and move it in portions."""
WANTED = ("cluster", "topic", "partitions", "target_replication_factor", "target_racks", *EVEN)


def write(lake: Any, plan: Plan, out: Path) -> Path | None:
    """Write the plans of a run into OUT/plans, with an index that also names topics without a plan and why.

    What an earlier run wrote is removed. Returns the folder; None if there is nothing to move, and then no index.
    """
    from pyiceberg.expressions import And, EqualTo

    result = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    wanted = lake.scan(TOPIC_POSTURE, And(result, EqualTo("reassign", True)), columns=WANTED)
    _clear(out / FOLDER)
    if not wanted.num_rows:
        return None
    attempts = {s.cluster: s.attempt_id for s in plan.snapshots}
    texts: dict[Path, str] = {}
    plans: list[dict[str, str]] = []
    without: list[dict[str, str]] = []
    left = PARTITIONS
    rows = sorted(wanted.to_pylist(), key=lambda r: (r["cluster"], r["topic"]))
    for cluster, of_cluster in groupby(rows, key=lambda r: r["cluster"]):
        topics = list(of_cluster)
        placement, current = _read(lake, attempts[cluster], [t["topic"] for t in topics[:TOPICS]])
        for topic in topics:
            entry = {"cluster": cluster, "topic": topic["topic"]}
            if len(plans) >= TOPICS or topic["partitions"] > left:
                without.append(entry | {"why": "more than one run plans"})
                continue
            moves, why = moved(placement, current.get(topic["topic"], ()), topic)
            if why:
                without.append(entry | {"why": why})
                continue
            left -= topic["partitions"]
            entry |= {"file": f"{folder(cluster)}/{topic['topic']}.json"}
            plans.append(entry | not_before(placement, current[topic["topic"]], moves))
            texts[out / FOLDER / entry["file"]] = written(topic["topic"], moves)
    index = json.dumps({"format": FORMAT, "plans": plans, "without": without}, indent=1) + "\n"
    with unfinished(out) as temporary:
        # The index first: the next run removes what it lists, also if this run is killed in between.
        for path, text in {out / FOLDER / INDEX: index, **texts}.items():
            write_whole(path, text, temporary)
    return out / FOLDER


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


def _clear(plans: Path) -> None:
    """Remove the index of an earlier run and the files that it lists; other files stay.

    A damaged index lists nothing. Then every file is removed that has the form of a plan for the topic in its name: a plan of
    an earlier run must not be taken for this one's.
    """
    index = plans / INDEX
    if not index.is_file():
        return
    for file in _listed(index):
        if file.resolve().is_relative_to(plans.resolve()):
            file.unlink(missing_ok=True)
    index.unlink()
    for path in (*plans.iterdir(), plans):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _listed(index: Path) -> list[Path]:
    try:
        return [index.parent / entry["file"] for entry in json.loads(index.read_text(encoding="utf-8"))["plans"]]
    except (ValueError, KeyError, TypeError):
        return [file for file in index.parent.glob("*/*.json") if _is_plan(file)]


def _is_plan(file: Path) -> bool:
    """Whether a file is empty or cut short, or a reassignment of the topic in its name."""
    try:
        moves = json.loads(file.read_text(encoding="utf-8"))["partitions"]
        return {move["topic"] for move in moves} == {file.stem}
    except (ValueError, KeyError, TypeError):
        return written(file.stem, ()).encode().startswith(file.read_bytes()[:14])
