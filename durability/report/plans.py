"""A run's reassignment plans, written into OUT/plans with an index; see `durability.remedies.plans`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from durability.remedies.plans import EVEN, FOLDER, FORMAT, INDEX, Broker, Placement, folder, moved, not_before, written

TOPICS, PARTITIONS = 500, 50_000
"""Planned in one run, at most: whoever has more to move wants a tool that balances, and to do it in portions."""
WANTED = ("cluster", "topic", "partitions", "target_replication_factor", "target_racks", *EVEN)


def write(lake, plan, out: Path) -> Path | None:
    """Writes the plans of a run into OUT/plans, with an index.json that also names the topics without one and why.

    `lake`, `plan`: as for `durability.report.build`. What an earlier run wrote is removed; nothing else is. None: there
    is nothing to move, and no index.
    """
    from pyiceberg.expressions import And, EqualTo

    from durability.lake.tables import TOPIC_POSTURE

    this = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    wanted = lake.scan(TOPIC_POSTURE, And(this, EqualTo("reassign", True)), columns=WANTED)
    _clear(out / FOLDER)
    if not wanted.num_rows:
        return None
    attempts = {s.cluster: s.attempt_id for s in plan.snapshots if s.attempt_id}
    made, skipped, left = [], [], PARTITIONS
    rows = sorted(wanted.to_pylist(), key=lambda r: (r["cluster"], r["topic"]))
    for cluster in dict.fromkeys(r["cluster"] for r in rows):
        topics = [r for r in rows if r["cluster"] == cluster]
        placement, current = _read(lake, attempts[cluster], [t["topic"] for t in topics[:TOPICS]])
        for topic in topics:
            name, size = topic["topic"], topic["partitions"]
            if len(made) >= TOPICS or size > left:
                skipped.append({"cluster": cluster, "topic": name, "why": "more than one run plans"})
                continue
            moves, why = moved(placement, current.get(name, ()), topic)
            if why:
                skipped.append({"cluster": cluster, "topic": name, "why": why})
                continue
            left -= size
            entry = {"cluster": cluster, "topic": name, "file": f"{folder(cluster)}/{name}.json"}
            made.append(entry | not_before(placement, current[name], moves))
            _put(out / FOLDER / entry["file"], written(name, moves))
    _put(out / FOLDER / INDEX, json.dumps({"format": FORMAT, "plans": made, "without": skipped}, indent=1) + "\n")
    return out / FOLDER


def _read(lake, attempt: str, topics: list[str]) -> tuple[Placement, dict[str, list[tuple]]]:
    """The cluster's brokers with their load, and the partitions of `topics`: (id, replicas, removing)."""
    import pyarrow.compute as pc
    from pyiceberg.expressions import And, EqualTo, In

    from durability.lake.tables import BROKERS
    from durability.lake.tables import PARTITIONS as PARTITION_ROWS

    mine = EqualTo("attempt_id", attempt)
    brokers = lake.scan(BROKERS, mine, columns=("broker", "rack", "live")).to_pylist()
    held = pc.value_counts(pc.list_flatten(lake.scan(PARTITION_ROWS, mine, columns=("replicas",))["replicas"]))
    load = Counter({entry["values"]: entry["counts"] for entry in held.to_pylist()})
    columns = ("topic", "partition", "replicas", "removing")
    current: dict[str, list[tuple]] = {}
    for row in lake.scan(PARTITION_ROWS, And(mine, In("topic", topics)), columns=columns).to_pylist():
        current.setdefault(row["topic"], []).append((row["partition"], row["replicas"], row["removing"]))
    described = (Broker(b["broker"], b["rack"], b["live"]) for b in brokers)
    return Placement(described, load), {name: sorted(rows, key=lambda r: r[0]) for name, rows in current.items()}


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _clear(plans: Path) -> None:
    """Removes what the index of an earlier run lists, and the index; files that are somebody else's stay."""
    index = plans / INDEX
    if not index.is_file():
        return
    for entry in json.loads(index.read_text(encoding="utf-8"))["plans"]:
        file = plans / entry["file"]
        if file.resolve().is_relative_to(plans.resolve()):
            file.unlink(missing_ok=True)
    index.unlink()
    for empty in [p for p in plans.iterdir() if p.is_dir() and not any(p.iterdir())]:
        empty.rmdir()
    if not any(plans.iterdir()):
        plans.rmdir()
